/* train/param_buffer.h -- the flat buffers of parameters and of their gradients, and how ranks share them (ZeRO,
 * arXiv:1910.02054; FSDP, arXiv:2304.11277).
 *
 * A part of a model has a param buffer for its dense parameters and, if it has experts, one for those, which other ranks share.
 * Each has a table of parameters (params.h); weights and gradients lie in flat buffers of its layout, which is cut in two ways:
 *     units     what a pass needs at a time: the embeddings, a layer, the final norm with the output layer
 *     buckets   what is reduced or gathered in one call; of each, every rank keeps one shard (bucketing.h)
 * As long as gradients are whole on each rank a bucket is of any size.  ZeRO-2 divides gradients and ZeRO-3 weights too: then a
 * bucket is a unit, and what is divided is whole in a communication buffer while a pass is at it.  Each unit goes through the
 * same one always, those next to each other through different ones.
 *
 * A pass asks for what it needs, unit by unit, and is the same for ZeRO 0 to 3.  Whatever need not be waited for is under way
 * beside it, two calls at a time, since each takes buffers of the transport: gradients are reduced in backward's order, weights
 * gathered in forward's.
 */
#ifndef TRAIN_PARAM_BUFFER_H
#define TRAIN_PARAM_BUFFER_H

#include "train/bucketing.h"
#include "train/data_parallel.h"
#include "train/exchange.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What each replica keeps its shard of alone (ZeRO 1 to 3), by the names of --data-parallel-sharding-strategy; each has what
 * stands before it too. */
enum sharding { NO_SHARD, SHARD_OPTIM, SHARD_OPTIM_GRADS, SHARD_OPTIM_GRADS_PARAMS };

/* How ranks share it.  Zeroed: this rank has it alone. */
struct param_buffer_conf {
    enum sharding sharding;
    struct comm *replicas; /* the ranks that have the same weights and add up their gradients; NULL: this one alone */
    struct comm *model;    /* those that together have each of these weights of the model once; NULL: this one alone */
    size_t align;          /* units begin at multiples of so many elements, and shards too; 0: 1 */
    enum dtype state[PARAM_STATES]; /* of what the optimizer keeps of it */
    bool offload;          /* the optimizer's state is on the host, fp32 weights too */
    bool bf16_alone;       /* there are no fp32 weights: those of bf16 are updated, and rounded stochastically */
    size_t bucket;         /* elements that are enough to be reduced or gathered in one call; 0: all */
    int64_t micro_batches; /* the most of a step, of one rank; 0: 1 */
    bool tree;             /* gradients have the same bits for any number of replicas (data_parallel.h) */
    int copies;            /* of gradients: of the rows of each rank that it serves, added up as the upper part of the tree;
                              0: 1 */
    /* A bucket of gradients is reduced while backward is still at others, of weights gathered while forward is still before it.
     * The bits do not change. */
    bool overlap_reduce, overlap_gather;
    /* Gradients are rounded to bf16 when they leave a rank, once, and their sum, which comm.h has in fp32, when it comes. */
    bool reduce_bf16;
};

/* Among how many ranks it is divided. */
static inline int param_buffer_ranks(const struct param_buffer_conf *c)
{
    return c->sharding && c->replicas ? c->replicas->size : 1;
}
/* Whether each rank has but its shard of x. */
static inline bool param_buffer_shares(const struct param_buffer_conf *c, enum sharding x)
{
    return param_buffer_ranks(c) > 1 && c->sharding >= x;
}

static inline int param_buffer_copies(const struct param_buffer_conf *c)
{
    return c->copies > 1 ? c->copies : 1;
}
/* Whether the sum over copies and ranks comes before that over micro-batches. */
static inline bool param_buffer_by_turns(const struct param_buffer_conf *c)
{
    return c->copies > 1 && c->sharding >= SHARD_OPTIM_GRADS;
}

enum { COMM_BUFFERS = 4, COMM_UNDER_WAY = 2 };

/* Bytes; of what there is not 0. */
struct param_buffer_memory {
    size_t weights, low, grads;   /* the flat buffers */
    size_t gathered, reduced;     /* beside them: communication buffers of weights; those of gradients, sums, shards */
    size_t elements;              /* of a flat buffer: a number, as what follows */
    size_t bucket;                /* of the largest one */
    int tensors;                  /* how many parameters are in it */
    struct matrix_size matrix;    /* of those that are updated whole */
    size_t state[PARAM_STATES];   /* of each state of the optimizer's, of the fullest shard */
    size_t unit[COMM_BUFFERS];    /* of the largest unit that goes through each communication buffer */
    bool trained;                 /* there are gradients, and an optimizer keeps state */
};

/* A unit: where it lies now. */
struct param_unit {
    size_t at;     /* its first element */
    void *weights; /* in the type of the matrix products; NULL: not here */
    float *grads;  /* NULL: not here */
};

/* A communication buffer. */
struct comm_buffer {
    void *p;
    int unit;  /* which one is in it, or on its way; -1: none */
    bool held; /* by a pass */
    int64_t micro, micro_batches; /* gradients: of which micro-batch of how many */
    struct exchange_call call;
};

struct param_buffer {
    struct param_buffer_conf conf;
    struct params params;
    struct bucketing buckets; /* one of one shard, the flat buffer, if it is not divided */
    struct device *dev;
    enum dtype dt;
    struct param_buffer_memory memory;
    float *weights; /* fp32, all of them; NULL: each rank keeps those of its shard elsewhere */
    uint16_t *low;  /* bf16 copy of them; NULL with fp32 */
    float *grads;   /* fp32; NULL without backward, or where they are divided */
    struct param_unit *unit; /* params.units + 1 of them */
    bool trained;   /* backward gives gradients; else there are none, and all that is said of them below does nothing */
    bool overwrite; /* the backward pass under way overwrites gradients; else it adds to them */

    /* This rank's shard: of gradients, where they are divided; of weights, where those are: fp32, set by who updates them
     * (zero_shard.h), or as they are sent if they are not made of fp32 ones on this device. */
    float *shard_grads;
    const float *shard_main;
    const void *shard_sent;

    /* What is under way. */
    struct data_parallel sums;       /* over the micro-batches of this rank */
    int64_t micro, micro_batches;    /* backward is at, of so many */
    struct exchange_call *calls;     /* one a bucket */
    struct comm_buffer gather[COMM_BUFFERS], reduce[COMM_BUFFERS]; /* p NULL: all ranks have the units */
    uint16_t *wire[COMM_BUFFERS];    /* bf16 gradients: of a communication buffer, or of buckets by turns; NULL: they are fp32 */
    int way;                         /* of the pass that gathers: 1 forward, -1 backward */
    /* In the layout's order: how many buckets of weights are being gathered or have been, and are there; in the opposite one:
     * how many of gradients are being reduced or have been. */
    int asked, gathered, reduced;
};

/* Rounds b->params, which has been laid out, and measures; nothing is allocated on a device.  trained: with gradients.
 * ERR_NOMEM. */
int param_buffer_plan(struct param_buffer *b, const struct param_buffer_conf *conf, enum dtype dt, bool trained, struct err *e);
/* Allocates what was planned; gradients are 0, weights are not set. */
int param_buffer_open(struct param_buffer *b, struct device *dev, struct err *e);
void param_buffer_close(struct param_buffer *b); /* zeroed is fine */

/* Through which communication buffer a unit goes: layers by turns; the embedding and the output layer, which are large, share
 * one, unless they are the same matrix, or tokens further on are predicted: then the last unit has one of its own. */
int param_buffer_turn(const struct param_buffer *b, int unit);

static inline bool param_unit_empty(const struct param_buffer *b, int unit)
{
    return b->unit[unit].at == b->unit[unit + 1].at;
}

/* Parameter i in the type of the matrix products, and its gradient; NULL for what there is none of (-1). */
static inline void *param_weight(const struct param_buffer *b, int i)
{
    const struct param *p = i < 0 ? NULL : &b->params.v[i];
    const struct param_unit *u = p ? &b->unit[p->unit] : NULL;

    return u && u->weights ? (char *)u->weights + (p->at - u->at) * dtype_size(b->dt) : NULL;
}
static inline float *param_grad(const struct param_buffer *b, int i)
{
    const struct param *p = i < 0 ? NULL : &b->params.v[i];
    const struct param_unit *u = p ? &b->unit[p->unit] : NULL;

    return u && u->grads ? u->grads + (p->at - u->at) : NULL;
}

/* Elements from a copy of a unit's gradients to the next one. */
static inline size_t param_copy_step(const struct param_buffer *b, int unit)
{
    return b->shard_grads ? b->unit[unit + 1].at - b->unit[unit].at : b->params.elements;
}
/* The gradient of parameter i in one of the copies. */
static inline float *param_grad_copy(const struct param_buffer *b, int i, int copy)
{
    float *grad = param_grad(b, i);

    return grad ? grad + (size_t)copy * param_copy_step(b, b->params.v[i].unit) : NULL;
}

/* ---- weights (param_gather.c) ---- */

/* To be called after all of b->weights was written by others than an optimizer: makes the copy in bf16. */
int param_buffer_weights_changed(struct param_buffer *b, struct err *e);

/* A pass is about to read the weights of a unit: returns when they are there.  Units are asked for in their order or, back, from
 * the last on; backward does not ask for the first, unless for a tied output layer. */
int param_gather(struct param_buffer *b, int unit, bool back, struct err *e);
/* It needs them no more for now. */
int param_release(struct param_buffer *b, int unit, struct err *e);
/* Shards have new weights: what was gathered is old.  later: the first units are on their way, as forward will ask for them;
 * else all have come where ranks keep all. */
int param_gather_again(struct param_buffer *b, bool later, struct err *e);
/* Weights that are on their way have come. */
int param_gather_settle(struct param_buffer *b, struct err *e);

/* ---- gradients (param_reduce.c) ---- */

/* Backward of the i-th of n micro-batches of this rank begins: sets b->overwrite. */
void param_reduce_begin(struct param_buffer *b, int64_t i, int64_t n);
/* Backward is about to write the gradients of a unit: those that are only ever added to are 0 then; it is through with it and
 * with all behind it. */
int param_reduce_open(struct param_buffer *b, int unit, struct err *e);
int param_reduce_done(struct param_buffer *b, int unit, struct err *e);
/* Behind backward of a micro-batch. */
int param_reduce_add(struct param_buffer *b, struct err *e);
/* Behind the last: gradients of the shard become the sums over micro-batches and ranks. */
int param_reduce_finish(struct param_buffer *b, struct err *e);
/* Of gradients that are divided, then: *whole is all of parameter i, from all ranks, in a communication buffer until the next of
 * these; and this rank's range of parameter i becomes what stands at whole, or that is added to it. */
int param_reduce_whole(struct param_buffer *b, int i, float **whole, struct err *e);
int param_reduce_keep(struct param_buffer *b, int i, const float *whole, bool add, struct err *e);
/* The gradient of a range of the shard. */
static inline float *param_reduced(const struct param_buffer *b, const struct shard_range *r)
{
    return b->shard_grads ? b->shard_grads + r->here : b->grads + r->at;
}

#ifdef __cplusplus
}
#endif
#endif
