/* curate/text/url_host.h -- the host of a URL, and its registered domain.
 *
 * Taken apart as tldextract does: a registered domain is the label before a public suffix and that suffix, by the ICANN part of
 * the public suffix list (libpsl's; a build without it knows none).
 */
#ifndef CURATE_URL_HOST_H
#define CURATE_URL_HOST_H

#include "base/mem.h"

enum { URL_HOST_MAX = 1000 };

struct url_host {
    char text[URL_HOST_MAX + 1]; /* ideographic full stops are made plain ones */
    struct span name;            /* what tells it from others: "" for an IP address or without a suffix */
    struct span registered;      /* its end, from the registered domain on; "" likewise */
};

/* The authority of a URL (user, host and port as they stand). */
struct span url_authority(struct span url);
/* Takes the host of url apart.  One of more than URL_HOST_MAX bytes has no name. */
void url_host(struct span url, struct url_host *h);
#endif
