/* What an ablation found, as a page: in the style of the report on documents, without a script. */
#include <inttypes.h>
#include <math.h>

#include "base/version.h"
#include "curate/report/report_page.h"
#include "pipelines/ablation/ablation_put.h"

enum { WIDTH = 360, ROW = 18, SIDE = 10 };

static int put_head_cell(struct buf *b, const char *text)
{
    return buf_printf(b, "<th class=\"n\">%s</th>", text);
}

static int put_num_cell(struct buf *b, const char *format, double v)
{
    TRY(buf_puts(b, "<td class=\"n\">"));
    TRY(isfinite(v) ? buf_printf(b, format, v) : buf_puts(b, "\xE2\x80\x93"));
    return buf_puts(b, "</td>");
}

static int put_count_cell(struct buf *b, uint64_t v)
{
    TRY(buf_puts(b, "<td class=\"n\">"));
    TRY(html_put_count(b, v));
    return buf_puts(b, "</td>");
}

static int put_text_cell(struct buf *b, const char *text)
{
    TRY(buf_puts(b, "<td>"));
    TRY(html_put_text(b, span_of(text), false));
    return buf_puts(b, "</td>");
}

/* The range of all scores and of the intervals. */
static void range_of_scores(const struct ablation_finding *f, const struct rank_scores *x, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (int v = 0; v < x->variants; v++) {
        const struct rank_interval *s = &f->ranking.score[v];

        for (int k = 0; k < x->seeds; k++) {
            *low = fmin(*low, x->score[v * x->stride + k]);
            *high = fmax(*high, x->score[v * x->stride + k]);
        }
        if (isfinite(s->half)) {
            *low = fmin(*low, s->mean - s->half);
            *high = fmax(*high, s->mean + s->half);
        }
    }
}

/* A variant's interval as a line, with its mean and each seed's score on it. */
static int plot_variant(struct buf *b, const struct ablation_finding *f, const struct rank_scores *x, int v, double low,
                        double high)
{
    const struct rank_interval *s = &f->ranking.score[v];
    double scale = high > low ? (WIDTH - 2 * SIDE) / (high - low) : 0;

    TRY(buf_printf(b, "<td class=\"x\"><svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">", WIDTH, ROW, WIDTH, ROW));
    if (isfinite(s->half))
        TRY(buf_printf(b, "<path class=\"l\" d=\"M%.1f %dH%.1f\"/>", SIDE + scale * (s->mean - s->half - low), ROW / 2,
                       SIDE + scale * (s->mean + s->half - low)));
    for (int k = 0; k < x->seeds; k++)
        if (isfinite(x->score[v * x->stride + k]))
            TRY(buf_printf(b, "<circle class=\"v\" r=\"2.5\" cx=\"%.1f\" cy=\"%d\"/>",
                           SIDE + scale * (x->score[v * x->stride + k] - low), ROW / 2));
    if (isfinite(s->mean))
        TRY(buf_printf(b, "<path class=\"t\" d=\"M%.1f 2V%d\"/>", SIDE + scale * (s->mean - low), ROW - 2));
    return buf_puts(b, "</svg></td>");
}

static int put_rank_row(struct buf *b, const struct ablation_finding *f, const struct rank_scores *x, int place, double low,
                        double high)
{
    int v = f->ranking.order[place];
    const struct rank_interval *s = &f->ranking.score[v];
    const struct ranked_pair *p = place ? &f->ranking.pair[place - 1] : NULL;

    TRY(buf_puts(b, "<tr>"));
    TRY(put_text_cell(b, f->a->variant[v].name));
    TRY(put_count_cell(b, (uint64_t)s->n));
    TRY(put_num_cell(b, "%.4f", s->mean));
    TRY(put_num_cell(b, "%.4f", s->half));
    TRY(plot_variant(b, f, x, v, low, high));
    TRY(put_text_cell(b, p ? ablation_verdict(p) : "first"));
    TRY(put_count_cell(b, f->r->data[v].tokens));
    TRY(put_num_cell(b, "%.2f", ablation_epochs(f, v)));
    TRY(put_num_cell(b, "%.1f", ablation_seconds(f, v)));
    return buf_puts(b, "</tr>\n");
}

static int put_rank_table(struct buf *b, const struct ablation_finding *f)
{
    static const char *const heads[] = {"seeds", "mean", "\xC2\xB1"}, *const more[] = {"tokens", "epochs", "processor seconds"};
    struct rank_scores x = ablation_scores(f->r, f->a, f->a->ranked);
    double low, high;

    range_of_scores(f, &x, &low, &high);
    TRY(buf_puts(b, "<h2>Ranking</h2><p>By "));
    TRY(html_put_text(b, span_of(f->a->eval[f->a->ranked].name), false));
    TRY(buf_printf(b, " (%s: %s is better), %" PRId64 " tokens a run. A line is the interval of a mean by itself, which misses"
                   " with a probability of %g; dots are seeds. In the column of words each variant stands beside the first one."
                   "</p>\n",
                   f->r->metric[f->a->ranked], x.higher ? "more" : "less", f->a->steps * f->a->step_tokens, f->ranking.alpha));
    TRY(buf_puts(b, "<div class=\"o\"><table><tr><th>variant</th>"));
    for (int i = 0; i < 3; i++)
        TRY(put_head_cell(b, heads[i]));
    TRY(buf_puts(b, "<th class=\"x\"></th><th></th>"));
    for (int i = 0; i < 3; i++)
        TRY(put_head_cell(b, more[i]));
    TRY(buf_puts(b, "</tr>\n"));
    for (int i = 0; i < x.variants; i++)
        TRY(put_rank_row(b, f, &x, i, low, high));
    return buf_puts(b, "</table></div>\n");
}

/* How much better the variant of a row is than that of a column; in bold where that is decided. */
static int put_pairs(struct buf *b, const struct ablation_finding *f)
{
    const struct ranking *r = &f->ranking;
    int n = 0;

    TRY(buf_printf(b, "<h2>Pairs</h2><p>How much better the row is than the column, at the same seeds. <b>In bold</b> what is"
                   " decided: that any of the %d pairs is decided wrongly has a probability of at most %g (paired t intervals,"
                   " %d comparisons).</p>\n<div class=\"o\"><table><tr><th></th>", r->n_pairs, r->alpha, r->comparisons));
    for (int k = 1; k < r->variants; k++) {
        TRY(buf_puts(b, "<th class=\"n\">"));
        TRY(html_put_text(b, span_of(f->a->variant[r->order[k]].name), false));
        TRY(buf_puts(b, "</th>"));
    }
    for (int i = 0; i < r->variants - 1; i++) {
        TRY(buf_puts(b, "</tr>\n<tr>"));
        TRY(put_text_cell(b, f->a->variant[r->order[i]].name));
        for (int k = 1; k <= i; k++)
            TRY(buf_puts(b, "<td></td>"));
        for (int k = i + 1; k < r->variants; k++, n++) {
            const struct rank_interval *g = &r->pair[n].gain;
            const char *bold = r->pair[n].decided ? "b" : "span";

            if (!isfinite(g->half))
                TRY(put_num_cell(b, "%+.4f", g->mean));
            else
                TRY(buf_printf(b, "<td class=\"n\"><%s>%+.4f \xC2\xB1 %.4f</%s></td>", bold, g->mean, g->half, bold));
        }
    }
    return buf_puts(b, "</tr>\n</table></div>\n");
}

/* The other evaluations. */
static int put_evaluations(struct buf *b, const struct ablation_finding *f)
{
    if (f->a->n_evals < 2)
        return 0;
    TRY(buf_puts(b, "<h2>All evaluations</h2>\n<div class=\"o\"><table><tr><th></th>"));
    for (int i = 0; i < f->a->n_evals; i++) {
        TRY(buf_puts(b, "<th class=\"n\">"));
        TRY(html_put_text(b, span_of(f->a->eval[i].name), false));
        TRY(buf_printf(b, ", %s</th>", f->r->metric[i]));
    }
    for (int k = 0; k < f->a->n_variants; k++) {
        int v = f->ranking.order[k];

        TRY(buf_puts(b, "</tr>\n<tr>"));
        TRY(put_text_cell(b, f->a->variant[v].name));
        for (int i = 0; i < f->a->n_evals; i++) {
            struct rank_scores x = ablation_scores(f->r, f->a, i);
            struct rank_interval s = interval_of(x.score + v * x.stride, x.seeds, f->a->false_decisions);

            TRY(isfinite(s.half) ? buf_printf(b, "<td class=\"n\">%.4f \xC2\xB1 %.4f</td>", s.mean, s.half)
                                 : put_num_cell(b, "%.4f", s.mean));
        }
    }
    return buf_puts(b, "</tr>\n</table></div>\n");
}

/* What a stage of a variant dropped, by rule. */
static int put_drops(struct buf *b, const struct ablation_finding *f, int v, const struct node *stage)
{
    const struct node *rules = node_get(stage, "dropped_by");
    bool first = true;

    TRY(buf_puts(b, "<tr>"));
    TRY(put_text_cell(b, f->a->variant[v].name));
    TRY(put_text_cell(b, node_str(stage, "stage") ? node_str(stage, "stage") : "?"));
    TRY(put_count_cell(b, (uint64_t)node_int(stage, "docs_in", 0)));
    TRY(put_count_cell(b, (uint64_t)node_int(stage, "docs_out", 0)));
    TRY(buf_puts(b, "<td class=\"n\">"));
    TRY(html_put_bytes(b, (uint64_t)node_int(stage, "bytes_in", 0)));
    TRY(buf_puts(b, "</td><td class=\"n\">"));
    TRY(html_put_bytes(b, (uint64_t)node_int(stage, "bytes_out", 0)));
    TRY(buf_puts(b, "</td><td>"));
    for (const struct node *r = rules ? rules->child : NULL; r; r = r->next) {
        if (r->integer <= 0)
            continue;
        TRY(first ? 0 : buf_puts(b, ", "));
        TRY(html_put_text(b, r->key, false));
        TRY(buf_putc(b, ' '));
        TRY(html_put_count(b, (uint64_t)r->integer));
        first = false;
    }
    return buf_puts(b, "</td></tr>\n");
}

static int put_curation(struct buf *b, const struct ablation_finding *f)
{
    TRY(buf_puts(b, "<h2>Documents</h2>\n<div class=\"o\"><table><tr><th>variant</th><th>stage</th>"
                    "<th class=\"n\">documents in</th><th class=\"n\">out</th>"
                    "<th class=\"n\">text in</th><th class=\"n\">out</th><th>dropped by</th></tr>\n"));
    for (int k = 0; k < f->a->n_variants; k++) {
        int v = f->ranking.order[k];

        for (int i = 0; i < f->account[v].n; i++)
            TRY(put_drops(b, f, v, f->account[v].stage[i]));
    }
    return buf_printf(b, "</table></div>\n<p>Processor seconds: %.1f in all, of which curation took %.1f (what variants have in"
                      " common once).</p>\n", ablation_spent(f->r, f->a), ablation_curated(f->r, f->a));
}

int ablation_put_page(const struct ablation_finding *f, struct buf *b)
{
    TRY(page_put_head(b, "Which data makes the better model"));
    if (!f->r->finished)
        TRY(buf_puts(b, "<p><b>Not all runs were done.</b></p>\n"));
    TRY(put_rank_table(b, f));
    TRY(put_pairs(b, f));
    TRY(put_evaluations(b, f));
    TRY(put_curation(b, f));
    return buf_puts(b, "<p>quern " QUERN_VERSION "</p>\n</body></html>\n");
}
