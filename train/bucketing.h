/* train/bucketing.h -- how data-parallel ranks divide a flat buffer (ZeRO, arXiv:1910.02054).
 *
 * A flat buffer (params.h) is cut into buckets, contiguous ranges that are reduced and gathered in one call each; a bucket into
 * as many equal shards as there are ranks, and rank r keeps the r-th of each.  What it keeps stands end to end in arrays of its
 * own.  Without sharding there is one shard, the rank's own array is the flat buffer, and the same code serves.
 *
 * Buckets are formed from the end, in the order in which backward completes gradients, and are multiples of align x ranks
 * elements, for which the flat buffer is rounded up.  The alignment depends on the model alone: blocks of so many elements,
 * summed one by one, make a gradient norm whose bits do not depend on who has which.
 */
#ifndef TRAIN_BUCKETING_H
#define TRAIN_BUCKETING_H

#include "train/params.h"
#include "train/pieces.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bucketing {
    int ranks, rank; /* 1 and 0: not sharded */
    size_t align;    /* elements */
    int n;           /* buckets */
    size_t *at;      /* n + 1: bucket i is elements at[i] .. at[i + 1] - 1 */
};

/* For a model of so many parameters: at least 64, and at most 2^18 of them make the model. */
size_t bucketing_align(int64_t parameters);
/* What the elements of flat buffers must be a multiple of. */
static inline size_t bucketing_multiple(size_t align, int ranks)
{
    return align * (size_t)ranks;
}

/* p: rounded by params_round to bucketing_multiple; bucket: parameters that are enough for one; 0: a bucket is a unit, also
 * an empty one, and units begin at such multiples.  ERR_NOMEM. */
int bucketing_open(struct bucketing *s, const struct params *p, size_t align, int ranks, int rank, size_t bucket, struct err *e);
void bucketing_close(struct bucketing *s);

/* Elements of a shard of bucket i; where this rank's begins in the flat buffer, and in its own array. */
static inline size_t bucketing_share(const struct bucketing *s, int i)
{
    return (s->at[i + 1] - s->at[i]) / (size_t)s->ranks;
}
static inline size_t bucketing_from(const struct bucketing *s, int i)
{
    return s->at[i] + (size_t)s->rank * bucketing_share(s, i);
}
static inline size_t bucketing_here(const struct bucketing *s, int i)
{
    return s->at[i] / (size_t)s->ranks;
}
/* Elements of its own array. */
static inline size_t bucketing_own(const struct bucketing *s)
{
    return s->at[s->n] / (size_t)s->ranks;
}

/* Elements of the largest array of any rank's that has room for the k-th state (struct param_rule) of what it keeps: all of its
 * own array where each parameter has such a state; else the ranges of those that do, each at a multiple of 16. */
size_t bucketing_state(const struct bucketing *s, const struct params *p, int k);
/* Whether each parameter has a k-th state. */
bool bucketing_all_have(const struct params *p, int k);

/* A range of one parameter that this rank keeps.  Zeroed, bucketing_next gives the first; false
 * behind the last. */
struct shard_range {
    const struct param *param;
    size_t at, here, n; /* in the flat buffer, in its own array; elements */
    size_t second; /* where it is among the ranges of parameters that have a second state */
    int bucket, next;
};
bool bucketing_next(const struct bucketing *s, const struct params *p, struct shard_range *r);

/* A range as rectangles of its logical tensor, in its order and with no data; v has room for 3 * PIECES_PER_PARAM.  How many. */
int bucketing_rectangles(const struct shard_range *r, enum checkpoint_part part, struct piece *v);

/* The same with data, numbers of dt: that of its first element. */
int bucketing_range_pieces(const struct shard_range *r, enum checkpoint_part part, void *data, enum dtype dt, struct piece *v);

/* What this rank keeps, as pieces of checkpoint part `part`: data, numbers of dt, is its own array or, with in_flat, the
 * flat buffer.
 * v has room for bucketing_pieces_max.  How many. */
int bucketing_pieces_max(const struct bucketing *s, const struct params *p);
int bucketing_pieces(const struct bucketing *s, const struct params *p, enum checkpoint_part part, void *data, enum dtype dt,
                  bool in_flat, struct piece *v);

#ifdef __cplusplus
}
#endif
#endif
