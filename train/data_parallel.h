/* train/data_parallel.h -- ranks that have the same weights and share a batch.
 *
 * Of the micro-batches of a step, rank r of n takes the r-th n-th, in order, so the samples of a
 * step do not depend on n.  Its gradients are added up as they come and then over ranks
 * by an all-reduce; or, to give the same bits for any n, both as one balanced tree over
 * the micro-batches of the step, whose lower levels lie within a rank and whose upper
 * ones are the all-reduce's (comm/comm.h).
 */
#ifndef TRAIN_DATA_PARALLEL_H
#define TRAIN_DATA_PARALLEL_H

#include "comm/comm.h"
#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DATA_PARALLEL_LEVELS = 24 };

struct data_parallel {
    struct device *dev;
    size_t elements;
    int levels;                        /* 0: gradients are added up as they come */
    float *level[DATA_PARALLEL_LEVELS]; /* level[i]: the sum of 2^i micro-batches, the device's */
};

/* How many slabs of gradients a tree over so many micro-batches of a rank keeps. */
int data_parallel_levels(int64_t micro_batches);

/* elements: of the slab of gradients.  micro_batches: the most that a rank takes in a step.
 * tree: the same bits for any number of ranks, as long as each takes a power of two of
 * micro-batches.  dev must outlive it.  ERR_NOMEM. */
int data_parallel_open(struct data_parallel *p, struct device *dev, size_t elements, int64_t micro_batches, bool tree,
                       struct err *e);
void data_parallel_close(struct data_parallel *p);

/* Whether backward of the i-th micro-batch of this rank overwrites the gradients; else it adds. */
bool data_parallel_first(const struct data_parallel *p, int64_t i);
/* To be called after backward of the i-th of n micro-batches of this rank, for all elements at .. at + len - 1 of
 * grads: with a tree, keeps them or adds what was kept to them.  After the last, they are the sum of
 * all n. */
int data_parallel_add(struct data_parallel *p, float *grads, size_t at, size_t len, int64_t i, int64_t n, struct err *e);

/* each[n], of which every rank has filled in its own and left the others 0, becomes whole on all. */
int data_parallel_gather(struct comm *group, double *each, int64_t n, struct err *e);
/* *flag becomes true on all ranks when it is so on one. */
int data_parallel_any(struct comm *group, bool *flag, struct err *e);
/* ERR_ARG unless value is the same on all ranks; what is for the message. */
int data_parallel_same(struct comm *group, int64_t value, const char *what, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
