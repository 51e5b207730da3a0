/* train/plan.h -- what a step takes on so many devices, by arithmetic, and which layout takes least.
 *
 * Memory is what trainer_plan() says, to the byte.  Time is
 *     (m + (p - 1) / v) * stage + reduce + optimizer
 * of m micro-batches, p stages of v parts each (arXiv:2104.04473), where stage is the slowest one's
 * time for a micro-batch: its ops, one after the other (train/plan_ops.h), and after them the tensor ranks' sums, the
 * ring of the context ranks, the rows that go to experts of other ranks, the stream to the next stage.  A ring of n
 * ranks moves 2 (n - 1) / n of what it sums, and half of that to gather or to scatter.
 * docs/planning.md says what it was checked against.
 */
#ifndef TRAIN_PLAN_H
#define TRAIN_PLAN_H

#include "train/config.h"
#include "train/plan_device.h"
#include "train/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plan_step {
    struct train_memory memory; /* of the fullest rank */
    struct plan_sum ops; /* of the slowest stage, and of the update: seconds by op */
    double compute;   /* seconds of the slowest stage's ops */
    double tensor;    /* of its sums over tensor ranks */
    double context;   /* of the ring */
    double experts;   /* of rows on their way to experts of other ranks and back */
    double stream;    /* between stages */
    double bubble;    /* in which a stage waits for others */
    double reduce;    /* of gradients and weights over replicas, as far as it is not hidden */
    double optimizer;
    double seconds;   /* the sum */
    double bubble_share; /* (p - 1) / (m v), Megatron's bubble fraction */
    double mfu;       /* model FLOP/s (docs/planning.md; what is computed again does not count) of all peaks */
};

/* A step of a checked configuration.  The errors of trainer_plan. */
int plan_step(const struct train_config *c, const struct plan_machine *m, struct plan_step *s, struct err *e);

/* What a rank of a stage has of a micro-batch of a checked configuration, which is to stay; memory: trainer_plan's. */
struct plan_share plan_share_of(const struct train_config *c, const struct train_memory *memory, int64_t stage);

/* Layouts of c->world ranks, the fastest first, of those that fit into the machine's memory: c with tensor, context, pipe,
 * expert and data parallelism, even and uneven stages of one part or more, what replicas share, micro-batch and recomputation
 * chosen (plan_search.c).  How many, up to n. */
struct plan_choice {
    struct layout_sizes layout;
    int64_t chunks, data, micro_batch;
    bool embedding, head; /* count as a layer of their stage */
    int sharding, recompute; /* enum sharding, recompute */
    bool overlap; /* of what replicas sum and gather with the passes */
    struct plan_step step;
};
enum { PLAN_CONTEXT_LEAST = 1024 }; /* tokens of a sequence that a context rank has, at least */
int plan_search(const struct train_config *c, const struct plan_machine *m, struct plan_choice *v, int n);

#ifdef __cplusplus
}
#endif
#endif
