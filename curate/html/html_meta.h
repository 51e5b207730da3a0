/* curate/html/html_meta.h -- what a page says about itself: title, author, date, language, canonical URL, site, licence,
 * and what robots may do with it.
 */
#ifndef CURATE_HTML_META_H
#define CURATE_HTML_META_H

#include "curate/html/html.h"
#include "curate/html/html_date.h"
#include "curate/html/html_tree.h"

/* Memory for the answers.  Zero to start. */
struct html_meta {
    struct buf title, author, date, lang, canonical, site, license, robots, tdm, tdm_policy, tmp, heading;
    struct html_dates dates;
    struct { uint64_t hash; unsigned says; } class[256]; /* what values of class say, by the last bits of their hashes */
};

/* Fills the fields of out that the page's own words are in, but for the text; they point into m.  url: where the page came
 * from, may be empty.  ERR_NOMEM. */
int html_meta_read(struct html_meta *m, const struct html_tree *t, struct span url,
                   struct html_page *out);
void html_meta_free(struct html_meta *m);
#endif
