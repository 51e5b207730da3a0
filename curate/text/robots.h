/* curate/text/robots.h -- what robots are told of a page: the directives of <meta name=robots> and X-Robots-Tag.
 *
 * Sources: Google's and Bing's documentation of both; noai, noimageai: DeviantArt; tdm-reservation: the TDM Reservation
 * Protocol (TDMRep) of the W3C's community group.
 */
#ifndef CURATE_ROBOTS_H
#define CURATE_ROBOTS_H

#include "base/err.h"
#include "base/mem.h"

enum { ROBOTS_MAX = 1024 /* bytes of a list; directives beyond are left out */ };

/* Adds directives ("NOINDEX, max-snippet: 20") to a list: small letters, without blanks, each once, a comma and a space
 * between.  ERR_NOMEM. */
int robots_add(struct buf *list, struct span directives);
/* The same of a header X-Robots-Tag, which may begin with the name of one robot ("googlebot: noindex"): of those nothing
 * is taken. */
int robots_add_header(struct buf *list, struct span value);
/* Whether a list has a directive, capitals or not. */
bool robots_has(struct span list, const char *directive);
#endif
