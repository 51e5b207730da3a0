/* The page: this run beside another. */
#include <stdlib.h>

#include "curate/report/report_page.h"

static int put_count_and_share(struct buf *b, uint64_t n, uint64_t all)
{
    TRY(buf_puts(b, "<td class=\"n\">"));
    TRY(html_put_count(b, n));
    TRY(buf_puts(b, "</td><td class=\"n\">"));
    TRY(html_put_share(b, n, all));
    return buf_puts(b, "</td>");
}

/* Nothing: the other run had no such stage. */
static int put_run(struct buf *b, const struct report_stage *s)
{
    return s ? put_count_and_share(b, s->docs_out, s->docs_in) : buf_puts(b, "<td class=\"n\">\xE2\x80\x93</td><td></td>");
}

static int put_change(struct buf *b, uint64_t from, uint64_t to)
{
    TRY(buf_puts(b, "<td class=\"n\">"));
    TRY(buf_puts(b, to > from ? "+" : to < from ? "\xE2\x88\x92" : ""));
    TRY(html_put_count(b, to > from ? to - from : from - to));
    return buf_puts(b, "</td></tr>\n");
}

static bool same_name(const struct report_stage *a, const struct report_stage *b)
{
    return span_eq(a->name, b->name) && span_eq(a->branch, b->branch);
}

/* The k-th stage of that name. */
static const struct report_stage *find_stage(const struct report_stage *s, int n, const struct report_stage *name, int k)
{
    for (int i = 0; i < n; i++)
        if (same_name(&s[i], name) && k-- == 0)
            return &s[i];
    return NULL;
}

/* One of the two may be NULL. */
static int put_stage_row(struct buf *b, const struct report_stage *other, const struct report_stage *own)
{
    TRY(buf_puts(b, "<tr><td>"));
    TRY(page_put_stage_name(b, own ? own : other));
    TRY(buf_puts(b, "</td>"));
    TRY(put_run(b, other));
    TRY(put_run(b, own));
    return put_change(b, other ? other->docs_out : 0, own ? own->docs_out : 0);
}

/* Rows of the stages of list; those that the others have as well only if `both`. */
static int put_stage_rows(struct buf *b, const struct report *r, bool both)
{
    const struct report_stage *s = both ? r->stage : r->other;
    int n = both ? r->n_stages : r->n_others;

    for (int i = 0; i < n; i++) {
        const struct report_stage *match;
        int before = 0;

        for (int k = 0; k < i; k++)
            before += same_name(&s[k], &s[i]);
        match = both ? find_stage(r->other, r->n_others, &s[i], before) : find_stage(r->stage, r->n_stages, &s[i], before);
        if (both)
            TRY(put_stage_row(b, match, &s[i]));
        else if (!match)
            TRY(put_stage_row(b, &s[i], NULL));
    }
    return 0;
}

static int put_rule_rows(struct buf *b, const struct report *r, uint64_t came, uint64_t other_came)
{
    size_t n, *order = page_rule_order(r, &n);
    int rc = order ? 0 : ERR_NOMEM;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct report_rule *x = &r->rule[order[i]];

        rc = buf_puts(b, "<tr><td>");
        if (rc == 0)
            rc = html_put_text(b, x->stage, false);
        if (rc == 0)
            rc = buf_puts(b, "</td><td><code>");
        if (rc == 0)
            rc = html_put_text(b, x->rule, false);
        if (rc == 0)
            rc = buf_puts(b, "</code></td>");
        if (rc == 0)
            rc = put_count_and_share(b, x->other, other_came);
        if (rc == 0)
            rc = put_count_and_share(b, report_drops(x), came);
        if (rc == 0)
            rc = put_change(b, x->other, report_drops(x));
    }
    free(order);
    return rc;
}

#define RUNS "<th class=\"n\">the other run</th><th class=\"n\">%</th><th class=\"n\">this run</th><th class=\"n\">%</th>" \
             "<th class=\"n\">change</th></tr>\n"

int page_put_comparison(struct buf *b, const struct report *r)
{
    uint64_t came, other_came, bytes;

    if (!r->n_others)
        return 0;
    page_came_in(r->stage, r->n_stages, &came, &bytes);
    page_came_in(r->other, r->n_others, &other_came, &bytes);
    TRY(buf_puts(b, "<h2>Beside the other run</h2>\n<p>Of <b>"));
    TRY(html_put_count(b, other_came));
    TRY(buf_puts(b, "</b> documents the other run kept <b>"));
    TRY(html_put_count(b, r->other_out.docs));
    TRY(buf_puts(b, "</b>: <b>"));
    TRY(html_put_share(b, r->other_out.docs, other_came));
    TRY(buf_puts(b, " %</b>. Documents kept, by stage; % of what came into it:</p>\n"
                    "<div class=\"scroll\"><table><tr><th>stage</th>" RUNS));
    TRY(put_stage_rows(b, r, true));
    TRY(put_stage_rows(b, r, false));
    TRY(buf_puts(b, "</table></div>\n<p>Documents dropped, by rule; % of all that came in:</p>\n"
                    "<div class=\"scroll\"><table><tr><th>stage</th><th>rule</th>" RUNS));
    TRY(put_rule_rows(b, r, came, other_came));
    return buf_puts(b, "</table></div>\n");
}
