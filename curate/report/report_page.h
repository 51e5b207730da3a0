/* curate/report/report_page.h -- the parts of the page.  Inside the report only. */
#ifndef CURATE_REPORT_PAGE_H
#define CURATE_REPORT_PAGE_H

#include "curate/report/report.h"

/* Text for HTML, in an element or an attribute: markup escaped; what is invisible, controls or
 * turns the writing around is named (\u202e).  `lines`: newlines and tabs stay. */
int html_put_text(struct buf *b, struct span s, bool lines);
/* Numbers as a person reads them: 12 345 678; 3 significant digits and a unit; 4 digits. */
int html_put_count(struct buf *b, uint64_t v);
int html_put_bytes(struct buf *b, uint64_t v);
int html_put_num(struct buf *b, double v);
/* Per cent with one decimal; "-" of nothing. */
int html_put_share(struct buf *b, uint64_t part, uint64_t whole);

/* For the axes of plots: 1, 2 or 5 times a power of ten, at least x; a number at a place, anchored as SVG's text is. */
double plot_step(double x);
int plot_label(struct buf *b, double x, double y, const char *anchor, double v);
/* An SVG histogram of the values of dropped documents with the threshold in it.  Nothing if
 * there are no two different values.  1: there is one. */
int plot_values(struct buf *b, const struct report_rule *r);
/* The same of all documents, before and after (either may be NULL). */
int plot_signal(struct buf *b, const struct sketch *before, const struct sketch *after, const struct sketch *threshold);
/* An SVG histogram of lengths in powers of two, of one or two corpora (b NULL). */
int plot_lengths(struct buf *b, const struct sketch *before, const struct sketch *after);

/* Everything up to the heading, which is title. */
int page_put_head(struct buf *b, const char *title);

/* The sections of the page: rules with their plots and samples; corpora side by side.  HTML, escaped. */
int page_put_rules(struct buf *b, const struct report *r, const struct report_conf *conf);
int page_put_corpora(struct buf *b, const struct report *r);
int page_put_signals(struct buf *b, const struct report *r);
int page_put_comparison(struct buf *b, const struct report *r);
/* A stage's name, with that of its branch. */
int page_put_stage_name(struct buf *b, const struct report_stage *s);
/* Documents and bytes that came in: at the first stage, and at a later one, of no branch, more than the stage before gave. */
void page_came_in(const struct report_stage *s, int n, uint64_t *docs, uint64_t *bytes);
/* The numbers of the rules that dropped, in either run: by stage, as they came, and then the most frequent first. */
size_t *page_rule_order(const struct report *r, size_t *n);
#endif
