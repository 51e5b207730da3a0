/* train/optimizer.h -- from the gradients of all ranks to new weights: sums, norm, clipping, AdamW.
 *
 * Sharded (ZeRO-1, arXiv:1910.02054) each data-parallel rank keeps the moments of its share
 * of the parameters alone, and with bf16 the fp32 weights: gradients are reduce-scattered, the share is
 * updated, and the weights that the model computes with are gathered.  Each element goes
 * through the same arithmetic as without, so the bits are the same.
 *
 * A gradient is added up in this order: over the micro-batches of a rank, over the data-parallel ranks, over
 * the tensor ranks (what each has a share of), over the two copies of a tied embedding.
 */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include "train/checkpoint.h"
#include "train/division.h"
#include "train/layout.h"
#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct optimizer;

/* A part of the model that this rank trains. */
struct train_part {
    struct model *model;
    struct optimizer *optimizer; /* its own */
    struct division *divisions;  /* one of each store of the model, in their order */
    int64_t micro, micro_batches; /* of this rank in the step: the one backward is at, of so many; else 0 of 0 */
};

/* The parts of a rank; borrowed from the trainer.  Each has the same number of stores, and those in the same place are
 * divided among the same ranks. */
struct optimizer {
    struct device *dev, *state; /* of the models; where weights to save, and moments, are */
    const struct layout *layout;
    struct train_part *parts;
    int n, stores;
    int64_t blocks;       /* of the norm: of the first stores of all parts, then of the second ones */
    double *sums, *host;  /* one a block; the device's, and pinned */
    float *clip;          /* the device's */
};

/* Bytes of an optimizer that are not of its divisions. */
size_t optimizer_bytes(void);

/* Divides the stores of parts, whose models are open, and watches these.  ERR_NOMEM. */
int optimizer_open(struct optimizer *o, struct device *dev, const struct layout *l, struct train_part *parts, int n,
                   const struct division_conf *how, struct err *e);
void optimizer_close(struct optimizer *o); /* the models stay */

/* Weights by params_fill. */
int optimizer_fill(struct optimizer *o, uint64_t seed, struct err *e);
/* Weights and, with moments, those too, from a checkpoint of any layout. */
int optimizer_load(struct optimizer *o, const struct checkpoint *ck, bool moments, struct err *e);
/* All that this rank holds of the state of training, for a saver: *v, to be freed, of *n.  ERR_NOMEM. */
int optimizer_pieces(const struct optimizer *o, struct piece **v, int *n, struct err *e);

/* Weights that are on their way have come. */
int optimizer_settle(struct optimizer *o, struct err *e);

/* To be called before and after backward of the i-th of n micro-batches of this rank; *first: it is to overwrite gradients,
 * else to add to them. */
void optimizer_before(struct train_part *p, int64_t i, int64_t n, bool *first);
int optimizer_after(struct train_part *p, struct err *e);

/* Behind the last: gradients become the sums over all ranks that have a share in them; when sharded, of this rank's share
 * alone. */
int optimizer_reduce(struct optimizer *o, int64_t micro_batches, struct err *e);

/* *norm: of the gradients of the whole model, the same on all ranks sharded or not; update() clips
 * to max_norm (0: not at all).  Waits for the device, and so for all that was queued before. */
int optimizer_norm(struct optimizer *o, double max_norm, double *norm, struct err *e);

/* One step of AdamW: a has everything but weight_decay and grad_scale; weight decay is for matrices.
 * Then the models have the new weights. */
int optimizer_update(struct optimizer *o, const struct adamw *a, double weight_decay, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
