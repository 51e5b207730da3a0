#include "pipelines/fit/fit_scale.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines/fit/fit_solve.h"

enum { LAW = SCALE_NUMBERS, STEPS = 500, NOISE = 1 << 20, EXPONENTS = 5, FLOORS = 5, FACTORS = 6,
       ONE_STARTS = EXPONENTS * FLOORS * FACTORS, STARTS = ONE_STARTS * EXPONENTS * FACTORS };

/* The sum that is least.  x = log N and y = log D are taken from their means, so that a and alpha hardly depend on each other:
 * the parameters are e, a - alpha mean x, alpha, b - beta mean y, beta. */
struct scale_objective {
    int n, numbers; /* of the law: LAW, or without b and beta SCALE_ONE_NUMBERS */
    double delta, mean_x, mean_y;
    double *x, *y, *z;   /* (n) z: log L */
    const double *count; /* (n) how much each counts; NULL: 1 */
};

static double huber_sum(const void *arg, const double *p, double *g)
{
    const struct scale_objective *o = arg;
    bool tokens = o->numbers == LAW;
    double sum = 0;

    memset(g, 0, (size_t)o->numbers * sizeof *g);
    for (int i = 0; i < o->n; i++) {
        const double part[3] = {p[0], p[1] - p[2] * o->x[i], tokens ? p[3] - p[4] * o->y[i] : 0};
        double share[3], count = o->count ? o->count[i] : 1, slope;

        sum += count * fit_huber(fit_log_sum(part, tokens ? 3 : 2, share) - o->z[i], o->delta, &slope);
        slope *= count;
        g[0] += slope * share[0];
        g[1] += slope * share[1];
        g[2] -= slope * share[1] * o->x[i];
        if (tokens) {
            g[3] += slope * share[2];
            g[4] -= slope * share[2] * o->y[i];
        }
    }
    return sum;
}

static struct scale_law law_of(const struct scale_objective *o, const double *p)
{
    struct scale_law l = {p[0], p[1] + p[2] * o->mean_x, p[2], -INFINITY, 0};

    if (o->numbers == LAW) {
        l.b = p[3] + p[4] * o->mean_y;
        l.beta = p[4];
    }
    return l;
}

static void params_of(const struct scale_objective *o, const struct scale_law *l, double *p)
{
    const double q[LAW] = {l->e, l->a - l->alpha * o->mean_x, l->alpha, l->b - l->beta * o->mean_y, l->beta};

    memcpy(p, q, (size_t)o->numbers * sizeof *q);
}

double scale_loss(const struct scale_law *l, double params, double tokens)
{
    return exp(l->e) + exp(l->a - l->alpha * log(params)) + exp(l->b - l->beta * log(tokens));
}

bool scale_optimum(const struct scale_law *l, double flops, double *params, double *tokens)
{
    double both = l->alpha + l->beta;

    if (!(l->alpha > 0) || !(l->beta > 0))
        return false;
    *params = exp((log(l->alpha / l->beta) + l->a - l->b + l->beta * log(flops / 6)) / both);
    *tokens = flops / 6 / *params;
    return isfinite(*params) && isfinite(*tokens) && *params > 0 && *tokens > 0;
}

/* ---- the grid of starts ---- */

struct scale_start {
    double p[LAW], value;
    int number;
};

struct scale_grid {
    const struct scale_objective *o;
    struct scale_start start[STARTS];
};

/* Number i of the grid of appendix D.3; the first ones have all combinations of what does not concern tokens. */
static void grid_start(void *arg, int i)
{
    struct scale_grid *g = arg;
    struct scale_start *s = &g->start[i];
    double slope[LAW];
    int k = i;
    struct scale_law l;

    l.alpha = .5 * (k % EXPONENTS);
    k /= EXPONENTS;
    l.e = -1 + .5 * (k % FLOORS);
    k /= FLOORS;
    l.a = 5 * (k % FACTORS);
    k /= FACTORS;
    l.beta = .5 * (k % EXPONENTS);
    l.b = 5 * (k / EXPONENTS);
    params_of(g->o, &l, s->p);
    s->value = huber_sum(g->o, s->p, slope);
    s->number = i;
}

static void descend_start(void *arg, int i)
{
    struct scale_grid *g = arg;

    g->start[i].value = fit_descend(huber_sum, g->o, g->o->numbers, g->start[i].p, STEPS);
}

static int lowest_first(const void *a, const void *b)
{
    const struct scale_start *x = a, *y = b;

    return x->value != y->value ? (x->value > y->value) - (x->value < y->value) : x->number - y->number;
}

/* The least of all starts, exact; p gets its parameters.  Negative: out of memory. */
static double fit_grid(const struct scale_objective *o, int threads, double *p)
{
    int starts = o->numbers == LAW ? STARTS : ONE_STARTS, on = starts < SCALE_STARTS ? starts : SCALE_STARTS;
    struct scale_grid *g = malloc(sizeof *g);
    double value;

    if (!g)
        return ERR_NOMEM;
    g->o = o;
    fit_parallel(threads, starts, grid_start, g);
    qsort(g->start, (size_t)starts, sizeof *g->start, lowest_first);
    fit_parallel(threads, on, descend_start, g);
    qsort(g->start, (size_t)on, sizeof *g->start, lowest_first);
    value = g->start[0].value;
    memcpy(p, g->start[0].p, (size_t)o->numbers * sizeof *p);
    free(g);
    return value < 0 ? value : fit_polish(huber_sum, o, o->numbers, p);
}

/* ---- what is fitted ---- */

static int different(const double *x, int n)
{
    int found = 0;

    for (int i = 0; i < n; i++) {
        int k = 0;

        while (k < i && x[k] != x[i])
            k++;
        found += k == i;
    }
    return found;
}

static int check_sizes(const struct scale_points *p, struct err *e)
{
    int params = different(p->params, p->n), tokens = different(p->tokens, p->n);

    if (tokens == 1 && params > SCALE_ONE_NUMBERS)
        return 0;
    if (p->n < SCALE_LEAST)
        return err_set(e, ERR_FORMAT, "%d points; a fit of 5 numbers needs %d", p->n, SCALE_LEAST);
    if (params < SCALE_VALUES || tokens < SCALE_VALUES)
        return err_set(e, ERR_FORMAT, "the points have %d different 'params' and %d different 'tokens'; a fit needs %d of each, "
                       "or %d 'params' that all have the same 'tokens'", params, tokens, SCALE_VALUES, SCALE_ONE_NUMBERS + 1);
    return 0;
}

static double mean_log(const double *x, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += log(x[i]);
    return sum / n;
}

static int open_objective(struct scale_objective *o, const struct scale_points *p, double delta, struct err *e)
{
    *o = (struct scale_objective){.n = p->n, .delta = delta};
    o->numbers = different(p->tokens, p->n) == 1 ? SCALE_ONE_NUMBERS : LAW;
    o->mean_x = mean_log(p->params, p->n);
    o->mean_y = mean_log(p->tokens, p->n);
    o->x = malloc(sizeof *o->x * 3 * (size_t)p->n);
    if (!o->x)
        return err_set(e, ERR_NOMEM, "out of memory for fits");
    o->y = o->x + p->n;
    o->z = o->y + p->n;
    for (int i = 0; i < p->n; i++) {
        o->x[i] = log(p->params[i]) - o->mean_x;
        o->y[i] = log(p->tokens[i]) - o->mean_y;
        o->z[i] = log(p->loss[i]);
    }
    return 0;
}

struct scale_work {
    struct scale_fit *f;
    const struct scale_objective *o;
    const struct scale_points *p;
    const struct scale_conf *c;
    double *count; /* (draws, n) */
    atomic_int short_of_memory;
};

/* What is left of the log of a point's loss. */
static double left_of(const struct scale_law *l, const struct scale_points *p, int i)
{
    return log(p->loss[i]) - log(scale_loss(l, p->params[i], p->tokens[i]));
}

/* Draw j: from the fit to all points on. */
static void draw_law(void *arg, int j)
{
    struct scale_work *w = arg;
    struct scale_objective o = *w->o;
    double p[LAW] = {0}, *count = w->count + (size_t)j * (size_t)o.n;
    int i = (int)(fit_uniform(w->c->seed, NOISE, (uint64_t)j) * o.n);

    fit_resample(w->c->seed, (uint64_t)j, o.n, count);
    o.count = count;
    params_of(&o, &w->f->law, p);
    if (fit_descend(huber_sum, &o, o.numbers, p, STEPS) < 0)
        atomic_store(&w->short_of_memory, 1);
    fit_polish(huber_sum, &o, o.numbers, p);
    w->f->draw[j] = law_of(&o, p);
    w->f->noise[j] = left_of(&w->f->law, w->p, i) * sqrt((double)o.n / (o.n - o.numbers));
}

/* The fit without the models that are largest, if enough is left. */
static int fit_smaller(struct scale_fit *f, const struct scale_points *p, const struct scale_conf *c, struct err *e)
{
    struct scale_points q = {0};
    struct scale_objective o;
    struct err ignored;
    double most = 0, best[LAW] = {0}, value;

    for (int i = 0; i < p->n; i++)
        most = fmax(most, p->params[i]);
    q.params = malloc(sizeof *q.params * 3 * (size_t)p->n);
    if (!q.params)
        return err_set(e, ERR_NOMEM, "out of memory for fits");
    q.tokens = q.params + p->n;
    q.loss = q.tokens + p->n;
    for (int i = 0; i < p->n; i++)
        if (p->params[i] < most) {
            q.params[q.n] = p->params[i];
            q.tokens[q.n] = p->tokens[i];
            q.loss[q.n++] = p->loss[i];
        }
    f->held = check_sizes(&q, &ignored) == 0;
    value = 0;
    if (f->held && open_objective(&o, &q, c->delta, e) == 0) {
        value = fit_grid(&o, c->threads, best);
        f->without = law_of(&o, best);
        free(o.x);
    } else if (f->held)
        value = -1;
    free(q.params);
    return value < 0 ? err_set(e, ERR_NOMEM, "out of memory for fits") : 0;
}

static int fit_all(struct scale_fit *f, const struct scale_points *p, const struct scale_conf *c, const struct scale_objective *o,
                   struct err *e)
{
    struct scale_work w = {f, o, p, c, malloc(sizeof(double) * (size_t)p->n * (size_t)c->draws + 1), 0};
    double best[LAW] = {0}, sum = 0;

    f->draw = malloc(sizeof *f->draw * (size_t)c->draws + 1);
    f->noise = malloc(sizeof *f->noise * (size_t)c->draws + 1);
    f->draws = c->draws;
    f->objective = w.count && f->draw && f->noise ? fit_grid(o, c->threads, best) : ERR_NOMEM;
    if (f->objective < 0) {
        free(w.count);
        return err_set(e, ERR_NOMEM, "out of memory for fits");
    }
    f->numbers = o->numbers;
    f->law = law_of(o, best);
    for (int i = 0; i < p->n; i++)
        sum += left_of(&f->law, p, i) * left_of(&f->law, p, i);
    f->error = sqrt(sum / (p->n - o->numbers));
    fit_parallel(c->threads, c->draws, draw_law, &w);
    free(w.count);
    if (w.short_of_memory)
        return err_set(e, ERR_NOMEM, "out of memory for fits");
    return fit_smaller(f, p, c, e);
}

int scale_analyse(struct scale_fit *f, const struct scale_points *p, const struct scale_conf *c, struct err *e)
{
    struct scale_objective o;
    int rc;

    *f = (struct scale_fit){0};
    TRY(check_sizes(p, e));
    TRY(open_objective(&o, p, c->delta, e));
    rc = fit_all(f, p, c, &o, e);
    free(o.x);
    return rc;
}

void scale_fit_free(struct scale_fit *f)
{
    free(f->draw);
    free(f->noise);
    *f = (struct scale_fit){0};
}
