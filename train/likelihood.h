/* train/likelihood.h -- how likely texts are to a model.
 *
 * Requests are packed: several stand in one sequence as documents that see themselves alone.  What is asked of the same tokens
 * but for the last is computed once.
 */
#ifndef TRAIN_LIKELIHOOD_H
#define TRAIN_LIKELIHOOD_H

#include "train/model.h"

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

typedef void likelihood_told_fn(void *arg, int64_t done, int64_t all);

/* Answers n requests.  m is whole, and was opened for MODEL_EVAL with reset_positions and reset_attention.  greedy: that is
 * wanted too.  told, unless NULL, hears how many micro-batches of all are done.  ERR_ARG: a request is none of the above. */
int likelihoods(struct model *m, struct likelihood *r, int64_t n, bool greedy, likelihood_told_fn *told, void *arg,
                struct err *e);

#ifdef __cplusplus
}
#endif
#endif
