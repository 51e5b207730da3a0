/* train/layout.h -- which part of the work each rank has.
 *
 * Ranks stand in Megatron's order "tp-cp-ep-dp-pp": those of a tensor group are neighbours, then those
 * that share a sequence, then the data-parallel ones, and the stages of the pipeline are furthest
 * apart:
 *     rank = tensor + tensors * (context + contexts * (data + datas * stage))
 */
#ifndef TRAIN_LAYOUT_H
#define TRAIN_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many ranks share what. */
struct layout_sizes {
    int64_t tensor, context, pipe;
    int64_t expert;  /* of the ranks that hold copies of the model (context times data), so many neighbours share the experts */
    bool sequence;   /* tensor ranks share the rows of norms and dropout too */
};

/* This process alone. */
#define LAYOUT_ALONE ((struct layout_sizes){.tensor = 1, .context = 1, .pipe = 1, .expert = 1})

struct layout {
    int64_t data;              /* data-parallel ranks: what is left */
    struct comm *world;        /* the caller's */
    struct comm *tensor, *context, *pipe;
    struct comm *batch;      /* differ in the data index alone: share the samples of a step */
    struct comm *replicas;   /* batch and context: hold the same weights, add up their gradients; data-parallel
                                neighbours first, so that they are a tree of their own in every sum */
    struct comm *model;      /* tensor and pipe: hold one copy of the model */
    struct comm *expert;     /* share the experts; of these, as replicas and model: */
    struct comm *expert_replicas, *expert_model;
    struct comm *tied;       /* the first and the last stage, for an embedding that both have; NULL elsewhere,
                                and with one stage */
};

/* How many data-parallel ranks `ranks` make.  ERR_ARG unless it is a whole number. */
int layout_data(const struct layout_sizes *s, int64_t ranks, int64_t *data, struct err *e);

/* All ranks of world call it.  world must outlive it.  The errors of layout_data and of comm_split. */
int layout_open(struct layout *l, struct comm *world, const struct layout_sizes *s, struct err *e);
void layout_close(struct layout *l);

/* The rank, of world, that has the same layers as this one: index `replica` of those that hold the same weights (experts: the
 * same experts), index `tensor` of those that share them. */
int layout_rank(const struct layout *l, bool experts, int tensor, int replica);

#ifdef __cplusplus
}
#endif
#endif
