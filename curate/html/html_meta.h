/* curate/html/html_meta.h -- what a page says about itself: title, author, date, language,
 * canonical URL.
 */
#ifndef CURATE_HTML_META_H
#define CURATE_HTML_META_H

#include "curate/html/html.h"
#include "curate/html/html_tree.h"

/* Memory for the answers.  Zero to start. */
struct html_meta {
    struct buf title, author, date, lang, canonical, tmp, site, heading;
};

/* Fills title, author, date, lang and canonical of out; they point into m.  url: where
 * the page came from, may be empty.  ERR_NOMEM. */
int html_meta_read(struct html_meta *m, const struct html_tree *t, struct span url,
                   struct html_page *out);
void html_meta_free(struct html_meta *m);

/* Reads a date as people and programs write it ("2024-05-01T10:00:00+0200", "May 1st,
 * 2024", "1. Mai 2024", "01.05.2024") at the start of s.  1: *out is its ISO 8601 form;
 * 0: it is none, or not within 1990-2100.  ERR_NOMEM. */
int html_date(struct span s, struct buf *out);
#endif
