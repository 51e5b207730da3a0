/* curate/html/html_url.h -- what a link of a page leads to. */
#ifndef CURATE_HTML_URL_H
#define CURATE_HTML_URL_H

#include "curate/html/html_tree.h"

/* Puts ref, as an attribute has it (decoded), made absolute by base into out (cleared
 * first); as it is if base is none.  Nothing comes out of what leads to no page
 * (javascript:, data:).  ERR_NOMEM.  Source: RFC 3986, 5.2. */
int html_url_resolve(struct span base, struct span ref, struct buf *out);

/* What the page's links are relative to: its first <base href>, or url.  ERR_NOMEM. */
int html_url_base(const struct html_tree *t, struct span url, struct buf *out);
#endif
