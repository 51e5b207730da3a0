/* pipelines/fit/fit_scale.h -- the loss of a model as a function of its parameters N and the tokens D that it is trained on.
 *
 * L = E + A / N^alpha + B / D^beta, fitted as Hoffmann et al. do (arXiv:2203.15556, approach 3 and appendix D.3): the sum of
 * Huber's loss of the errors of log L is least, by L-BFGS from a grid of starts.  Of their grid's 4,500 starts those SCALE_STARTS
 * are gone on with that are lowest.  Of points that all have the same tokens nothing is learnt of D: the law is
 * L = E + A / N^alpha, and holds for these tokens.
 */
#ifndef PIPELINES_FIT_SCALE_H
#define PIPELINES_FIT_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "pipelines/fit/fit_points.h"

enum { SCALE_STARTS = 500, SCALE_LEAST = 6 /* points */, SCALE_VALUES = 3 /* of parameters, and of tokens */,
       SCALE_NUMBERS = 5 /* of the law */, SCALE_ONE_NUMBERS = 3 /* of that for one number of tokens */ };

/* E, A and B as logs: e, a, b.  For one number of tokens b is -infinity and beta 0. */
struct scale_law {
    double e, a, alpha, b, beta;
};

struct scale_conf {
    double delta; /* of Huber's loss */
    uint64_t seed;
    int draws, threads;
};

struct scale_fit {
    struct scale_law law;
    int numbers;             /* that were fitted: SCALE_NUMBERS or SCALE_ONE_NUMBERS, then E, A and alpha */
    double objective;        /* sum of Huber's loss */
    double error;            /* root mean square of what is left of log L, for so many numbers fitted */
    struct scale_law *draw;  /* (draws) of a Bayesian bootstrap over points */
    double *noise;           /* (draws) an error of log L, of a point drawn, as large as one that the fit has not seen */
    int draws;
    bool held;               /* whether the law can be fitted without the largest models: */
    struct scale_law without;
};

double scale_loss(const struct scale_law *l, double params, double tokens);
/* Parameters and tokens with the least loss for 6 N D = flops.  false: loss does not fall with both. */
bool scale_optimum(const struct scale_law *l, double flops, double *params, double *tokens);
/* *f is to be freed whatever comes back.  ERR_FORMAT: too few points, or too few different ones; ERR_NOMEM. */
int scale_analyse(struct scale_fit *f, const struct scale_points *p, const struct scale_conf *c, struct err *e);
void scale_fit_free(struct scale_fit *f);
#endif
