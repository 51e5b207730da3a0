/* train/store.h -- weights that are divided among ranks in one way, and their gradients.
 *
 * A model part has one store or more, each with a table of parameters (params.h) of its own.  The passes find
 * weights and gradients by store_weight() and store_grad() alone: a section's may lie in slabs of the whole
 * store or, where ranks divide weights or gradients, in a buffer of the optimizer for as long as a pass
 * needs them (struct model_watch says when).
 */
#ifndef TRAIN_STORE_H
#define TRAIN_STORE_H

#include "comm/comm.h"
#include "kernels/device.h"
#include "train/shards.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What of a store each of its replicas keeps a share of alone (ZeRO 1 to 3, arXiv:1910.02054), by the names of
 * --data-parallel-sharding-strategy; each has what stands before it too. */
enum sharding { NO_SHARD, SHARD_OPTIM, SHARD_OPTIM_GRADS, SHARD_OPTIM_GRADS_PARAMS };

/* How ranks divide a store.  Zeroed: this rank has it alone. */
struct store_conf {
    enum sharding sharding;
    struct comm *replicas; /* the ranks that have the same weights and add up their gradients; NULL: this one alone */
    struct comm *model;    /* those that together have each of these weights of the model once; NULL: this one alone */
    size_t unit;           /* sections begin at multiples of so many elements, and shares too; 0: 1 */
    bool offload;          /* the optimizer's state is on the host, fp32 weights too */
    bool bf16_alone;       /* there are no fp32 weights: those of bf16 are updated, and rounded stochastically */
    size_t bucket;         /* elements that are enough to be reduced or gathered in one call; 0: all */
};

/* Among how many ranks it is divided. */
static inline int store_ranks(const struct store_conf *c)
{
    return c->sharding && c->replicas ? c->replicas->size : 1;
}
/* Whether each rank has but a share of x. */
static inline bool store_shares(const struct store_conf *c, enum sharding x)
{
    return store_ranks(c) > 1 && c->sharding >= x;
}

/* What is not in a slab passes through buffers, each section through the same one always: those next to
 * each other through different ones. */
enum { STORE_PASSAGES = 4 };

/* Bytes of slabs; a slab that the store does not have is 0. */
struct store_memory {
    size_t weights, low, grads;
    size_t elements;               /* of a slab: a number */
    size_t bucket;                 /* elements of the largest one */
    size_t passage[STORE_PASSAGES]; /* elements of the largest section that passes there */
};

struct store_section {
    size_t at;     /* its first element */
    void *weights; /* in the type of the matrix products; NULL: not here */
    float *grads;  /* NULL: not here */
};

struct store {
    struct store_conf conf;
    struct params params;
    struct shards shards; /* how it is divided: one share, the slab, if it is not */
    struct device *dev;
    enum dtype dt;
    struct store_memory memory;
    float *weights; /* fp32, all of them; NULL: each rank keeps those of its share elsewhere */
    uint16_t *low;  /* bf16 copy of them; NULL with fp32 */
    float *grads;   /* fp32; NULL without backward */
    struct store_section *section; /* params.sections + 1 of them */
    bool overwrite; /* the backward pass under way overwrites gradients; else it adds to them */
};

/* Rounds s->params, which has been laid out, and measures; nothing is allocated on a device.  ERR_NOMEM. */
int store_plan(struct store *s, const struct store_conf *conf, enum dtype dt, bool backward, struct err *e);
/* Allocates what was planned; gradients are 0, weights are not set. */
int store_open(struct store *s, struct device *dev, struct err *e);
void store_close(struct store *s); /* zeroed is fine */

/* To be called after all of s->weights was written: makes the copy in bf16. */
int store_weights_changed(struct store *s, struct err *e);

/* Where a section passes through: layers by turns; the embedding and the output layer, which are large, through one,
 * unless they are the same matrix: then the last section has one of its own. */
int store_passage(const struct store *s, int section);

/* Parameter i in the type of the matrix products, and its gradient; NULL for what there is none of (-1). */
static inline void *store_weight(const struct store *s, int i)
{
    const struct param *p = i < 0 ? NULL : &s->params.v[i];
    const struct store_section *c = p ? &s->section[p->section] : NULL;

    return c && c->weights ? (char *)c->weights + (p->at - c->at) * dtype_size(s->dt) : NULL;
}
static inline float *store_grad(const struct store *s, int i)
{
    const struct param *p = i < 0 ? NULL : &s->params.v[i];
    const struct store_section *c = p ? &s->section[p->section] : NULL;

    return c && c->grads ? c->grads + (p->at - c->at) : NULL;
}

#ifdef __cplusplus
}
#endif
#endif
