#include "pipelines/fit/fit_solve.h"

#include <lbfgs.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/rng.h"

static double dot(const double *x, const double *y, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* ---- least squares ---- */

/* Reflects column k of a onto its first element below row k, and the columns after it and b alike. */
static void reflect(double *a, double *b, int rows, int columns, int k, double length)
{
    double *pivot = &a[k * columns + k], head = *pivot + (*pivot < 0 ? -length : length), square = head * head;

    for (int i = k + 1; i < rows; i++)
        square += a[i * columns + k] * a[i * columns + k];
    for (int j = k + 1; j <= columns; j++) { /* the last of them is b */
        double sum = head * (j < columns ? a[k * columns + j] : b[k]);

        for (int i = k + 1; i < rows; i++)
            sum += a[i * columns + k] * (j < columns ? a[i * columns + j] : b[i]);
        sum *= 2 / square;
        *(j < columns ? &a[k * columns + j] : &b[k]) -= sum * head;
        for (int i = k + 1; i < rows; i++)
            *(j < columns ? &a[i * columns + j] : &b[i]) -= sum * a[i * columns + k];
    }
    *pivot = *pivot < 0 ? length : -length;
}

int fit_least_squares(double *a, double *b, int rows, int columns, double *x)
{
    int rank = 0;

    for (int k = 0; k < columns; k++) {
        double all = 0, below = 0;

        for (int i = 0; i < rows; i++) {
            double square = a[i * columns + k] * a[i * columns + k];

            all += square;
            below += i >= k ? square : 0;
        }
        if (k >= rows || !(below > 1e-22 * all)) /* also where it is NAN */
            return rank;
        reflect(a, b, rows, columns, k, sqrt(below));
        rank++;
    }
    for (int k = columns - 1; k >= 0; k--) {
        x[k] = b[k];
        for (int j = k + 1; j < columns; j++)
            x[k] -= a[k * columns + j] * x[j];
        x[k] /= a[k * columns + k];
    }
    return rank;
}

/* ---- a minimum ---- */

/* A function, and what it is of, as liblbfgs calls it. */
struct descent {
    fit_function *f;
    const void *arg;
};

/* What is no number is as bad as can be: a step that ends there was too long. */
static double value_at(void *descent, const double *x, double *g, int n, double step)
{
    const struct descent *d = descent;
    double value = d->f(d->arg, x, g);

    (void)step;
    return isfinite(value) && isfinite(dot(g, g, n)) ? value : INFINITY;
}

double fit_descend(fit_function *f, const void *arg, int n, double *x, int steps)
{
    struct descent d = {f, arg};
    double value, g[FIT_PARAMS];
    lbfgs_parameter_t how;

    lbfgs_parameter_init(&how);
    how.m = 10;
    how.linesearch = LBFGS_LINESEARCH_BACKTRACKING_STRONG_WOLFE; /* the one that takes INFINITY */
    how.max_iterations = steps;
    how.past = 3;
    how.delta = how.epsilon = 1e-15;
    if (lbfgs(n, x, &value, value_at, NULL, &d, &how) == LBFGSERR_OUTOFMEMORY)
        return ERR_NOMEM;
    return f(arg, x, g); /* x is the best so far however else it ended */
}

/* The second derivatives by central differences of the gradient, made symmetric. */
static void set_hessian(fit_function *f, const void *arg, int n, const double *x, double *h)
{
    double at[FIT_PARAMS], up[FIT_PARAMS], down[FIT_PARAMS];

    for (int i = 0; i < n; i++) {
        double step = 1e-5 * (1 + fabs(x[i]));

        memcpy(at, x, (size_t)n * sizeof *x);
        at[i] = x[i] + step;
        f(arg, at, up);
        at[i] = x[i] - step;
        f(arg, at, down);
        for (int j = 0; j < n; j++)
            h[i * n + j] = (up[j] - down[j]) / (2 * step);
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            h[i * n + j] = h[j * n + i] = (h[i * n + j] + h[j * n + i]) / 2;
}

double fit_polish(fit_function *f, const void *arg, int n, double *x)
{
    double g[FIT_PARAMS], new_g[FIT_PARAMS], step[FIT_PARAMS], at[FIT_PARAMS] = {0}, h[FIT_PARAMS * FIT_PARAMS] = {0};
    double value = f(arg, x, g);

    for (int i = 0; i < 30; i++) {
        double other;

        set_hessian(f, arg, n, x, h);
        memcpy(at, g, (size_t)n * sizeof *g);
        if (fit_least_squares(h, at, n, n, step) < n)
            break;
        for (int k = 0; k < n; k++)
            at[k] = x[k] - step[k];
        other = f(arg, at, new_g);
        if (!(dot(new_g, new_g, n) < dot(g, g, n)) || !(other <= value + 1e-12 * (fabs(value) + 1e-12)))
            break;
        memcpy(x, at, (size_t)n * sizeof *x);
        memcpy(g, new_g, (size_t)n * sizeof *g);
        value = other;
    }
    return value;
}

double fit_huber(double r, double delta, double *slope)
{
    if (fabs(r) <= delta) {
        *slope = r;
        return r * r / 2;
    }
    *slope = copysign(delta, r);
    return delta * (fabs(r) - delta / 2);
}

double fit_log_sum(const double *x, int n, double *share)
{
    double most = x[0], sum = 0;

    for (int i = 1; i < n; i++)
        most = fmax(most, x[i]);
    for (int i = 0; i < n; i++)
        sum += share[i] = exp(x[i] - most);
    for (int i = 0; i < n; i++)
        share[i] /= sum;
    return most + log(sum);
}

/* ---- threads ---- */

struct fit_jobs {
    void (*f)(void *arg, int i);
    void *arg;
    int n;
    atomic_int next;
};

static void take_jobs(void *arg, int thread)
{
    struct fit_jobs *j = arg;

    (void)thread;
    for (int i = atomic_fetch_add(&j->next, 1); i < j->n; i = atomic_fetch_add(&j->next, 1))
        j->f(j->arg, i);
}

void fit_parallel(int threads, int n, void (*f)(void *arg, int i), void *arg)
{
    struct fit_jobs j = {.f = f, .arg = arg, .n = n};
    struct err ignored;

    pool_run(threads < n ? threads : n > 0 ? n : 1, take_jobs, &j, &ignored); /* with fewer threads it is done all the same */
}

/* ---- random numbers, order ---- */

double fit_uniform(uint64_t seed, uint64_t stream, uint64_t i)
{
    uint32_t word[4];

    rng_philox(seed, i, stream, word);
    return ((double)((uint64_t)word[0] << 20 | word[1] >> 12) + .5) * 0x1p-52;
}

void fit_resample(uint64_t seed, uint64_t stream, int n, double *weight)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += weight[i] = -log(fit_uniform(seed, stream, (uint64_t)i));
    for (int i = 0; i < n; i++)
        weight[i] *= n / sum;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double fit_quantile(double *x, int n, double p)
{
    double at = p * (n - 1);
    int i = (int)at;

    if (n == 0)
        return NAN;
    qsort(x, (size_t)n, sizeof *x, by_size);
    return i + 1 < n ? x[i] + (at - i) * (x[i + 1] - x[i]) : x[n - 1];
}

void fit_range_of(double *x, int n, double share, double *low, double *high)
{
    *low = fit_quantile(x, n, (1 - share) / 2);
    *high = fit_quantile(x, n, (1 + share) / 2);
}

/* The rank of each, from 1. */
static void set_ranks(const double *x, int n, double *rank)
{
    for (int i = 0; i < n; i++) {
        int below = 0, same = 0;

        for (int k = 0; k < n; k++) {
            below += x[k] < x[i];
            same += x[k] == x[i];
        }
        rank[i] = below + (same + 1) / 2.0;
    }
}

double fit_rank_correlation(const double *x, const double *y, int n, double *ranks)
{
    double mean = (n + 1) / 2.0, xx = 0, yy = 0, xy = 0, *a = ranks, *b = ranks + n;

    set_ranks(x, n, a);
    set_ranks(y, n, b);
    for (int i = 0; i < n; i++) {
        xx += (a[i] - mean) * (a[i] - mean);
        yy += (b[i] - mean) * (b[i] - mean);
        xy += (a[i] - mean) * (b[i] - mean);
    }
    return xy / sqrt(xx * yy);
}
