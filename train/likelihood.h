/* train/likelihood.h -- how likely texts are to a model.
 *
 * Where a model tells documents apart, requests are packed: several stand in one sequence as documents that see themselves
 * alone; else each has a sequence.  What is asked of the same tokens but for the last is computed once, unless tensor ranks share
 * the vocabulary.
 */
#ifndef TRAIN_LIKELIHOOD_H
#define TRAIN_LIKELIHOOD_H

#include "train/passes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How likely ids[from .. n) are behind those before them. */
struct likelihood {
    const int32_t *ids; /* below the vocabulary */
    int64_t n, from;    /* 0 < from < n <= tokens of a sequence of the model + 1 */
    double sum;         /* gets the sum of their logarithms (natural) */
    bool greedy;        /* gets whether each was the likeliest, of equals the first */
};

/* Answers n requests, which all ranks of the layout of p have; all get the answers.  greedy: that is wanted too.  ERR_ARG: a
 * request is none of the above. */
int likelihoods(struct passes *p, struct likelihood *r, int64_t n, bool greedy, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
