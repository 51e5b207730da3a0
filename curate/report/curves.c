#include "curate/report/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_shim.h"
#include "base/version.h"
#include "curate/report/reject.h"
#include "curate/report/report_page.h"

enum { WIDTH = 520, HEIGHT = 220, LEFT = 58, RIGHT = 24, TOP = 14, BOTTOM = 22 };

/* What a line of the log has: what is drawn, then the phases, parts of the seconds of a step. */
static const struct {
    const char *key, *title;
} metric[] = {
    {"loss", "Loss"}, {"valid_loss", "Loss on validation"}, {"grad_norm", "Norm of the gradient"}, {"lr", "Learning rate"},
    {"tokens_per_s", "Tokens a second"}, {"mfu", "Share of the peak FLOP/s"}, {"batch", "Samples of a step"},
    {"data_s", "data"}, {"forward_s", "forward"}, {"backward_s", "backward"}, {"wait_s", "wait"}, {"reduce_s", "reduce"},
    {"optimizer_s", "optimizer"}, {"save_s", "save"},
};
/* Then what the model scored in tasks, by names that logs have. */
enum { METRICS = sizeof metric / sizeof *metric, PLOTS = 7, PHASES = METRICS - PLOTS, SCORES = 24, CURVES = METRICS + SCORES };

/* The names of scores in all logs, those that come first. */
struct score_names {
    char name[SCORES][128];
    int n;
};

/* Means over stretches of `width` steps. */
struct curve {
    double sum[CURVE_POINTS];
    uint32_t n[CURVE_POINTS];
    int64_t width;
};

struct log_run {
    const char *file;
    struct curve curve[CURVES];
    int64_t steps, last;
    struct score_names *names;
    struct json_reader *json, *scores;
};

static void curve_add(struct curve *c, int64_t step, double v)
{
    while (step / c->width >= CURVE_POINTS) {
        for (int i = 0; i < CURVE_POINTS / 2; i++) {
            c->sum[i] = c->sum[2 * i] + c->sum[2 * i + 1];
            c->n[i] = c->n[2 * i] + c->n[2 * i + 1];
        }
        memset(c->sum + CURVE_POINTS / 2, 0, sizeof c->sum / 2);
        memset(c->n + CURVE_POINTS / 2, 0, sizeof c->n / 2);
        c->width *= 2;
    }
    c->sum[step / c->width] += v;
    c->n[step / c->width]++;
}

/* Which curve a score of this name has; -1: there is no room for more. */
static int curve_of(struct score_names *names, struct span name)
{
    for (int i = 0; i < names->n; i++)
        if (span_is(name, names->name[i]))
            return METRICS + i;
    if (names->n == SCORES || name.n >= sizeof names->name[0])
        return -1;
    memcpy(names->name[names->n], name.p, name.n);
    return METRICS + names->n++;
}

/* {"NAME":score,...} of a step. */
static int see_scores(struct log_run *r, struct span object, double v[CURVES], struct err *e)
{
    const struct json_field *f;
    int n = json_read_object(r->scores, object, &f, e);

    for (int i = 0; i < n; i++) {
        int c = f[i].type == JSON_NUMBER ? curve_of(r->names, f[i].key) : -1;

        if (c >= 0)
            v[c] = json_parse_double(f[i].raw.p, f[i].raw.n);
    }
    return n < 0 ? n : 0;
}

static int see_step(void *to, const struct item *it, struct err *e)
{
    struct log_run *r = to;
    const struct json_field *f;
    double v[CURVES], step = NAN;
    bool trained = false; /* the line after the last step has no loss of training */
    int n = json_read_object(r->json, it->line, &f, e);

    TRY(n);
    for (int m = 0; m < CURVES; m++)
        v[m] = NAN;
    for (int i = 0; i < n; i++) {
        trained |= span_is(f[i].key, "loss");
        if (f[i].type == JSON_OBJECT && span_is(f[i].key, "scores"))
            TRY(see_scores(r, f[i].raw, v, e));
        if (f[i].type != JSON_NUMBER)
            continue;
        if (span_is(f[i].key, "step"))
            step = json_parse_double(f[i].raw.p, f[i].raw.n);
        for (int m = 0; m < METRICS; m++)
            if (span_is(f[i].key, metric[m].key))
                v[m] = json_parse_double(f[i].raw.p, f[i].raw.n);
    }
    if (!(step >= 0 && step < 0x1p53))
        return err_set(e, ERR_FORMAT, "no step");
    for (int m = 0; m < CURVES; m++)
        if (isfinite(v[m]))
            curve_add(&r->curve[m], (int64_t)step, v[m]);
    r->steps += trained;
    r->last = (int64_t)step > r->last ? (int64_t)step : r->last;
    return 0;
}

static int read_run(struct log_run *r, char *const *file, struct score_names *names, uint64_t *bad, struct err *e)
{
    int rc;

    r->file = *file;
    r->names = names;
    for (int m = 0; m < CURVES; m++)
        r->curve[m].width = 1;
    r->json = json_reader_new();
    r->scores = json_reader_new();
    rc = r->json && r->scores ? lines_read(file, 1, see_step, r, bad, e) : err_set(e, ERR_NOMEM, "out of memory");
    json_reader_free(r->json);
    json_reader_free(r->scores);
    if (rc == 0 && !r->steps)
        rc = err_set(e, ERR_FORMAT, "'%s' has no steps of training", *file);
    return rc;
}

/* ---- plots ---- */

struct range {
    double low, high;
    bool log;
    int64_t last; /* step */
};

static double mean(const struct curve *c, int i)
{
    return c->sum[i] / c->n[i];
}

/* False: nothing to draw. */
static bool range_of(const struct log_run *r, int n, int m, struct range *g)
{
    *g = (struct range){INFINITY, -INFINITY, false, 1};
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < CURVE_POINTS; i++)
            if (r[k].curve[m].n[i]) {
                g->low = fmin(g->low, mean(&r[k].curve[m], i));
                g->high = fmax(g->high, mean(&r[k].curve[m], i));
            }
        g->last = r[k].last > g->last ? r[k].last : g->last;
    }
    if (g->low > g->high)
        return false;
    g->log = g->low > 0 && g->high / g->low > 50;
    if (g->log) {
        g->low = log10(g->low);
        g->high = log10(g->high);
    }
    if (g->high - g->low < 1e-12 * (1 + fabs(g->high))) { /* a constant: in the middle */
        g->low -= .5 + fabs(g->low) / 2;
        g->high += .5 + fabs(g->high) / 2;
    }
    return true;
}

static double across(const struct range *g, double step)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * step / (double)g->last;
}

static double up(const struct range *g, double v)
{
    v = g->log ? log10(v) : v;
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (v - g->low) / (g->high - g->low);
}

static int put_axes(struct buf *b, const struct range *g)
{
    double step = g->log ? fmax(1, ceil((g->high - g->low) / 5)) : plot_step((g->high - g->low) / 5);
    double first = ceil(g->low / step - 1e-9) * step, right = plot_step((double)g->last / 6);

    TRY(buf_printf(b, "<path class=\"g\" d=\"M%d %dV%dH%d\"/>", LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT));
    for (int i = 0; i < 12 && first + i * step <= g->high + 1e-9 * step; i++) {
        double t = first + i * step, v = g->log ? pow(10, t) : fabs(t) < step * 1e-6 ? 0 : t;

        TRY(buf_printf(b, "<path class=\"g\" d=\"M%d %.1fH%d\"/>", LEFT, up(g, v), WIDTH - RIGHT));
        TRY(plot_label(b, LEFT - 5, up(g, v) + 3.5, "end", v));
    }
    for (int i = 0; i < 8 && i * right <= (double)g->last; i++)
        TRY(plot_label(b, across(g, i * right), HEIGHT - 6, "middle", i * right));
    return 0;
}

static int put_line(struct buf *b, const struct range *g, const struct curve *c, int k)
{
    bool first = true;

    TRY(buf_printf(b, "<path class=\"l l%d\" d=\"", k));
    for (int i = 0; i < CURVE_POINTS; i++) {
        double step = ((double)i + .5) * (double)c->width - .5; /* the middle of the stretch */

        if (!c->n[i])
            continue;
        step = fmin(step, (double)g->last);
        TRY(buf_printf(b, "%c%.1f %.1f", first ? 'M' : 'L', across(g, step), up(g, mean(c, i))));
        if (first) /* a single point is seen too */
            TRY(buf_printf(b, "h.1"));
        first = false;
    }
    return buf_puts(b, "\"/>");
}

static int put_plot(struct buf *b, const struct log_run *r, int n, int m)
{
    struct span title = span_of(m < METRICS ? metric[m].title : r->names->name[m - METRICS]);
    struct range g;

    if (!range_of(r, n, m, &g))
        return 0;
    TRY(buf_puts(b, "<div><h3>"));
    TRY(html_put_text(b, title, false));
    TRY(buf_printf(b, "%s</h3><svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\"><title>",
                   g.log ? "<span>logarithmic</span>" : "", WIDTH, HEIGHT, WIDTH, HEIGHT));
    TRY(html_put_text(b, title, false));
    TRY(buf_puts(b, " by step</title>"));
    TRY(put_axes(b, &g));
    for (int k = 0; k < n; k++)
        TRY(put_line(b, &g, &r[k].curve[m], k));
    return buf_puts(b, "</svg></div>\n");
}

/* ---- tables ---- */

static double total(const struct curve *c, uint64_t *n)
{
    double sum = 0;

    *n = 0;
    for (int i = 0; i < CURVE_POINTS; i++) {
        sum += c->sum[i];
        *n += c->n[i];
    }
    return sum;
}

/* The last mean of a curve; NaN: it has none. */
static double at_end(const struct curve *c)
{
    for (int i = CURVE_POINTS - 1; i >= 0; i--)
        if (c->n[i])
            return mean(c, i);
    return NAN;
}

static int put_cell(struct buf *b, double v)
{
    TRY(buf_puts(b, "<td class=\"n\">"));
    TRY(html_put_num(b, v));
    return buf_puts(b, "</td>");
}

static int put_run(struct buf *b, const struct log_run *r, int k)
{
    double seconds[PHASES], all = 0;
    uint64_t n;

    for (int i = 0; i < PHASES; i++) {
        seconds[i] = total(&r->curve[PLOTS + i], &n);
        all += seconds[i];
    }
    TRY(buf_printf(b, "<tr><td><svg width=\"18\" height=\"8\"><path class=\"l l%d\" d=\"M0 4h18\"/></svg></td><td><code>", k));
    TRY(html_put_text(b, span_of(r->file), false));
    TRY(buf_puts(b, "</code></td>"));
    TRY(put_cell(b, (double)r->last));
    TRY(put_cell(b, at_end(&r->curve[0])));
    TRY(put_cell(b, at_end(&r->curve[1])));
    TRY(put_cell(b, r->steps ? all / (double)r->steps : NAN));
    for (int i = 0; i < PHASES; i++) {
        TRY(buf_puts(b, "<td class=\"n\">"));
        TRY(html_put_share(b, (uint64_t)(seconds[i] * 1e6), (uint64_t)(all * 1e6)));
        TRY(buf_puts(b, "</td>"));
    }
    return buf_puts(b, "</tr>\n");
}

static int put_runs(struct buf *b, const struct log_run *r, int n)
{
    TRY(buf_puts(b, "<div class=\"o\"><table><tr><th></th><th>run</th><th class=\"n\">last step</th><th class=\"n\">loss</th>"
                    "<th class=\"n\">validation</th><th class=\"n\">seconds a step</th>"));
    for (int i = 0; i < PHASES; i++)
        TRY(buf_printf(b, "<th class=\"n\">%s %%</th>", metric[PLOTS + i].title));
    TRY(buf_puts(b, "</tr>\n"));
    for (int k = 0; k < n; k++)
        TRY(put_run(b, &r[k], k));
    return buf_puts(b, "</table></div>\n");
}

static int put_page(struct buf *b, const struct log_run *r, int n, const char *title)
{
    TRY(page_put_head(b, title));
    TRY(put_runs(b, r, n));
    TRY(buf_puts(b, "<div class=\"cs\">\n"));
    for (int m = 0; m < PLOTS; m++)
        TRY(put_plot(b, r, n, m));
    for (int m = METRICS; m < METRICS + r->names->n; m++)
        TRY(put_plot(b, r, n, m));
    return buf_puts(b, "</div>\n<p>quern " QUERN_VERSION "</p>\n</body></html>\n");
}

int curves_put(struct buf *b, char *const *file, int n, const char *title, uint64_t *bad, struct err *e)
{
    struct score_names names = {0};
    struct log_run *r;
    int rc = 0;

    if (n > CURVE_RUNS)
        return err_set(e, ERR_ARG, "%d logs are more than %d", n, CURVE_RUNS);
    r = calloc((size_t)n, sizeof *r);
    if (!r)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int k = 0; k < n && rc == 0; k++)
        rc = read_run(&r[k], &file[k], &names, bad, e);
    if (rc == 0 && put_page(b, r, n, title) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for the page");
    free(r);
    return rc;
}
