/* train/shards.h -- how data-parallel ranks divide a slab of parameters (ZeRO, arXiv:1910.02054).
 *
 * The slab (params.h) is cut into buckets, contiguous ranges that are reduced and gathered in one
 * call each; a bucket into as many equal shares as there are ranks, and rank r keeps the r-th of
 * each.  What it keeps stands end to end in arrays of its own.  Without sharding there is one
 * share, the rank's own array is the slab, and the same code serves.
 *
 * Buckets are formed from the end, in the order in which backward completes gradients, and are
 * multiples of unit x ranks elements, for which the slab is rounded up.  The unit depends on the
 * model alone: blocks of so many elements, summed one by one, make a gradient norm whose bits do
 * not depend on who has which.
 */
#ifndef TRAIN_SHARDS_H
#define TRAIN_SHARDS_H

#include "train/params.h"
#include "train/pieces.h"

#ifdef __cplusplus
extern "C" {
#endif

struct shards {
    int ranks, rank; /* 1 and 0: not sharded */
    size_t unit;     /* elements */
    int n;           /* buckets */
    size_t *at;      /* n + 1: bucket i is elements at[i] .. at[i + 1] - 1 */
};

/* For a model of so many parameters: at least 64, and at most 2^18 of them make the model. */
size_t shards_unit(int64_t parameters);
/* What slabs must be a multiple of. */
static inline size_t shards_multiple(size_t unit, int ranks)
{
    return unit * (size_t)ranks;
}

/* p: rounded by params_round to shards_multiple; bucket: parameters that are enough for one; 0: a bucket is a section, also
 * an empty one, and sections begin at such multiples.  ERR_NOMEM. */
int shards_open(struct shards *s, const struct params *p, size_t unit, int ranks, int rank, size_t bucket, struct err *e);
void shards_close(struct shards *s);

/* Elements of a share of bucket i; where this rank's begins in the slab, and in its own array. */
static inline size_t shards_share(const struct shards *s, int i)
{
    return (s->at[i + 1] - s->at[i]) / (size_t)s->ranks;
}
static inline size_t shards_from(const struct shards *s, int i)
{
    return s->at[i] + (size_t)s->rank * shards_share(s, i);
}
static inline size_t shards_here(const struct shards *s, int i)
{
    return s->at[i] / (size_t)s->ranks;
}
/* Elements of its own array. */
static inline size_t shards_own(const struct shards *s)
{
    return s->at[s->n] / (size_t)s->ranks;
}

/* A range of one parameter that this rank keeps.  Zeroed, shards_next gives the first; false
 * behind the last. */
struct shard_range {
    const struct param *param;
    size_t at, here, n; /* in the slab, in its own array; elements */
    int bucket, next;
};
bool shards_next(const struct shards *s, const struct params *p, struct shard_range *r);

/* A range as rectangles of its logical tensor, in its order and with no data; v has room for 3 * PIECES_PER_PARAM.  How many. */
int shards_rectangles(const struct shard_range *r, enum checkpoint_part part, struct piece *v);

/* What this rank keeps, as pieces of checkpoint part `part`: data, numbers of dt, is its own array or, with in_slab, the slab.
 * v has room for shards_pieces_max.  How many. */
int shards_pieces_max(const struct shards *s, const struct params *p);
int shards_pieces(const struct shards *s, const struct params *p, enum checkpoint_part part, void *data, enum dtype dt,
                  bool in_slab, struct piece *v);

#ifdef __cplusplus
}
#endif
#endif
