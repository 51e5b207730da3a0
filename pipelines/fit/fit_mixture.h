/* pipelines/fit/fit_mixture.h -- the loss of a target as a function of the weights of a mixture, and the weights with the least.
 *
 * w are weights of K sources that sum to 1, and the parameters p are in this order:
 *   linear       log L = p0 w0 + ... (RegMix, arXiv:2407.01492, its linear regression; of the log)
 *   exponential  L = c + exp(t0 w0 + ...), p = log c, t0 ... (the data mixing law, arXiv:2403.16952: log k is in each t, since
 *                weights sum to 1)
 *   power        L = c + (q0 w0 + ...)^-a, p = log c, log a, log q0 ... (a power law of the tokens that are of use to the
 *                target; where one q stands out, BiMix's, arXiv:2405.14908)
 * All are fitted by least squares of log L, and convex in w, so that the best weights are one minimum.
 */
#ifndef PIPELINES_FIT_MIXTURE_H
#define PIPELINES_FIT_MIXTURE_H

#include <stdbool.h>

#include "base/err.h"
#include "pipelines/fit/fit_points.h"
#include "pipelines/fit/fit_solve.h"

enum mix_form { MIX_LINEAR, MIX_EXPONENTIAL, MIX_POWER, MIX_FORMS };

/* What a form is fitted to. */
struct mix_data {
    int n, sources;
    const double *weight;   /* (n, sources) */
    const double *log_loss; /* (n) */
    const double *count;    /* (n) how much each point counts; NULL: 1 */
};

const char *mix_form_name(enum mix_form f);
int mix_form_params(enum mix_form f, int sources);
/* The log of the loss at w; dp (where it is not NULL) gets its derivatives by the parameters. */
double mix_log_loss(enum mix_form f, const double *p, int sources, const double *w, double *dp);
/* The loss at w; dw gets its derivatives by the weights. */
double mix_loss(enum mix_form f, const double *p, int sources, const double *w, double *dw);
/* Fits from several starts.  The mean square of what is left of log L; NAN: the mixtures that count do not tell the sources
 * apart.  ERR_NOMEM is -1. */
double mix_fit(enum mix_form f, const struct mix_data *d, double *p);
/* Fits on from p. */
double mix_refit(enum mix_form f, const struct mix_data *d, double *p);

/* A target, each form fitted to all points and to all but a mixture in turn. */
struct mix_target {
    double p[MIX_FORMS][FIT_PARAMS];
    double *log_loss;            /* (n) measured */
    double *left[MIX_FORMS];     /* (n) log losses predicted by fits without the point's mixture; NAN: those could not be made */
    double error[MIX_FORMS];     /* root mean square of left - log_loss; NAN: the form has not been fitted */
    double correlation[MIX_FORMS]; /* of ranks, predicted by left and measured */
    int judged[MIX_FORMS];       /* mixtures of which left says something */
    enum mix_form form;          /* which is believed: that of the least error */
};

struct mix_analysis {
    const struct mix_points *points;
    struct mix_target *target; /* (targets) */
    int draws;                 /* bootstrap fits, of the form that is believed */
    double *p;                 /* (draws, targets, FIT_PARAMS) */
    double *noise;             /* (draws, targets) an error of a fit that left a mixture out, drawn */
};

struct mix_fit_conf {
    uint64_t seed;
    int draws, threads;
    int form; /* an enum mix_form, or MIX_FORMS: the best of all */
};

/* Fits all targets.  *a is to be freed whatever comes back; it borrows the points.  ERR_FORMAT: too few mixtures, or they do not
 * tell the sources apart; ERR_NOMEM. */
int mix_analyse(struct mix_analysis *a, const struct mix_points *points, const struct mix_fit_conf *c, struct err *e);
void mix_analysis_free(struct mix_analysis *a);
/* The log of a target's loss at w by fit -1, to all points, or a draw. */
double mix_predict(const struct mix_analysis *a, int target, int draw, const double *w);

/* What is to be least: a sum of targets' losses, and where.  */
struct mix_goal {
    double share[FIT_TARGETS];                  /* of targets, sum 1 */
    double least[FIT_SOURCES], most[FIT_SOURCES]; /* bounds of weights, which some weights meet */
};

/* The goal's loss at w by a fit or draw. */
double mix_goal_loss(const struct mix_analysis *a, const struct mix_goal *g, int draw, const double *w);
/* The weights with the least, by projected gradients from equal weights. */
void mix_best(const struct mix_analysis *a, const struct mix_goal *g, int draw, double *w);
/* n mixtures to measure next, (n, sources): the best first, then those of 2000 drawn by Dirichlet(1) and brought within bounds
 * that are farthest from all that are measured or chosen.  ERR_NOMEM. */
int mix_propose(const struct mix_analysis *a, const struct mix_goal *g, uint64_t seed, int n, double *w, struct err *e);
#endif
