/* pipelines/ablation/ablation_rank.h -- which variant is better, and how sure that is.
 *
 * Scores are a matrix, NAN where there is none.  Two variants are compared by the differences of their scores at
 * the same seeds: a paired t interval (Student 1908), wide enough that with the stated probability none of all comparisons is
 * wrong (Bonferroni).  Where variants are stopped in rounds, each round is a look, and counts as so many comparisons more.
 */
#ifndef PIPELINES_ABLATION_RANK_H
#define PIPELINES_ABLATION_RANK_H

#include <stdbool.h>

#include "base/err.h"

enum { RANK_VARIANTS = 64, RANK_SEEDS = 1000 }; /* at most */

/* x so that a t variable of so many degrees of freedom is below it with probability p, .5 <= p < 1; to 1e-10, relative. */
double student_quantile(double p, int freedom);

/* A mean and half of its interval's width: INFINITY of one value, NAN of none. */
struct rank_interval {
    double mean, half;
    int n;
};
/* Of those of n values that are numbers, an interval that misses with probability alpha. */
struct rank_interval interval_of(const double *value, int n, double alpha);

/* One variant beside another. */
struct ranked_pair {
    int a, b;                 /* a stands before b in the ranking */
    struct rank_interval gain;     /* of a over b, by seeds that both have */
    int decided;              /* 1: a is better; -1: b is; 0: it may be either */
};

struct ranking {
    int *order;               /* variants, the best first: by the seeds they were given, then the mean */
    struct rank_interval *score;   /* (variants) each by itself, missed with probability alpha */
    struct ranked_pair *pair;   /* (n_pairs) in the order of the ranking */
    int variants, n_pairs, comparisons;
    double alpha;
};

/* What variants scored: score[v * stride + s] for `seeds` seeds. */
struct rank_scores {
    const double *score;
    int variants, seeds, stride;
    bool higher;  /* more is better */
    bool halving; /* before seeds 2, 4, 8 and so on the worse half of those left is stopped, as long as more than two are */
};
/* How many seeds each variant is to have, as far as that is known by the scores there are.  true: no more can become known. */
bool rank_schedule(const struct rank_scores *x, int *upto);
/* How many variants are given seed s, from 0, of so many. */
int rank_active(int variants, int s, bool halving);
/* Ranks them; upto: what rank_schedule said; with halving no score beyond that counts.  ERR_NOMEM. */
int rank_variants(struct ranking *r, const struct rank_scores *x, const int *upto, double alpha, struct err *e);
void ranking_free(struct ranking *r);
#endif
