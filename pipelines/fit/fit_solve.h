/* pipelines/fit/fit_solve.h -- small numerics of fits: least squares, a minimum of a smooth function, random numbers by place.
 *
 * Everything here is a function of its arguments alone, in a stated order of sums, so results have the same bits in any thread.
 */
#ifndef PIPELINES_FIT_SOLVE_H
#define PIPELINES_FIT_SOLVE_H

#include <stdbool.h>
#include <stdint.h>

enum { FIT_PARAMS = 72 }; /* of a function, at most */

/* The value of a function at x, and its gradient to g. */
typedef double fit_function(const void *arg, const double *x, double *g);

/* Solves a x = b for x by Householder reflections, in the least squares sense where rows > columns: a is rows x columns, row by
 * row.  Both are overwritten.  The number of columns that do not depend on those before them; x is set if it is all. */
int fit_least_squares(double *a, double *b, int rows, int columns, double *x);

/* Goes downhill from x (n numbers) by L-BFGS (liblbfgs) with a line search for the strong Wolfe conditions, at most so many
 * steps; x gets where it ends.  f is never negative.  The value there; negative: out of memory. */
double fit_descend(fit_function *f, const void *arg, int n, double *x, int steps);
/* Makes a minimum exact: Newton's iteration for a gradient of 0, by second differences, as long as that shrinks.  The value. */
double fit_polish(fit_function *f, const void *arg, int n, double *x);

/* Of |r| beyond delta only the length counts: r^2 / 2 within (Huber 1964); *slope: its derivative.  INFINITY: squares alone. */
double fit_huber(double r, double delta, double *slope);
/* log(exp(x[0]) + ... + exp(x[n - 1])); share: what each is of the sum. */
double fit_log_sum(const double *x, int n, double *share);

/* Does f(arg, i) for i = 0 .. n - 1 by so many threads, in any order. */
void fit_parallel(int threads, int n, void (*f)(void *arg, int i), void *arg);

/* Uniform in (0, 1): number i of a stream of a seed. */
double fit_uniform(uint64_t seed, uint64_t stream, uint64_t i);
/* Weights of a Bayesian bootstrap (Rubin 1981) with mean 1: exponential numbers over their mean, Dirichlet(1) times n. */
void fit_resample(uint64_t seed, uint64_t stream, int n, double *weight);
/* The p-quantile of n numbers, between neighbours linear (numpy's default); sorts them.  NAN of none. */
double fit_quantile(double *x, int n, double p);
/* Where the middle share of n numbers begins and ends; sorts them. */
void fit_range_of(double *x, int n, double share, double *low, double *high);
/* Spearman's rank correlation, equal numbers with their mean rank.  NAN: one of both is constant.  ranks: room for 2 n. */
double fit_rank_correlation(const double *x, const double *y, int n, double *ranks);
#endif
