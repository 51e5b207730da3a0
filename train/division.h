/* train/division.h -- a store divided among the ranks that have the same weights: who keeps what of the
 * optimizer's state, how gradients come together and weights go out.
 *
 * The store is cut into buckets (shards.h).  Those of gradients are reduced in backward's order, those of weights
 * gathered in forward's; two of each are under way at a time, since each takes buffers of the transport.
 *
 * Of gradients that are divided (ZeRO-2) a bucket is a section: backward writes it to a buffer, behind each
 * micro-batch it is summed over the ranks, and each adds its share to what it keeps.  Of weights that are
 * divided (ZeRO-3) a section is gathered into a buffer before a pass reads it, and the one that will be
 * read next while the pass is still at this one.  The buffers are those of store.h's passages.
 */
#ifndef TRAIN_DIVISION_H
#define TRAIN_DIVISION_H

#include "train/data_parallel.h"
#include "train/exchange.h"
#include "train/shards.h"
#include "train/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How. */
struct division_conf {
    int64_t micro_batches; /* the most of a step, of one rank */
    bool tree;             /* the same bits for any number of ranks (data_parallel.h) */
    /* A bucket of gradients is reduced while backward is still at others, of weights gathered while forward is
     * still before it.  The bits do not change. */
    bool overlap_reduce, overlap_gather;
    /* Gradients are rounded to bf16 when they leave a rank, once, and their sum, which comm.h has in fp32, when it comes. */
    bool reduce_bf16;
    struct device *host; /* the CPU, if the store's conf says offload */
};

/* A buffer that sections pass through. */
struct passage {
    void *p;
    int section; /* which one is in it, or on its way; -1: none */
    bool held;   /* by a pass */
    int64_t micro, micro_batches; /* gradients: of which micro-batch of how many */
    struct exchange_call call;
};

struct division {
    struct store *store; /* its conf says which ranks */
    struct device *dev;
    struct data_parallel sums;   /* over the micro-batches of this rank */
    float *master;               /* the fp32 weights of this rank's share; NULL: they are the store's, or there are none */
    float *exp_avg, *exp_avg_sq; /* of the share */
    struct device *host;         /* where master and moments are; NULL: where the model is */
    void *share;                 /* with host or bf16_alone, and weights that pass: this rank's, as they are sent; else NULL */
    float *stage_grad[2];        /* with host: pieces on their way */
    void *stage_weight;
    float *grads;                /* of the share; NULL: they are the store's */
    struct passage weight[STORE_PASSAGES], grad[STORE_PASSAGES]; /* p NULL: all have them */
    int way; /* of the pass that reads: 1 forward, -1 backward */
    struct exchange_call *calls; /* one a bucket */
    uint16_t *wire[STORE_PASSAGES]; /* bf16 gradients under way: of a passage, or of buckets by turns; NULL: they are fp32 */
    bool overlap_reduce, overlap_gather;
    /* In the slab's order: how many buckets of weights are being gathered or have been, and are there; in the
     * opposite one: how many of gradients are being reduced or have been. */
    int asked, gathered, reduced;
};

/* Bytes beside the store's slabs: buffers of weights; of gradients, and shares of them; the optimizer's state; and what is on
 * the host instead. */
struct division_memory {
    size_t weights, grads, optimizer, host;
};
struct division_memory division_plan(const struct store_memory *m, const struct store_conf *c, enum dtype dt,
                                     const struct division_conf *how);

/* Divides an open store; moments are 0.  ERR_NOMEM. */
int division_open(struct division *d, struct store *store, const struct division_conf *how, struct err *e);
void division_close(struct division *d); /* the store stays; zeroed is fine */

/* ---- weights ---- */

/* The share gets initial weights (params_fill); then division_weights_changed is due. */
int division_fill(struct division *d, uint64_t seed, struct err *e);
/* The share's fp32 weights were written: the store has them all. */
int division_weights_changed(struct division *d, struct err *e);
/* The model's points (struct model_watch): a pass is about to read a section; it needs it no more. */
int division_reads(struct division *d, int section, bool back, struct err *e);
int division_left(struct division *d, int section, struct err *e);
/* Weights that are on their way have come. */
int division_settle(struct division *d, struct err *e);

/* What this rank keeps, as pieces of a checkpoint; v has room for division_pieces_max.  How many. */
int division_pieces_max(const struct division *d);
int division_pieces(const struct division *d, enum checkpoint_part part, struct piece *v);

/* ---- gradients ---- */

/* The model's points: backward of the i-th of n micro-batches of this rank is about to write a section, is through with it. */
int division_writes(struct division *d, int section, struct err *e);
int division_wrote(struct division *d, int section, int64_t i, int64_t n, struct err *e);
/* Behind backward of the i-th of n. */
int division_add(struct division *d, int64_t i, int64_t n, struct err *e);
/* Behind the last of n: gradients of the share become the sums over micro-batches and ranks. */
int division_reduce(struct division *d, int64_t n, struct err *e);
/* Gets on what is under way; *some: there is something. */
int division_poke(struct division *d, bool *some, struct err *e);
/* The gradient of what of a parameter this rank keeps. */
float *division_grad(const struct division *d, const struct shard_range *r);

/* How many blocks the norm has; sums[blocks] (the device's) get the squares of what this rank keeps and no other rank of the
 * model counts. */
int64_t division_blocks(const struct division *d);
int division_squares(const struct division *d, double *sums, struct err *e);

/* AdamW on the share; then the store has all new weights, or they are under way. */
int division_update(struct division *d, const struct adamw *a, double weight_decay, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
