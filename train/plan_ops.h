/* train/plan_ops.h -- the ops of a step on one device, and what each takes there, by arithmetic.
 *
 * An op takes the longest of three: its FLOPs at what matrix products reach, its bytes at what memory gives, and the
 * instructions of its warps at what the multiprocessors issue (kernels/sass.inc has counted them).  Which share of a peak is
 * reached is calculated, not measured, until a file of `make gpu-bench` says what a device took (train/plan_device.h).
 * docs/planning.md has the table; nothing here needs more than libc, so that bench/ can print a plan beside what it measures.
 */
#ifndef TRAIN_PLAN_OPS_H
#define TRAIN_PLAN_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/model_config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes of each, in struct plan_dims: */
enum plan_op {
    PLAN_COPY,              /* m = 1, n bytes */
    PLAN_PRODUCT,           /* (m, n, k), in the model's type; d bytes an element of the result, 0: as many as it has; */
    PLAN_PRODUCT_FP8,
    PLAN_PRODUCT_BLOCKS,    /* in FP8 by blocks: one operand's of rows, the other's squares (kernels/fp8.h); */
    PLAN_WEIGHT_BLOCKS,     /* both operands' of rows, as the gradient of a weight has them */
    PLAN_ATTENTION,         /* m sequences of n tokens, k heads of d; kv heads */
    PLAN_ATTENTION_BACK,
    PLAN_NORM,              /* m rows of n channels, and so all that follow */
    PLAN_NORM_BACK, PLAN_RMS, PLAN_RMS_BACK,
    PLAN_ROPE, PLAN_SWIGLU, PLAN_SWIGLU_BACK, PLAN_BIAS_SUMS,
    PLAN_NORM_FP8, PLAN_RMS_FP8, /* into FP8, and turned */
    PLAN_GELU_FP8, PLAN_GELU_BACK_FP8, PLAN_SWIGLU_FP8, PLAN_SWIGLU_BACK_FP8,
    PLAN_FP8,               /* to FP8, both ways; k = 1: one way alone, as it is or transposed */
    PLAN_FP8_BLOCKS,        /* the same by blocks */
    PLAN_AMAX,              /* the largest value of m rows of n */
    PLAN_GELU, PLAN_GELU_BACK, PLAN_XENT, PLAN_EMBEDDING, PLAN_EMBEDDING_BACK,
    PLAN_TAKE, PLAN_JOIN, PLAN_JOIN_BACK, /* m tokens of n channels, each with k experts */
    PLAN_SUMSQ, PLAN_ADAMW, /* m = 1, n parameters */
    PLAN_ORTHOGONAL,        /* (m, n, k) of Muon's iterations; d bytes of an operand's element, kv of the result's */
    PLAN_OPS
};
const char *plan_op_name(enum plan_op op);
/* The op of that name; PLAN_OPS: none. */
enum plan_op plan_op_named(const char *name, size_t n);

struct plan_dims {
    int64_t m, n, k, d, kv;
    double keys; /* that a query of attention sees; 0: n / 2 */
};

enum plan_type { PLAN_BF16, PLAN_FP8_TYPE, PLAN_FP32, PLAN_TYPES };

/* What a device does, in seconds, FLOPs and bytes. */
struct plan_rates {
    double flops[PLAN_TYPES]; /* peaks of products; FP8 0: it has none */
    double reach[PLAN_TYPES]; /* the share of it that the largest products reach */
    double bytes;             /* a second, by the data sheet */
    double copy;              /* the share of it that a copy reaches */
    double issue;             /* instructions of warps a second; 0: they bound nothing */
    double launch;            /* seconds, of each op */
    int processors;           /* tiles of products that run at once; 0: shapes do not matter */
    double instructions[PLAN_OPS]; /* of a warp, an element; with issue */
    double measured[PLAN_OPS]; /* seconds measured for each that is calculated; 0: not measured */
};

/* Fills in what kernels/sass.inc says of the kernels; false: a kernel that the table of ops names is not there. */
bool plan_count_instructions(struct plan_rates *r);

enum plan_bound { BOUND_FLOPS, BOUND_BYTES, BOUND_ISSUE, BOUND_LAUNCH, BOUND_MEASURED };

/* Seconds of one; bound, unless NULL, becomes what bounds it. */
double plan_op_seconds(const struct plan_rates *r, enum plan_op op, const struct plan_dims *d, bool bf16, enum plan_bound *bound);

/* ---- the ops of a micro-batch ---- */

/* What of a model and of a micro-batch a rank has.  Of a model with adapters (lora_rank) these alone are trained. */
struct plan_share {
    const struct model_config *model; /* whole, checked */
    int64_t b, t;    /* sequences of a micro-batch, and their length */
    int64_t layers;  /* of its stage */
    int64_t low;     /* of these, with FP8, so many are left in the model's type */
    int64_t context, tensor, expert; /* ranks that share it */
    bool sequence;   /* tensor ranks share rows of norms */
    bool head, embeds;
    bool bf16, fp8;
    int recipe;      /* of FP8: enum fp8_recipe */
    bool selective;  /* norms and activations are computed again */
    double again, chunks; /* the share of its layers that are run again whole, and in how many chunks */
    double converts, expert_converts; /* how often a micro-batch converts each weight to FP8 */
    double cast, casts; /* where weights are divided: elements that a micro-batch casts to send them, in so many calls */
    struct plan_whole {   /* matrices of layers that are updated whole (train/matrices.h): */
        int64_t steps;    /* iterations of each; 0: there are none */
        int64_t ranks;    /* among which those of a layer are divided */
        bool fp32, qkv;   /* multiplied in fp32, not bf16; queries, keys and values as one */
    } whole;
};
/* Called for each op: that often, with these sizes. */
typedef void plan_visit_fn(void *arg, enum plan_op op, const struct plan_dims *d, double times);
/* Forward and backward pass of a micro-batch. */
void plan_micro_batch(const struct plan_share *s, plan_visit_fn *visit, void *arg);
/* What comes once a step, of so many tensors: the norm of gradients, the update of parameters, in AdamW's with fp32 moments; and
 * matrices that are updated whole. */
void plan_update(const struct plan_share *s, double tensors, double gradients, double updated, plan_visit_fn *visit, void *arg);

/* Seconds and calls, in all and by op; what bounds one, where its calls differ the slowest of them. */
struct plan_sum {
    const struct plan_rates *rates;
    bool bf16;
    double all, op[PLAN_OPS], times[PLAN_OPS], longest[PLAN_OPS];
    enum plan_bound bound[PLAN_OPS];
};
plan_visit_fn plan_sum_add; /* arg: struct plan_sum */
/* All of it n times. */
void plan_sum_times(struct plan_sum *s, double n);
/* Writes a line on op number i by seconds (0: the one that takes most); false: there are not so many. */
bool plan_sum_line(const struct plan_sum *s, int i, char *line, size_t size);

#ifdef __cplusplus
}
#endif
#endif
