/* train/optimizer.h -- from the gradients of all ranks to new weights: sums, norm, clipping, update.
 *
 * A gradient is added up in this order: over the micro-batches of a rank, over the data-parallel ranks, over
 * the tensor ranks (what each has a share of), over the two copies of a tied embedding.
 */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include "train/checkpoint.h"
#include "train/layout.h"
#include "train/matrices.h"
#include "train/model.h"
#include "train/zero_shard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A part of the model that this rank trains. */
struct train_part {
    struct model *model;
    struct zero_shard *shards; /* one of each param buffer of the model, in their order */
};

/* The parts of a rank; borrowed from the trainer.  Each has the same number of buffers, and those in the same place are
 * divided among the same ranks. */
struct optimizer {
    struct device *dev, *state; /* of the models; where weights to save, and their state, are */
    const struct layout *layout;
    const struct optim_conf *optim;
    struct train_part *parts;
    int n, buffers;
    int64_t blocks;       /* of the norm: of the first buffers of all parts, then of the second ones */
    double *sums, *host;  /* one a block; the device's, and pinned */
    int64_t spreads;
    double *spread;       /* one a block of all ranks that share the experts, NULL: their rows are summed as they come */
    float *clip;          /* the device's */
    double clipped;       /* its number */
    struct matrices matrices;
};

/* Bytes of an optimizer that are not of its shards. */
size_t optimizer_bytes(void);

/* Opens the shards of parts, whose models are open; host: the CPU, where the state is if their conf says offload.  ERR_NOMEM. */
int optimizer_open(struct optimizer *o, struct device *dev, struct device *host, const struct optim_conf *optim,
                   const struct layout *l, struct train_part *parts, int n, struct err *e);
void optimizer_close(struct optimizer *o); /* the models stay */

/* Weights by params_fill. */
int optimizer_fill(struct optimizer *o, uint64_t seed, struct err *e);
/* Weights and, with state, what the optimizer keeps, else 0, from a checkpoint of any layout.  ERR_ARG when it has that of
 * another kind. */
int optimizer_load(struct optimizer *o, const struct checkpoint *ck, bool state, struct err *e);
/* All that this rank holds of the state of training, for a saver: *v, to be freed, of *n.  ERR_NOMEM. */
int optimizer_pieces(const struct optimizer *o, struct piece **v, int *n, struct err *e);

/* Weights that are on their way have come. */
int optimizer_settle(struct optimizer *o, struct err *e);

/* Behind the last micro-batch: gradients become the sums over all ranks that have some of them; when sharded, of this rank's
 * shard alone. */
int optimizer_reduce(struct optimizer *o, struct err *e);

/* *norm: of the gradients of the whole model, the same on all ranks sharded or not; update() clips
 * to max_norm (0: not at all).  Waits for the device, and so for all that was queued before. */
int optimizer_norm(struct optimizer *o, double max_norm, double *norm, struct err *e);

/* One step; its conf and grad_scale are the optimizer's.  Then the models have the new weights. */
int optimizer_update(struct optimizer *o, const struct optim_step *s, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
