/* The forms, and how one is fitted. */
#include "pipelines/fit/fit_mixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 400 };

/* What part of the smallest loss c begins with, and a of the power law. */
static const double floors[] = {1e-3, .5, .8, .95}, powers[] = {.1, .3, 1, 3};

const char *mix_form_name(enum mix_form f)
{
    static const char *const name[] = {"linear", "exponential", "power"};

    return name[f];
}

int mix_form_params(enum mix_form f, int sources)
{
    return sources + (int)f; /* none, c, or c and a beside those of the sources */
}

static double sum_of(const double *p, const double *w, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += p[i] * w[i];
    return sum;
}

double mix_log_loss(enum mix_form f, const double *p, int sources, const double *w, double *dp)
{
    double part[2], share[2], value, useful = 0;

    if (f == MIX_LINEAR) {
        if (dp)
            memcpy(dp, w, (size_t)sources * sizeof *w);
        return sum_of(p, w, sources);
    }
    part[0] = p[0];
    if (f == MIX_EXPONENTIAL)
        part[1] = sum_of(p + 1, w, sources);
    else {
        for (int i = 0; i < sources; i++)
            useful += exp(p[2 + i]) * w[i];
        part[1] = -exp(p[1]) * log(useful);
    }
    value = fit_log_sum(part, 2, share);
    if (!dp)
        return value;
    dp[0] = share[0];
    if (f == MIX_POWER)
        dp[1] = share[1] * part[1];
    for (int i = 0; i < sources; i++)
        dp[(int)f + i] = share[1] * (f == MIX_POWER ? -exp(p[1] + p[2 + i]) * w[i] / useful : w[i]);
    return value;
}

double mix_loss(enum mix_form f, const double *p, int sources, const double *w, double *dw)
{
    double loss = exp(mix_log_loss(f, p, sources, w, NULL)), variable = loss - (f == MIX_LINEAR ? 0 : exp(p[0])), useful = 0;

    for (int i = 0; i < sources && f == MIX_POWER; i++)
        useful += exp(p[2 + i]) * w[i];
    for (int i = 0; i < sources; i++)
        dw[i] = variable * (f == MIX_POWER ? -exp(p[1] + p[2 + i]) / useful : p[(int)f + i]);
    return loss;
}

/* ---- fits ---- */

struct mix_objective {
    enum mix_form form;
    const struct mix_data *d;
};

static double count_of(const struct mix_data *d, int i)
{
    return d->count ? d->count[i] : 1;
}

static double counts_of(const struct mix_data *d)
{
    double sum = 0;

    for (int i = 0; i < d->n; i++)
        sum += count_of(d, i);
    return sum;
}

/* Half of the sum of squares. */
static double squares(const void *arg, const double *p, double *g)
{
    const struct mix_objective *o = arg;
    const struct mix_data *d = o->d;
    int k = mix_form_params(o->form, d->sources);
    double dp[FIT_PARAMS], sum = 0;

    memset(g, 0, (size_t)k * sizeof *g);
    for (int i = 0; i < d->n; i++) {
        double count = count_of(d, i), r;

        if (count == 0)
            continue;
        r = mix_log_loss(o->form, p, d->sources, &d->weight[i * d->sources], dp) - d->log_loss[i];
        sum += count * r * r / 2;
        for (int j = 0; j < k; j++)
            g[j] += count * r * dp[j];
    }
    return sum;
}

/* The linear combination of weights that is nearest to y of each point: x.  1: it is one; 0: the points do not determine it. */
static int combine(const struct mix_data *d, const double *y, double *x)
{
    int k = d->sources, rank;
    double *a = malloc(sizeof *a * (size_t)d->n * (size_t)(k + 1)), *b;

    if (!a)
        return ERR_NOMEM;
    b = a + (size_t)d->n * (size_t)k;
    for (int i = 0; i < d->n; i++) {
        double root = sqrt(count_of(d, i));

        for (int j = 0; j < k; j++)
            a[i * k + j] = root * d->weight[i * k + j];
        b[i] = root * y[i];
    }
    rank = fit_least_squares(a, b, d->n, k, x);
    free(a);
    return rank == k;
}

double mix_refit(enum mix_form f, const struct mix_data *d, double *p)
{
    const struct mix_objective o = {f, d};
    int n = mix_form_params(f, d->sources);

    if (f == MIX_LINEAR)
        return mix_fit(f, d, p);
    if (fit_descend(squares, &o, n, p, STEPS) < 0)
        return -1;
    return 2 * fit_polish(squares, &o, n, p) / counts_of(d);
}

/* Parameters to start from: with this c, and power a, by least squares of what is then linear in weights. */
static int begin(enum mix_form f, const struct mix_data *d, double c, double a, double *y, double *p)
{
    double *x = p + (int)f, most = 0;
    int rc;

    for (int i = 0; i < d->n; i++) {
        double rest = fmax(exp(d->log_loss[i]) - c, 1e-9);

        y[i] = f == MIX_POWER ? pow(rest, -1 / a) : log(rest);
    }
    p[0] = log(c);
    rc = combine(d, y, x);
    if (f != MIX_POWER || rc <= 0)
        return rc;
    p[1] = log(a);
    for (int i = 0; i < d->sources; i++)
        most = fmax(most, x[i]);
    for (int i = 0; i < d->sources; i++)
        x[i] = log(fmax(x[i], 1e-3 * most + 1e-300));
    return rc;
}

/* Of all starts the one that ends lowest, the first of equals. */
static int fit_from_starts(enum mix_form f, const struct mix_data *d, double *y, double *p)
{
    const struct mix_objective o = {f, d};
    int n = mix_form_params(f, d->sources), a_s = f == MIX_POWER ? sizeof powers / sizeof *powers : 1;
    double lowest = INFINITY, best = INFINITY, start[FIT_PARAMS];

    for (int i = 0; i < d->n; i++)
        lowest = count_of(d, i) > 0 ? fmin(lowest, exp(d->log_loss[i])) : lowest;
    for (size_t c = 0; c < sizeof floors / sizeof *floors; c++)
        for (int a = 0; a < a_s; a++) {
            int rc = begin(f, d, floors[c] * lowest, powers[a], y, start);
            double value;

            if (rc <= 0)
                return rc;
            value = fit_descend(squares, &o, n, start, STEPS);
            if (value < 0)
                return ERR_NOMEM;
            if (value < best) {
                best = value;
                memcpy(p, start, (size_t)n * sizeof *p);
            }
        }
    return isfinite(best);
}

double mix_fit(enum mix_form f, const struct mix_data *d, double *p)
{
    const struct mix_objective o = {f, d};
    double *y, g[FIT_PARAMS];
    int rc;

    if (f == MIX_LINEAR) {
        rc = combine(d, d->log_loss, p);
        return rc < 0 ? -1 : rc == 0 ? NAN : 2 * squares(&o, p, g) / counts_of(d);
    }
    y = malloc(sizeof *y * (size_t)d->n);
    rc = y ? fit_from_starts(f, d, y, p) : ERR_NOMEM;
    free(y);
    if (rc <= 0)
        return rc < 0 ? -1 : NAN;
    return 2 * fit_polish(squares, &o, mix_form_params(f, d->sources), p) / counts_of(d);
}
