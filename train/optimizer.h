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
#include "train/data_parallel.h"
#include "train/exchange.h"
#include "train/layout.h"
#include "train/model.h"
#include "train/shards.h"

#ifdef __cplusplus
extern "C" {
#endif

struct optimizer;

/* A part of the model that this rank trains. */
struct train_part {
    struct model *model;
    struct optimizer *optimizer; /* its own */
    struct data_parallel ranks;  /* those that have the same part */
    struct shards shards;
    float *master;               /* the fp32 weights of this rank's share; NULL: they are the model's */
    float *exp_avg, *exp_avg_sq; /* of the share; the device's */
    struct exchange_call *calls; /* one a bucket */
    /* In the slab's order: how many buckets of weights are being gathered or have been, and are there; in the
     * opposite one: how many of gradients are being reduced or have been. */
    int asked, gathered, reduced;
    int64_t micro_batches; /* of this rank in the step, while backward of the last of them runs; else 0 */
};

/* The parts of a rank; borrowed from the trainer. */
struct optimizer {
    struct device *dev;
    const struct layout *layout;
    struct train_part *parts;
    int n;
    bool overlap_reduce, overlap_gather;
    int64_t blocks;       /* of the norm, of all parts */
    double *sums, *host;  /* one a block; the device's, the host's */
    float *clip;
};

/* What the models of parts have to be opened with, for a model of config: run's multiple and no_master. */
void optimizer_of_run(struct model_run *run, const struct model_config *config, bool sharded, int64_t replicas);
/* Bytes of the optimizer for a part that has been planned for such a run. */
size_t optimizer_bytes(const struct model_memory *m, const struct model_run *run, bool sharded, int64_t replicas);

/* Divides parts, whose models are open, and allocates moments, zeroes.  bucket: parameters of one.  ERR_NOMEM. */
int optimizer_open(struct optimizer *o, struct device *dev, const struct layout *l, struct train_part *parts, int n,
                   bool sharded, size_t bucket, struct err *e);
void optimizer_close(struct optimizer *o); /* the models stay */

/* Weights by params_fill. */
int optimizer_fill(struct optimizer *o, uint64_t seed, struct err *e);
/* Weights and, with moments, those too, from a checkpoint of any layout. */
int optimizer_load(struct optimizer *o, const struct checkpoint *ck, bool moments, struct err *e);
/* All that this rank holds of the state of training, for a saver: *v, to be freed, of *n.  ERR_NOMEM. */
int optimizer_pieces(const struct optimizer *o, struct piece **v, int *n, struct err *e);

/* Reduces a bucket of gradients while backward of the last micro-batch (part->micro_batches) is still
 * at others; gathers a bucket of weights while forward of the next step is still before it.  Two of a
 * part are under way at a time.  The bits do not change.  Gather: when sharded. */
void optimizer_overlap(struct optimizer *o, bool reduce, bool gather);
/* Weights that are on their way have come. */
int optimizer_settle(struct optimizer *o, struct err *e);

/* Gradients become the sums over all ranks that have a share in them; when sharded, of this rank's share
 * alone.  micro_batches: those of this rank in the step; data_parallel_add was called for all but the last. */
int optimizer_reduce(struct optimizer *o, int64_t micro_batches, struct err *e);

/* *norm: of the gradients of the whole model, the same on all ranks sharded or not; update() clips
 * to max_norm (0: not at all). */
int optimizer_norm(struct optimizer *o, double max_norm, double *norm, struct err *e);

/* One step of AdamW: a has everything but weight_decay and grad_scale; weight decay is for matrices.
 * Then the models have the new weights. */
int optimizer_update(struct optimizer *o, const struct adamw *a, double weight_decay, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
