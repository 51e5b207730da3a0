/* train/model.h -- a decoder: GPT-2, GPT-3, Llama (train/model_config.h says which parts).
 *
 *     s = dropout(word[token] + position[i])
 *     each layer:  s += dropout(proj(attention(turn(qkv(norm1(s))))))
 *                  s += dropout(fc2(act(fc1(norm2(s)))))
 *     logits = output(final_norm(s))
 * Weights and gradients are slabs laid out by params.h; activations live in one slab,
 * planned when the model is opened: no step allocates device memory.  All work goes through the
 * device's table of ops.  Sources: Radford et al. 2019; arXiv:1706.03762, 2302.13971.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include "kernels/device.h"
#include "train/model_config.h"
#include "train/params.h"

#ifdef __cplusplus
extern "C" {
#endif

enum model_use {
    MODEL_TRAIN,   /* backward follows */
    MODEL_EVAL,    /* loss only */
    MODEL_GENERATE /* a key-value cache, logits of the last token */
};

/* What backward computes again instead of keeping it; the bits do not change.
 *   full       keeps the input of a chunk of layers and runs the chunk again: with
 *              `block` the first `layers` layers, a chunk each, and the others keep all;
 *              else every chunk of `layers` layers
 *   selective  keeps what costs a matrix product or attention; norms' outputs and the
 *              activation are made again (attention's probabilities are never kept) */
enum recompute { RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_SELECTIVE };

/* How a model is used. */
struct model_run {
    enum dtype dt;
    enum model_use use;
    int64_t b, t; /* the largest micro-batch and length; t: the cache's with GENERATE */
    enum recompute recompute; /* with TRAIN */
    bool block;
    int64_t layers; /* 0: 1 */
};

/* What one layer leaves for its backward pass; n = b * t rows.  dt unless float. */
struct layer_acts {
    void *s1;            /* (n, h) the residual stream that comes in */
    void *ln1, *ln2;     /* (n, h) */
    float *mean1, *rstd1, *mean2, *rstd2; /* (n) */
    void *qkv;           /* (n, qkv width); turned in place, unless qk_norm needs it as it was */
    void *qk;            /* (n, q + kv width) normalised and turned; NULL without qk_norm */
    float *mean_q, *rstd_q, *mean_k, *rstd_k; /* (n heads), (n groups); with qk_norm */
    void *att;           /* (n, q width) */
    float *lse;          /* (b, heads, t) */
    void *s2;            /* (n, h) the stream after attention */
    void *fc1;           /* (n, fc1 width) before the activation */
    void *act;           /* (n, f) after it; backward writes its gradient here */
};

/* Bytes by kind. */
struct model_memory {
    size_t weights, low, grads, activations, cache, tables;
};

struct model {
    struct model_config config;
    struct params params;
    struct device *dev;
    struct model_run run;
    enum dtype dt; /* run's, and its b and t */
    int64_t b, t;

    float *weights;  /* master */
    uint16_t *low;   /* bf16 copy of weights; NULL with fp32 */
    float *grads;    /* fp32; NULL without backward */
    struct model_memory memory;

    /* Carved out of one slab each; see plan() in model.c. */
    void *slab, *cache_slab;
    struct layer_acts *layers;
    void *cache_k, *cache_v; /* (layers, b, t, kv width) */
    float *turns;            /* (t, rotary width) cosines and sines; NULL without rope */
    void *out, *s_final, *ln_final, *logits;
    float *mean_final, *rstd_final, *loss, *scale;
    int32_t *tokens, *targets, *positions;
    void *ds, *dx, *dln, *dwide; /* gradients: stream, branch, norm's or attention's output, qkv or fc1 */
};

/* What dropout needs to know.  The masks depend on seed, step and a sample's place in the
 * global batch, not on how that is cut into micro-batches. */
struct model_dropout {
    uint64_t seed, step;
    int64_t first_sample; /* of this micro-batch within the global batch */
};

/* Bytes that model_open would take.  Allocates nothing large. */
int model_plan(struct model_memory *memory, const struct model_config *config, const struct model_run *run,
               struct err *e);

/* Allocates slabs on dev for a checked config; weights are not set.  ERR_NOMEM and the device's
 * errors. */
int model_open(struct model **m, struct device *dev, const struct model_config *config,
               const struct model_run *run, struct err *e);
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
