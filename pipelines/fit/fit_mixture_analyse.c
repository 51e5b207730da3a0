/* Which form is believed of each target, and how sure its fit is. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines/fit/fit_mixture.h"

enum { NOISE = 1 << 20 /* streams of random numbers: resampling has those below */ };

/* What the threads share. */
struct mix_work {
    struct mix_analysis *a;
    const struct mix_fit_conf *c;
    int fits;        /* of a target and form: one to all points, and one without each mixture */
    atomic_int short_of_memory;
};

static struct mix_data data_of(const struct mix_analysis *a, int target, const double *count)
{
    return (struct mix_data){a->points->n, a->points->sources, a->points->weight, a->target[target].log_loss, count};
}

/* Points of mixtures i count as much as counts[i] says, those of one mixture together. */
static void spread(const struct mix_points *p, const double *counts, double *count)
{
    for (int i = 0; i < p->n; i++)
        count[i] = counts[p->mixture[i]];
}

/* Whether there are enough mixtures to fit a form without one of them. */
static bool is_fittable(const struct mix_points *p, enum mix_form f)
{
    return p->mixtures > mix_form_params(f, p->sources);
}

/* ---- all points, and without each mixture ---- */

static void fit_without(struct mix_work *w, int target, enum mix_form f, int mixture, double *count)
{
    const struct mix_points *p = w->a->points;
    struct mix_target *t = &w->a->target[target];
    struct mix_data d = data_of(w->a, target, count);
    double q[FIT_PARAMS], value;

    for (int i = 0; i < p->n; i++)
        count[i] = p->mixture[i] != mixture;
    value = mix_fit(f, &d, q);
    if (value < 0)
        atomic_store(&w->short_of_memory, 1);
    for (int i = 0; i < p->n; i++)
        if (p->mixture[i] == mixture)
            t->left[f][i] = isnan(value) ? NAN : mix_log_loss(f, q, p->sources, &p->weight[i * p->sources], NULL);
}

/* Job j: a target, a form, and what is left out. */
static void fit_job(void *arg, int j)
{
    struct mix_work *w = arg;
    const struct mix_points *p = w->a->points;
    int left = j % w->fits - 1;
    enum mix_form f = (enum mix_form)(j / w->fits % MIX_FORMS);
    int target = j / w->fits / MIX_FORMS;
    double *count = malloc(sizeof *count * (size_t)p->n);

    if (!count)
        atomic_store(&w->short_of_memory, 1);
    else if (is_fittable(p, f) && (w->c->form == MIX_FORMS || w->c->form == (int)f)) {
        struct mix_data d = data_of(w->a, target, NULL);

        if (left >= 0)
            fit_without(w, target, f, left, count);
        else if (mix_fit(f, &d, w->a->target[target].p[f]) < 0)
            atomic_store(&w->short_of_memory, 1);
    }
    free(count);
}

/* How far the predictions of points that were left out are from what was measured. */
static int judge(struct mix_target *t, enum mix_form f, const struct mix_points *p, struct err *e)
{
    double *known = malloc(sizeof *known * (size_t)p->n * 4), *measured, sum = 0;
    int n = 0, last = -1;

    if (!known)
        return err_set(e, ERR_NOMEM, "out of memory for fits");
    measured = known + p->n;
    for (int i = 0; i < p->n; i++)
        if (!isnan(t->left[f][i])) {
            known[n] = t->left[f][i];
            measured[n] = t->log_loss[i];
            sum += (known[n] - measured[n]) * (known[n] - measured[n]);
            n++;
        }
    for (int m = 0; m < p->mixtures; m++)
        for (int i = 0; i < p->n; i++)
            if (p->mixture[i] == m && !isnan(t->left[f][i]) && last != m) {
                t->judged[f]++;
                last = m;
            }
    t->error[f] = n ? sqrt(sum / n) : NAN;
    t->correlation[f] = n > 1 ? fit_rank_correlation(known, measured, n, measured + p->n) : NAN;
    free(known);
    return 0;
}

/* The form with the least error.  One is not judged that says nothing of two mixtures in three. */
static int choose(struct mix_target *t, const struct mix_points *p, const char *name, struct err *e)
{
    double least = INFINITY;

    for (int f = 0; f < MIX_FORMS; f++) {
        TRY(judge(t, (enum mix_form)f, p, e));
        if (3 * t->judged[f] >= 2 * p->mixtures && t->error[f] < least) {
            least = t->error[f];
            t->form = (enum mix_form)f;
        }
    }
    if (isfinite(least))
        return 0;
    return err_set(e, ERR_FORMAT, "no fit of '%.100s' can be held against mixtures that it has not seen: measure more that "
                   "differ in each source", name);
}

/* ---- bootstrap ---- */

/* Draw j of all targets: each mixture counts as a Bayesian bootstrap says, the same for all targets. */
static void draw_job(void *arg, int j)
{
    struct mix_work *w = arg;
    struct mix_analysis *a = w->a;
    const struct mix_points *p = a->points;
    double *counts = malloc(sizeof *counts * (size_t)(p->n + p->mixtures)), *count;

    if (!counts) {
        atomic_store(&w->short_of_memory, 1);
        return;
    }
    count = counts + p->mixtures;
    fit_resample(w->c->seed, (uint64_t)j, p->mixtures, counts);
    spread(p, counts, count);
    for (int t = 0; t < p->targets; t++) {
        const struct mix_target *x = &a->target[t];
        struct mix_data d = data_of(a, t, count);
        double *q = &a->p[(j * p->targets + t) * FIT_PARAMS];
        int i = (int)(fit_uniform(w->c->seed, NOISE + (uint64_t)j, (uint64_t)t) * p->n);

        memcpy(q, x->p[x->form], sizeof x->p[x->form]);
        if (mix_refit(x->form, &d, q) < 0)
            atomic_store(&w->short_of_memory, 1);
        while (isnan(x->left[x->form][i]))
            i = (i + 1) % p->n;
        a->noise[j * p->targets + t] = x->log_loss[i] - x->left[x->form][i];
    }
    free(counts);
}

/* ---- the whole ---- */

static int make_room(struct mix_analysis *a, const struct mix_fit_conf *c, struct err *e)
{
    const struct mix_points *p = a->points;
    size_t draws = (size_t)c->draws * (size_t)p->targets;

    a->draws = c->draws;
    a->target = calloc((size_t)p->targets, sizeof *a->target);
    a->p = calloc(draws * FIT_PARAMS + 1, sizeof *a->p);
    a->noise = calloc(draws + 1, sizeof *a->noise);
    if (!a->target || !a->p || !a->noise)
        return err_set(e, ERR_NOMEM, "out of memory for fits");
    for (int t = 0; t < p->targets; t++) {
        struct mix_target *x = &a->target[t];

        x->log_loss = calloc((size_t)p->n * (1 + MIX_FORMS), sizeof *x->log_loss);
        if (!x->log_loss)
            return err_set(e, ERR_NOMEM, "out of memory for fits");
        for (int f = 0; f < MIX_FORMS; f++) {
            x->left[f] = x->log_loss + (size_t)p->n * (size_t)(1 + f);
            for (int i = 0; i < p->n; i++)
                x->left[f][i] = NAN;
        }
        for (int i = 0; i < p->n; i++)
            x->log_loss[i] = log(p->loss[i * p->targets + t]);
    }
    return 0;
}

/* Whether there are enough mixtures, and whether they tell the sources apart. */
static int check_points(const struct mix_points *p, const struct mix_fit_conf *c, struct err *e)
{
    int least = mix_form_params(c->form == MIX_FORMS ? MIX_LINEAR : (enum mix_form)c->form, p->sources) + 1, rank;
    double x[FIT_PARAMS], *a;

    if (p->sources < 2)
        return err_set(e, ERR_FORMAT, "all points have one source: there is no mixture to look for");
    if (p->mixtures < least)
        return err_set(e, ERR_FORMAT, "%d points are of %d different mixtures; %d sources need %d", p->n, p->mixtures, p->sources,
                       least);
    a = malloc(sizeof *a * (size_t)p->n * (size_t)(p->sources + 1));
    if (!a)
        return err_set(e, ERR_NOMEM, "out of memory for fits");
    memcpy(a, p->weight, sizeof *a * (size_t)p->n * (size_t)p->sources);
    memset(a + (size_t)p->n * (size_t)p->sources, 0, sizeof *a * (size_t)p->n);
    rank = fit_least_squares(a, a + (size_t)p->n * (size_t)p->sources, p->n, p->sources, x);
    free(a);
    if (rank == p->sources)
        return 0;
    return err_set(e, ERR_FORMAT, "the mixtures do not tell source '%.100s' from those before it: its weight follows from "
                   "theirs in all of them", p->source[rank]);
}

int mix_analyse(struct mix_analysis *a, const struct mix_points *points, const struct mix_fit_conf *c, struct err *e)
{
    struct mix_work w = {.a = a, .c = c, .fits = points->mixtures + 1};

    *a = (struct mix_analysis){.points = points};
    TRY(check_points(points, c, e));
    TRY(make_room(a, c, e));
    fit_parallel(c->threads, w.fits * MIX_FORMS * points->targets, fit_job, &w);
    for (int t = 0; t < points->targets && !atomic_load(&w.short_of_memory); t++)
        TRY(choose(&a->target[t], points, points->target[t], e));
    if (!atomic_load(&w.short_of_memory))
        fit_parallel(c->threads, c->draws, draw_job, &w);
    return atomic_load(&w.short_of_memory) ? err_set(e, ERR_NOMEM, "out of memory for fits") : 0;
}

void mix_analysis_free(struct mix_analysis *a)
{
    for (int t = 0; a->target && t < a->points->targets; t++)
        free(a->target[t].log_loss);
    free(a->target);
    free(a->p);
    free(a->noise);
    *a = (struct mix_analysis){0};
}

double mix_predict(const struct mix_analysis *a, int target, int draw, const double *w)
{
    const struct mix_target *t = &a->target[target];
    const double *p = draw < 0 ? t->p[t->form] : &a->p[(draw * a->points->targets + target) * FIT_PARAMS];

    return mix_log_loss(t->form, p, a->points->sources, w, NULL);
}
