/* The weights with the least loss, and those that are worth measuring. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines/fit/fit_mixture.h"

enum { CANDIDATES = 2000, STEPS = 5000, PROPOSALS = 2 << 20 /* a stream of random numbers */ };

double mix_goal_loss(const struct mix_analysis *a, const struct mix_goal *g, int draw, const double *w)
{
    double sum = 0;

    for (int t = 0; t < a->points->targets; t++)
        if (g->share[t] > 0)
            sum += g->share[t] * exp(mix_predict(a, t, draw, w));
    return sum;
}

/* The same with its derivatives by the weights. */
static double goal_slope(const struct mix_analysis *a, const struct mix_goal *g, int draw, const double *w, double *dw)
{
    int k = a->points->sources;
    double one[FIT_SOURCES], sum = 0;

    memset(dw, 0, (size_t)k * sizeof *dw);
    for (int t = 0; t < a->points->targets; t++) {
        const struct mix_target *x = &a->target[t];
        const double *p = draw < 0 ? x->p[x->form] : &a->p[(draw * a->points->targets + t) * FIT_PARAMS];

        if (!(g->share[t] > 0))
            continue;
        sum += g->share[t] * mix_loss(x->form, p, k, w, one);
        for (int i = 0; i < k; i++)
            dw[i] += g->share[t] * one[i];
    }
    return sum;
}

static double clamped(const struct mix_goal *g, int i, double v)
{
    return fmin(fmax(v, g->least[i]), g->most[i]);
}

/* The nearest weights to v within the goal's bounds that sum to 1: all are moved by as much and kept within bounds; by how much
 * is found by halving. */
static void mix_project(const struct mix_goal *g, int sources, const double *v, double *w)
{
    double low = INFINITY, high = -INFINITY, sum = 0;

    for (int i = 0; i < sources; i++) {
        low = fmin(low, g->least[i] - v[i]);
        high = fmax(high, g->most[i] - v[i]);
    }
    for (int k = 0; k < 200 && low < high; k++) {
        double middle = (low + high) / 2;

        sum = 0;
        for (int i = 0; i < sources; i++)
            sum += clamped(g, i, v[i] + middle);
        if (middle == low || middle == high)
            break;
        *(sum < 1 ? &low : &high) = middle;
    }
    sum = 0;
    for (int i = 0; i < sources; i++)
        sum += w[i] = clamped(g, i, v[i] + (low + high) / 2);
    for (int i = 0; i < sources && sum > 0; i++) /* the last bits */
        w[i] /= sum;
}

/* Goes down as far as the gradient, projected, leads: the step grows as long as it holds what it promises (Beck and Teboulle's
 * condition), and shrinks where it does not; momentum is dropped where the loss rises. */
void mix_best(const struct mix_analysis *a, const struct mix_goal *g, int draw, double *w)
{
    int k = a->points->sources, still = 0;
    double slope[FIT_SOURCES], to[FIT_SOURCES], v[FIT_SOURCES], ahead[FIT_SOURCES], step = .1, pace = 1, before;

    for (int i = 0; i < k; i++)
        v[i] = 1.0 / k;
    mix_project(g, k, v, w);
    memcpy(ahead, w, (size_t)k * sizeof *w);
    before = mix_goal_loss(a, g, draw, w);
    for (int n = 0; n < STEPS && still < 10; n++) {
        double from = goal_slope(a, g, draw, ahead, slope), value = 0, moved = 0, next = (1 + sqrt(1 + 4 * pace * pace)) / 2;

        for (int tries = 0; tries < 60; tries++) {
            double promised = from;

            for (int i = 0; i < k; i++)
                v[i] = ahead[i] - step * slope[i];
            mix_project(g, k, v, to);
            for (int i = 0; i < k; i++)
                promised += slope[i] * (to[i] - ahead[i]) + (to[i] - ahead[i]) * (to[i] - ahead[i]) / (2 * step);
            value = mix_goal_loss(a, g, draw, to);
            if (value <= promised + 1e-15 * fabs(from))
                break;
            step /= 2;
        }
        if (value > before && pace > 1) { /* from where it stands, without momentum */
            pace = 1;
            memcpy(ahead, w, (size_t)k * sizeof *w);
            continue;
        }
        for (int i = 0; i < k; i++) {
            moved = fmax(moved, fabs(to[i] - w[i]));
            ahead[i] = to[i] + (pace - 1) / next * (to[i] - w[i]);
        }
        mix_project(g, k, ahead, ahead);
        if (value <= before)
            memcpy(w, to, (size_t)k * sizeof *w);
        still = moved < 1e-10 ? still + 1 : 0;
        before = fmin(before, value);
        pace = next;
        step *= 1.1;
    }
}

/* ---- what to measure next ---- */

static double distance(const double *x, const double *y, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sum;
}

/* Candidate number i. */
static void draw_mixture(const struct mix_goal *g, int sources, uint64_t seed, int i, double *w)
{
    double v[FIT_SOURCES], sum = 0;

    for (int k = 0; k < sources; k++)
        sum += v[k] = -log(fit_uniform(seed, PROPOSALS + (uint64_t)i, (uint64_t)k));
    for (int k = 0; k < sources; k++)
        v[k] /= sum;
    mix_project(g, sources, v, w);
}

/* No candidate is nearer to what is known than this. */
static void note_known(const double *candidate, int sources, const double *known, double *near)
{
    for (int i = 0; i < CANDIDATES; i++)
        near[i] = fmin(near[i], distance(&candidate[i * sources], known, sources));
}

int mix_propose(const struct mix_analysis *a, const struct mix_goal *g, uint64_t seed, int n, double *w, struct err *e)
{
    const struct mix_points *p = a->points;
    int k = p->sources;
    double *candidate = malloc(sizeof *candidate * CANDIDATES * (size_t)(k + 1)), *near;

    if (!candidate)
        return err_set(e, ERR_NOMEM, "out of memory for mixtures");
    near = candidate + CANDIDATES * (size_t)k;
    for (int i = 0; i < CANDIDATES; i++) {
        draw_mixture(g, k, seed, i, &candidate[i * k]);
        near[i] = INFINITY;
    }
    for (int i = 0; i < p->n; i++)
        note_known(candidate, k, &p->weight[i * k], near);
    mix_best(a, g, -1, w);
    for (int i = 1; i <= n; i++) {
        int far = 0;

        note_known(candidate, k, &w[(i - 1) * k], near);
        for (int c = 1; c < CANDIDATES; c++)
            far = near[c] > near[far] ? c : far;
        if (i < n)
            memcpy(&w[i * k], &candidate[far * k], sizeof *w * (size_t)k);
    }
    free(candidate);
    return 0;
}
