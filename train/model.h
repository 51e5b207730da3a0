/* train/model.h -- GPT-2: learned positions, pre-norm, GELU, biases.
 *
 *     s = dropout(word[token] + position[i])
 *     each layer:  s += dropout(proj(attention(qkv(norm1(s)))))
 *                  s += dropout(fc2(gelu(fc1(norm2(s)))))
 *     logits = output(final_norm(s))
 * Weights and gradients are slabs laid out by params.h; activations live in one slab,
 * planned when the model is opened: no step allocates device memory.  All work goes through the
 * device's table of ops.  Source: Radford et al. 2019; arXiv:1706.03762.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include "kernels/device.h"
#include "train/config.h"
#include "train/params.h"

#ifdef __cplusplus
extern "C" {
#endif

enum model_use {
    MODEL_TRAIN,     /* keeps every activation for backward */
    MODEL_RECOMPUTE, /* keeps the input of each layer; backward runs it again: same bits */
    MODEL_EVAL,      /* loss only */
    MODEL_GENERATE   /* a key-value cache, logits of the last token */
};

/* What one layer leaves for its backward pass; n = b * t rows.  dt unless float. */
struct layer_acts {
    void *s1;            /* (n, h) the residual stream that comes in */
    void *ln1, *ln2;     /* (n, h) */
    float *mean1, *rstd1, *mean2, *rstd2; /* (n) */
    void *qkv;           /* (n, 3h) */
    void *att;           /* (n, h) */
    float *lse;          /* (b, heads, t) */
    void *s2;            /* (n, h) the stream after attention */
    void *fc1;           /* (n, f) before the activation */
    void *act;           /* (n, f) after it */
};

/* Bytes by kind. */
struct model_memory {
    size_t weights, low, grads, activations, cache;
};

struct model {
    struct model_config config;
    struct params params;
    struct device *dev;
    enum dtype dt;
    enum model_use use;
    int64_t b, t; /* the largest micro-batch and length; t: the cache's with GENERATE */

    float *weights;  /* master */
    uint16_t *low;   /* bf16 copy of weights; NULL with fp32 */
    float *grads;    /* fp32; NULL without backward */
    struct model_memory memory;

    /* Carved out of one slab each; see plan() in model.c. */
    void *slab, *cache_slab;
    struct layer_acts *layers;
    void *cache_k, *cache_v; /* (layers, b, t, h) */
    void *out, *s_final, *ln_final, *logits;
    float *mean_final, *rstd_final, *loss, *scale;
    int32_t *tokens, *targets, *positions;
    void *ds, *dx, *dln, *dwide; /* gradients: stream, branch, norm's output, qkv or fc1 */
};

/* What dropout needs to know.  The masks depend on seed, step and a sample's place in the
 * global batch, not on how that is cut into micro-batches. */
struct model_dropout {
    uint64_t seed, step;
    int64_t first_sample; /* of this micro-batch within the global batch */
};

/* Bytes that model_open would take.  Allocates nothing large. */
int model_plan(struct model_memory *memory, const struct model_config *config, enum dtype dt,
               enum model_use use, int64_t b, int64_t t, struct err *e);

/* Allocates slabs on dev; weights are not set.  ERR_NOMEM and the device's errors. */
int model_open(struct model **m, struct device *dev, const struct model_config *config,
               enum dtype dt, enum model_use use, int64_t b, int64_t t, struct err *e);
void model_close(struct model *m);

/* To be called after weights were written by others than the optimizer: makes the copy in bf16. */
int model_weights_changed(struct model *m, struct err *e);

/* tokens and targets: (b, t) of model_open, in host memory.  *loss_sum gets the sum of
 * the tokens' losses.  drop NULL: no dropout.  grad_scale > 0 leaves in m->logits the
 * gradient of grad_scale * loss_sum, for model_backward; 0: loss only. */
int model_forward(struct model *m, const int32_t *tokens, const int32_t *targets,
                  const struct model_dropout *drop, float grad_scale, double *loss_sum,
                  struct err *e);

/* Adds the gradients of the last model_forward to m->grads; with first, overwrites
 * them.  drop as in forward. */
int model_backward(struct model *m, const struct model_dropout *drop, bool first, struct err *e);

/* GENERATE: b sequences of t new tokens each (host), which stand at positions past ..
 * past + t - 1 behind what the cache has.  *logits gets (b, padded_vocab) of the last ones,
 * fp32, in host memory that the caller owns. */
int model_extend(struct model *m, const int32_t *tokens, int64_t b, int64_t t, int64_t past,
                 float *logits, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
