#include "pipelines/fit/fit_scale_put.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "pipelines/fit/fit_report_put.h"
#include "train/model_config.h"

enum { WIDEST = 32768, WIDE = 2048, DEEPEST = 512 };
#define FAR .1 /* log of the parameters of a shape over those that were asked for */

/* The best model for a budget, with what the draws say. */
struct scale_best {
    double flops, params, tokens;
    bool there; /* loss falls with both */
    int draws;  /* of which this is so */
    struct fit_range loss;
    double params_low, params_high;
};

struct scale_finding {
    const struct scale_report_conf *c;
    struct scale_points points;
    struct scale_fit fit;
    double low[SCALE_NUMBERS], high[SCALE_NUMBERS]; /* of E, A, alpha, B, beta */
    struct scale_best best[SCALE_BUDGETS];
    int budgets;
    struct fit_range target;
};

/* ---- a shape ---- */

static struct model_config llama_shape(int64_t hidden, int64_t layers, int64_t vocab, int64_t seq)
{
    return (struct model_config){.layers = layers, .hidden = hidden, .heads = hidden / (hidden < WIDE ? 64 : 128), .seq = seq,
                                 .vocab = vocab, .norm = NORM_RMS, .position = POSITION_ROPE, .mlp = MLP_SWIGLU, .no_bias = true};
}

/* A Llama's shape with about so many parameters, about 100 times as wide as deep; heads of 64, from a width of 2048 on of 128. */
static int scale_shape(struct model_config *m, double params, int64_t vocab, int64_t seq, struct err *e)
{
    double least = INFINITY;
    struct model_config best = {0};

    for (int64_t hidden = 64; hidden <= WIDEST; hidden += hidden < WIDE ? 64 : 512) {
        struct model_config one = llama_shape(hidden, 1, vocab, seq), two = llama_shape(hidden, 2, vocab, seq);
        double p1, layer, depth, far;

        TRY(model_config_check(&one, 128, e));
        TRY(model_config_check(&two, 128, e));
        p1 = (double)model_config_params(&one);
        layer = (double)model_config_params(&two) - p1;
        depth = fmin(fmax(round(1 + (params - p1) / layer), 1), DEEPEST);
        far = fabs(log((p1 + (depth - 1) * layer) / params)) + .05 * fabs(log((double)hidden / depth / 100));
        if (far < least) {
            least = far;
            best = llama_shape(hidden, (int64_t)depth, vocab, seq);
        }
    }
    *m = best;
    return model_config_check(m, 128, e);
}

/* The command that plans its training on 8 devices. */
static int put_command(const struct scale_finding *f, double params, double tokens, struct buf *b, struct err *e)
{
    const struct scale_report_conf *c = f->c;
    struct model_config m;

    TRY(scale_shape(&m, params, c->vocab, c->seq, e));
    TRY(buf_printf(b, "\na model of %.4g parameters%s, its plan:\n", (double)model_config_params(&m),
                   fabs(log((double)model_config_params(&m) / params)) > FAR ? " (with this vocabulary none is nearer)" : ""));
    TRY(buf_printf(b, "  quern train --plan --plan-ranks 8 --plan-layouts 3 --bf16 --num-layers %" PRId64 " --hidden-size %"
                   PRId64 " --num-attention-heads %" PRId64 " --normalization RMSNorm --position-embedding-type rope --swiglu",
                   m.layers, m.hidden, m.heads));
    return buf_printf(b, " --disable-bias-linear --vocab-size %" PRId64 " --seq-length %" PRId64 " --global-batch-size %" PRId64
                      " --train-iters %.0f\n", c->vocab, c->seq, c->batch,
                      fmin(fmax(1, ceil(tokens / ((double)c->batch * (double)c->seq))), 1e15));
}

/* ---- ranges ---- */

static void law_numbers(const struct scale_law *l, double v[SCALE_NUMBERS])
{
    const double n[SCALE_NUMBERS] = {exp(l->e), exp(l->a), l->alpha, exp(l->b), l->beta};

    memcpy(v, n, sizeof n);
}

/* The loss at a size; x: room for two numbers a draw. */
static struct fit_range loss_range(const struct scale_finding *f, double params, double tokens, double *x)
{
    const struct scale_fit *s = &f->fit;
    struct fit_range r = {.value = scale_loss(&s->law, params, tokens)};
    double *y = x + s->draws;

    for (int d = 0; d < s->draws; d++) {
        x[d] = scale_loss(&s->draw[d], params, tokens);
        y[d] = x[d] * exp(s->noise[d]);
    }
    fit_range_of(x, s->draws, f->c->interval, &r.low, &r.high);
    fit_range_of(y, s->draws, f->c->interval, &r.run_low, &r.run_high);
    return r;
}

static void find_optimum(const struct scale_finding *f, struct scale_best *b, double *x)
{
    b->there = scale_optimum(&f->fit.law, b->flops, &b->params, &b->tokens);
    for (int d = 0; d < f->fit.draws; d++) {
        double tokens;

        b->draws += scale_optimum(&f->fit.draw[d], b->flops, &x[b->draws], &tokens);
    }
    fit_range_of(x, b->draws, f->c->interval, &b->params_low, &b->params_high);
    if (b->there)
        b->loss = loss_range(f, b->params, b->tokens, x);
}

static int find_ranges(struct scale_finding *f, struct err *e)
{
    const struct scale_report_conf *c = f->c;
    double *x = malloc(sizeof *x * 2 * (size_t)c->draws), v[SCALE_NUMBERS];

    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory for the report");
    for (int i = 0; i < f->fit.numbers; i++) {
        for (int d = 0; d < f->fit.draws; d++) {
            law_numbers(&f->fit.draw[d], v);
            x[d] = v[i];
        }
        fit_range_of(x, f->fit.draws, c->interval, &f->low[i], &f->high[i]);
    }
    for (int i = 0; i < f->budgets; i++)
        find_optimum(f, &f->best[i], x);
    if (c->params > 0)
        f->target = loss_range(f, c->params, c->tokens, x);
    free(x);
    return 0;
}

static int read_budgets(struct scale_finding *f, struct err *e)
{
    const struct opt_list *l = &f->c->flops;

    if (l->n > SCALE_BUDGETS)
        return err_set(e, ERR_ARG, "--flops is there more than %d times", SCALE_BUDGETS);
    for (; f->budgets < l->n; f->budgets++) {
        char *end;
        double x = strtod(l->v[f->budgets], &end);

        if (end == l->v[f->budgets] || *end || !(x > 0 && x < 1e60))
            return err_set(e, ERR_ARG, "--flops '%s' is no number above 0", l->v[f->budgets]);
        f->best[f->budgets].flops = x;
    }
    return (f->c->params > 0) == (f->c->tokens > 0) ? 0 : err_set(e, ERR_ARG, "--params and --tokens go together");
}

/* A law for one number of tokens says nothing of others. */
static int check_target(const struct scale_finding *f, struct err *e)
{
    double tokens = f->points.tokens[0];

    if (f->fit.numbers == SCALE_NUMBERS)
        return 0;
    if (f->budgets)
        return err_set(e, ERR_ARG, "--flops: all points have %.4g tokens; what more of them give is not known", tokens);
    if (f->c->params > 0 && fabs(f->c->tokens / tokens - 1) > .01)
        return err_set(e, ERR_ARG, "--tokens %.4g: all points have %.4g, and the law is of these", f->c->tokens, tokens);
    return 0;
}

/* ---- a table ---- */

/* A row of numbers, each by its format. */
static int number_row(struct text_table *t, const char *const *format, const double *v)
{
    for (int i = 0; i < t->columns; i++)
        TRY(text_table_add_as(t, format[i], v[i]));
    return 0;
}

static int put_law(const struct scale_finding *f, struct buf *b)
{
    static const char *const name[] = {"E", "A", "alpha", "B", "beta"};
    struct text_table t = {0};
    double v[SCALE_NUMBERS];
    int rc = fit_heads(&t, "|fitted|from|to");

    law_numbers(&f->fit.law, v);
    for (int i = 0; i < f->fit.numbers && rc == 0; i++) {
        rc = text_table_add(&t, span_of(name[i]));
        if (rc == 0)
            rc = text_table_add_as(&t, "%.5g", v[i]);
        if (rc == 0)
            rc = text_table_add_as(&t, "%.5g", f->low[i]);
        if (rc == 0)
            rc = text_table_add_as(&t, "%.5g", f->high[i]);
    }
    return fit_end_table(&t, rc, b);
}

static double largest(const struct scale_points *p)
{
    double most = 0;

    for (int i = 0; i < p->n; i++)
        most = fmax(most, p->params[i]);
    return most;
}

/* The largest models as the law says that is fitted to the others. */
static int put_held(const struct scale_finding *f, struct buf *b)
{
    static const char *const format[] = {"%.4g", "%.4g", "%.4f", "%.4f", "%+.2f %%"};
    const struct scale_points *p = &f->points;
    struct text_table t = {0};
    double most = largest(p);
    int rc;

    if (!f->fit.held)
        return buf_puts(b, "\ntoo few points to fit without the largest models\n");
    TRY(buf_puts(b, "\nfitted without the largest models:\n"));
    rc = fit_heads(&t, "parameters|tokens|measured|predicted|error");
    for (int i = 0; i < p->n && rc == 0; i++) {
        double loss = scale_loss(&f->fit.without, p->params[i], p->tokens[i]);

        if (p->params[i] == most)
            rc = number_row(&t, format, (const double[]){p->params[i], p->tokens[i], p->loss[i], loss,
                                                         100 * (loss / p->loss[i] - 1)});
    }
    return fit_end_table(&t, rc, b);
}

static int put_budgets(const struct scale_finding *f, struct buf *b)
{
    static const char *const format[] = {"%.4g", "%.4g", "%.4g", "%.4g", "%.4g", "%.4g", "%.4f", "%.4f", "%.4f"};
    struct text_table t = {0};
    int rc;

    if (!f->budgets)
        return 0;
    TRY(buf_putc(b, '\n'));
    rc = fit_heads(&t, "FLOPs|parameters|from|to|tokens|tokens a parameter|loss|from|to");
    for (int i = 0; i < f->budgets && rc == 0; i++) {
        const struct scale_best *x = &f->best[i];

        if (x->there)
            rc = number_row(&t, format, (const double[]){x->flops, x->params, x->params_low, x->params_high, x->tokens,
                                                         x->tokens / x->params, x->loss.value, x->loss.low, x->loss.high});
    }
    TRY(fit_end_table(&t, rc, b));
    if (f->best[0].there)
        return 0;
    return buf_puts(b, "no model is best: by the fit loss does not fall with both parameters and tokens\n");
}

static int put_aim(const struct scale_finding *f, struct buf *b)
{
    static const char *const format[] = {"%.4g", "%.4g", "%.4f", "%.4f", "%.4f", "%.4f", "%.4f"};
    struct text_table t = {0};
    const struct fit_range *r = &f->target;
    int rc;

    if (!(f->c->params > 0))
        return 0;
    TRY(buf_putc(b, '\n'));
    rc = fit_heads(&t, "parameters|tokens|predicted|from|to|a run: from|to");
    if (rc == 0)
        rc = number_row(&t, format, (const double[]){f->c->params, f->c->tokens, r->value, r->low, r->high, r->run_low,
                                                     r->run_high});
    return fit_end_table(&t, rc, b);
}

static int put_text(const struct scale_finding *f, struct buf *b, struct err *e)
{
    int last = f->budgets - 1;

    TRY(buf_puts(b, "L = E + A / N^alpha"));
    if (f->fit.numbers == SCALE_NUMBERS)
        TRY(buf_puts(b, " + B / D^beta"));
    else
        TRY(buf_printf(b, ", for %.4g tokens,", f->points.tokens[0]));
    TRY(buf_printf(b, " of %d points; typical error %.3f %%; ranges have %g %% of %" PRId64
                   " bootstrap fits, seed %" PRId64 "\n\n", f->points.n, 100 * f->fit.error, 100 * f->c->interval, f->c->draws,
                   f->c->seed));
    TRY(put_law(f, b));
    TRY(put_held(f, b));
    TRY(put_budgets(f, b));
    TRY(put_aim(f, b));
    if (f->c->params > 0)
        return put_command(f, f->c->params, f->c->tokens, b, e);
    return f->budgets && f->best[last].there ? put_command(f, f->best[last].params, f->best[last].tokens, b, e) : 0;
}

/* ---- JSON ---- */

static int put_json(const struct scale_finding *f, struct buf *b)
{
    static const char *const name[] = {"E", "A", "alpha", "B", "beta"};
    double v[SCALE_NUMBERS];

    law_numbers(&f->fit.law, v);
    TRY(buf_printf(b, "{\"points\":%d,\"seed\":%" PRId64 ",\"draws\":%" PRId64, f->points.n, f->c->seed, f->c->draws));
    TRY(json_put_real(b, "interval", f->c->interval));
    TRY(json_put_real(b, "objective", f->fit.objective));
    TRY(json_put_real(b, "error", f->fit.error));
    for (int i = 0; i < f->fit.numbers; i++) {
        TRY(json_put_key(b, name[i]));
        TRY(buf_putc(b, '{'));
        TRY(json_put_real(b, "value", v[i]));
        TRY(json_put_real(b, "low", f->low[i]));
        TRY(json_put_real(b, "high", f->high[i]));
        TRY(buf_putc(b, '}'));
    }
    TRY(buf_puts(b, ",\"budgets\":["));
    for (int i = 0; i < f->budgets; i++) {
        const struct scale_best *x = &f->best[i];

        TRY(buf_puts(b, i ? ",{" : "{"));
        TRY(json_put_real(b, "flops", x->flops));
        TRY(json_put_real(b, "params", x->there ? x->params : NAN));
        TRY(json_put_real(b, "params_low", x->params_low));
        TRY(json_put_real(b, "params_high", x->params_high));
        TRY(json_put_real(b, "tokens", x->there ? x->tokens : NAN));
        TRY(x->there ? fit_put_range(b, &x->loss) : 0);
        TRY(buf_putc(b, '}'));
    }
    TRY(buf_putc(b, ']'));
    if (f->c->params > 0) {
        TRY(buf_puts(b, ",\"target\":{"));
        TRY(json_put_real(b, "params", f->c->params));
        TRY(json_put_real(b, "tokens", f->c->tokens));
        TRY(fit_put_range(b, &f->target));
        TRY(buf_putc(b, '}'));
    }
    return buf_puts(b, "}\n");
}

/* ---- the whole ---- */

static int find(struct scale_finding *f, const char *const *files, int n, struct scale_report_text *t, struct err *e)
{
    const struct scale_report_conf *c = f->c;
    const struct scale_conf how = {c->delta, (uint64_t)c->seed, (int)c->draws, c->threads};
    int rc;

    TRY(read_budgets(f, e));
    TRY(scale_points_read(&f->points, files, n, e));
    if (c->lowest)
        scale_points_keep_lowest(&f->points);
    rc = scale_analyse(&f->fit, &f->points, &how, e);
    if (rc < 0)
        return rc == ERR_FORMAT ? err_wrap(e, "'%s'", files[0]) : rc;
    TRY(check_target(f, e));
    TRY(find_ranges(f, e));
    *e = (struct err){0};
    rc = put_text(f, &t->table, e);
    if (rc < 0 && e->code)
        return rc;
    return rc < 0 || put_json(f, &t->json) < 0 ? err_set(e, ERR_NOMEM, "out of memory for the report") : 0;
}

int scale_report(const struct scale_report_conf *c, const char *const *files, int n, struct scale_report_text *t, struct err *e)
{
    struct scale_finding *f = calloc(1, sizeof *f);
    int rc;

    *t = (struct scale_report_text){0};
    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory for the report");
    f->c = c;
    rc = find(f, files, n, t, e);
    scale_fit_free(&f->fit);
    scale_points_free(&f->points);
    free(f);
    return rc;
}
