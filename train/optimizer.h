/* train/optimizer.h -- from the gradients of all ranks to new weights: sums, norm, clipping, AdamW. */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include "train/data_parallel.h"
#include "train/layout.h"
#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A part of the model that this rank trains. */
struct train_part {
    struct model *model;
    struct data_parallel ranks;  /* those that have the same part */
    float *exp_avg, *exp_avg_sq; /* slabs as the weights'; the device's */
};

/* The parts of a rank; borrowed from the trainer. */
struct optimizer {
    struct device *dev;
    const struct layout *layout;
    struct train_part *parts;
    int n;
    double *sumsq; /* the device's */
    float *clip;
};

/* Allocates the moments of parts, whose models are open, as zeroes.  ERR_NOMEM. */
int optimizer_open(struct optimizer *o, struct device *dev, const struct layout *l, struct train_part *parts, int n,
                   struct err *e);
void optimizer_close(struct optimizer *o); /* the models stay */

/* Gradients become the sums over all ranks that have a share in them. */
int optimizer_reduce(struct optimizer *o, struct err *e);

/* *norm: of the gradients of the whole model, the same on all ranks; update() clips to max_norm
 * (0: not at all). */
int optimizer_norm(struct optimizer *o, double max_norm, double *norm, struct err *e);

/* One step of AdamW: a has everything but weight_decay and grad_scale; weight decay is for matrices. */
int optimizer_update(struct optimizer *o, const struct adamw *a, double weight_decay, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
