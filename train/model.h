/* train/model.h -- a decoder: GPT-2, GPT-3, Llama (train/model_config.h says which parts).
 *
 *     s = dropout(word[token] + position[i])         or a norm of that before dropout
 *     each layer:  s += dropout(proj(attention(turn(qkv(norm1(s))))))
 *                  s += dropout(fc2(act(fc1(norm2(s)))))      or a mixture of such experts (module_experts.c), with another
 *                                                             beside them for all tokens (module_shared.c) or not
 *                  norms may stand after modules too, or there alone; both modules may see the same s (branch.h)
 *     logits = output(final_norm(s))
 * Weights and gradients are in param buffers (param_buffer.h); activations live in a pool (model_pool.h),
 * planned when the model is opened: no step allocates device memory.  All work goes through the
 * device's table of ops.  Sources: Radford et al. 2019; arXiv:1706.03762, 2302.13971.
 *
 * A struct model may be a part of a model (params.h): a stage of a pipeline, which takes the stream s
 * from the part before and leaves it for the next; and each of its layers may be shared by tensor
 * ranks (arXiv:1909.08053), also the rows of norms and dropout (arXiv:2205.05198), and each sequence
 * by context ranks (arXiv:2310.01889).
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include "kernels/device.h"
#include "train/model_config.h"
#include "train/model_fp8.h"
#include "train/model_pool.h"
#include "train/optim.h"
#include "train/param_buffer.h"
#include "train/trace.h"

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
    int64_t b, t; /* the largest micro-batch and length; t: the cache's with GENERATE; of the whole
                     sequence where context ranks share it */
    enum recompute recompute; /* with TRAIN */
    bool block;
    int64_t layers; /* 0: 1 */
    int slots;      /* micro-batches that may stand between forward and backward; 0: 1.  Of a part that heads one alone may */
    struct model_pool *pool; /* of the caller, for as many slots, which outlives the model; NULL: the model has its own */
    struct param_buffer_conf dense, experts, adapters, expert_adapters; /* how ranks share the parameters; zeroed: not at all */
    struct comm *world; /* whose calls are got on while passes work; NULL: none are under way then */
    struct model_fp8_run fp8; /* with bf16 */
    const struct optim_conf *optim; /* of TRAIN; NULL: nobody updates the weights */
    const char *const *freeze; /* n_freeze patterns: params_freeze */
    int n_freeze;
    bool reset_positions, reset_attention; /* each document of a sequence begins at position 0, sees itself alone */
};

/* What a layer leaves for its backward pass, by its modules (module.h); n = b * t rows, or a rank's share of them where rows of
 * the stream are shared.  dt unless float. */
struct norm_acts {
    void *s, *y;         /* (n, h) the stream that comes in, and the norm's output */
    float *mean, *rstd;  /* (n) */
};
struct attention_acts {
    void *qkv;           /* (n, qkv width); turned in place, unless qk_norm needs it as it was */
    void *q_down, *q_latent;   /* (n, q_rank) before and after the norm, one and the same without; NULL without latents */
    void *kv_down, *kv_latent; /* (n, latent width), its tail turned; (n, kv_rank) */
    void *qk;            /* (n, q + kv width) normalised and turned; NULL without qk_norm */
    float *mean_q, *rstd_q, *mean_k, *rstd_k; /* (n heads), (n groups); with qk_norm */
    void *out;           /* (n, q width) */
    float *value_gate;   /* (n, groups) products of the gate of an embedding of values; NULL without */
    void *gated;         /* (n, q width) the same times the gate's sigmoid; NULL without a gate */
    float *lse;          /* (b, heads, t) */
};
struct mlp_acts {        /* also of a shared expert */
    void *fc1;           /* (n, fc1 width) before the activation */
    void *act;           /* (n, f) after it; backward writes its gradient here */
};
struct experts_acts {    /* rows stand as kernels/route.h says */
    float *prob, *route_lse;  /* (n, experts), (n): what the router gives, route_fwd's */
    int32_t *choice, *place;  /* (n, topk) */
    float *share;             /* (n, topk) */
    void *answer;             /* (rows, h) of the experts */
    struct model_room *room;  /* what the experts here keep: rows that came in, fc1, act */
    int32_t *chosen;          /* (experts) by how many tokens, dropped ones too */
    int32_t *counts, *heard;  /* (experts) rows for each; from each rank that shares the experts, those for each here; host */
    int64_t go, come;         /* rows of all these */
    int64_t most;             /* rows that an expert takes of a rank; 0: all */
    float *gate;              /* (n) products of the shared expert's gate, and */
    void *gated;              /* (n, h) what it gives before that; both NULL without */
};
struct layer_acts {
    struct norm_acts norm[2]; /* before attention; before the MLP.  Side by side both are of the first's stream */
    struct norm_acts post[2]; /* after them: s (n, h) what each gives; no y */
    struct attention_acts attention;
    struct mlp_acts mlp;
    struct experts_acts experts;
    struct fp8_kept fp8[FP8_INPUTS]; /* of what is multiplied in FP8; y of norms and act have no room where they are made in it */
};

/* What a micro-batch leaves for its backward pass; n rows are b * t, or a rank's share of them. */
struct model_acts {
    struct layer_acts *layers;
    struct norm_acts embedding; /* s and statistics of their norm, for backward; no y */
    struct norm_acts final; /* behind the layers; s alone without a head: what goes to the next part */
    int32_t *tokens;                /* (b, t) */
    int32_t *positions;             /* (b, t); NULL: those of the model */
    int32_t *starts;                /* (b, t) as attention takes them, with context ranks a half after the other; NULL: none */
    int64_t documents, longest;     /* of starts, as attention is told them; 0: recorded work that other starts will come to */
    struct dropout_now *drop;       /* NULL: nothing is dropped */
};

enum { MODEL_BUFFERS = 4 }; /* at most */

/* Bytes by kind; weights, low and grads of all param buffers, with what these go through between ranks. */
struct model_memory {
    size_t weights, low, grads, activations, cache, tables, fp8;
    size_t alone; /* of activations, what no pool has */
    struct model_pool_size pool; /* the rest: of a pool for this part alone */
    struct param_buffer_memory buffer[MODEL_BUFFERS];
};

/* What a pass needs only while it runs, of one micro-batch at a time. */
struct head_work {
    void *logits;            /* (b * t, vocabulary here) */
    float *loss, *scale, *max, *sum, *at; /* (b * t); the last three with a shared vocabulary */
    float scaled;            /* what scale is full of; 0: nothing yet */
    int32_t *targets;        /* (b * t) */
};
struct back_work {           /* gradients of: */
    void *ds, *dx, *dln;     /* (b * t, h) the stream, what a branch adds, a norm's or attention's output */
    void *dwide;             /* qkv or fc1 */
    float *unused;           /* (2 h) of a norm's weights that are not trained; NULL: they are */
    void *side;              /* (own, h) ds with the MLP's part added, of a layer whose modules are side by side */
};
struct moe_bias {            /* of experts (expert_bias.h), of all layers of a part; all NULL without */
    float *now, *host;       /* (layers, experts) the device's, and the same on the host */
    int32_t *load;           /* (layers, experts) by how many tokens of the step each was chosen; the device's */
    char (*name)[96];        /* (layers) in a checkpoint */
};
struct moe_work {            /* rows as route_rows() says */
    int32_t *route_from;     /* (rows) */
    void *drows, *dlogits;   /* (rows, h), (b * t, experts) */
    void *beside;            /* (b * t, h) of the shared expert */
    void *dgate;             /* (b * t) */
    void *piece;             /* (rows, h / pieces) of rows on their way; with tensor ranks that share what travels */
    float *dshare, *balance; /* (b * t * topk), (pass_aux_parts, experts) */
    float *likely_prob;      /* (b * t, experts) of sigmoids, */
    int32_t *likely;         /* (pass_aux_parts, experts): route_likely's; with model_aux_apart() */
    int32_t *counts;         /* all layers'; host */
    int32_t *rows_here, *rows_each; /* (experts here, or so many for each source) rows of each, on the host and on the device */
    int32_t *order_host;     /* room for two of each row, */
    int64_t order_rows;      /* of so many */
    size_t *moved;           /* elements to and from each rank that shares the experts */
    int32_t *so_far;         /* (layers, experts) how often chosen in the step so far; with BALANCE_GLOBAL */
    double *unevenness;      /* the device's; backward adds this rank's summand of each auxiliary loss, without its coefficient */
    struct moe_bias bias;
    float aux_scale;         /* of the auxiliary losses of the micro-batch in backward */
};
struct value_work {          /* of embeddings of values (module_value.c) */
    void *embedded, *v;      /* (b * t, kv width) rows of the table; values, or their gradients */
    void *dgate;             /* (b * t, groups) */
};
struct latent_work {         /* of attention with latents (module_latent.c) */
    void *q;                 /* (b * t, q width) of one head after the other, or what goes into linear_proj */
    void *kv;                /* (b * t, kv up width) keys without what turns, and values, head by head; and their gradients */
    void *down;              /* (b * t, the larger rank) the gradient of a latent */
    void *dkv;               /* (b * t, latent width) and of what linear_kv_down_proj gives */
    void *cached;            /* (b * t, 2 kv width) keys and values of what the cache has; GENERATE */
};
struct mtp_depth {         /* what predicts a token further on (mtp.h), forward and back at once */
    int32_t *tokens, *positions, *targets; /* (b * t) of the token that is embedded; of the one that is predicted, < 0: no loss */
    float *scale;            /* (b * t) */
    void *embedded, *both;   /* (own, h), and (own, 2 h): the norms of that and of the stream, side by side */
    float *mean_e, *rstd_e, *mean_h, *rstd_h; /* (own) of these norms */
    struct norm_acts final;
};
struct mtp_work {
    int64_t n;               /* depths; 0: none, or none here */
    struct mtp_depth *depth; /* (n) */
    void *first, *carried;   /* (own, h) gradients of what the output layer takes: of the last layer; by way of the depth after */
    double *loss;            /* (n) of the micro-batch that went back last: sums of losses; the device's */
};
struct lora_work {           /* (rows, rank); m->lora of b * t rows, of experts in their pool's */
    void *down, *up;     /* s A x; s dy B */
};
struct ring_work {
    void *kv[2];             /* (b * t, 2 kv width) keys and values on their way around the context ranks, */
    float *grad[3];          /* and their gradients; */
    float *sum;              /* (b * t, qkv width) sums over blocks; NULL with fp32, which has them in place */
};

struct model {
    struct model_config config; /* of what is here: heads, groups, ffn, vocabulary and layers are this
                                   rank's share */
    struct model_config whole;  /* of the logical model */
    struct model_part part;
    struct param_buffer dense, experts;        /* all weights; but those of experts */
    struct param_buffer adapters, expert_adapters; /* theirs (lora.h): with them nothing else is trained */
    struct param_buffer *buffers[MODEL_BUFFERS]; /* the ones that there are */
    int n_buffers;
    struct device *dev;
    struct trace *trace; /* to be set by others; NULL: none */
    struct model_run run;
    enum dtype dt; /* run's, and its b */
    int64_t b, t;  /* t: the tokens of a sequence that are here */
    int64_t own;   /* rows of the stream that are here: b * t, or a share of it with part.sequence */

    struct model_memory memory;
    struct model_fp8 *fp8; /* NULL: none */

    /* Carved out of one slab each; see model_room.h. */
    void *slab, *cache_slab; /* slab: of what no pool has */
    struct model_pool *pool, own_pool;
    struct model_acts *slot, *acts; /* run.slots; the one of the pass under way */
    void *cache_k, *cache_v; /* (layers, b, t, kv width); or latents, kv_rank, and the keys that turn, qk_turn wide */
    float *turns;            /* (tables, run.t, rotary width) cosines and sines (layer_attention.h); NULL without rope */
    void *out;               /* (b * t, h) what a module adds to the stream */
    void *middle;            /* (own, h) the stream with attention's part added; of a layer whose modules are side by side */
    void *full;              /* (b * t, h) rows gathered from the tensor ranks; with part.sequence */
    int32_t *positions;      /* (b * t) */
    float *most;             /* (layers, heads) the largest logits of attention so far (qk_clip.h); NULL: nobody asks */
    float *shared;           /* room for all gradients that the tensor ranks add up (params.h: summed) */
    struct head_work head;
    struct back_work back;
    struct moe_work moe;
    struct ring_work ring;
    struct lora_work lora;
    struct latent_work latent;
    struct value_work value;
    struct mtp_work mtp;
};

/* What dropout needs to know.  The masks depend on seed, step and a sample's place in the
 * global batch, not on how that is cut into micro-batches. */
struct model_dropout {
    uint64_t seed;
    struct dropout_now now; /* step; the first sample of this micro-batch within the global batch */
};

/* Whether the part looks tokens up: to embed them, or for its values. */
static inline bool model_looks_up(const struct model *m)
{
    return m->part.embeds || m->whole.value_freq;
}

/* Bytes that model_open would take; part NULL: the whole model.  Allocates nothing large. */
int model_plan(struct model_memory *memory, const struct model_config *config, const struct model_part *part,
               const struct model_run *run, struct err *e);

/* Allocates slabs on dev for a part (NULL: all) of a checked config; weights are not set.  ERR_NOMEM,
 * the device's errors, and ERR_ARG when the tensor ranks cannot share it evenly. */
int model_open(struct model **m, struct device *dev, const struct model_config *config,
               const struct model_part *part, const struct model_run *run, struct err *e);
void model_close(struct model *m);

/* To be called after weights were written by others than the optimizer: makes the copy in bf16. */
int model_weights_changed(struct model *m, struct err *e);

/* Of a depth, (b, t) that are here. */
struct mtp_rows {
    int32_t *tokens, *positions, *targets;
    float *scale;
};

/* A micro-batch on its way through a part.  From model_take on the device reads tokens, targets, here and drop, until its stream
 * is synchronised. */
struct model_batch {
    int slot;               /* where its activations stay; 0 .. run.slots - 1 */
    const int32_t *tokens;  /* (b, t) that are here (model_ids_here), for a part that looks them up */
    const int32_t *targets; /* the same, for a part that heads; < 0: no loss */
    const int32_t *starts;  /* (b, t) of struct model_run, whole sequences: where in it the document of each token begins, for
                               all parts of a run that tells documents apart, */
    int32_t *here;          /* as room for two of each token that is here */
    const struct model_dropout *drop; /* NULL: none */
    float grad_scale;       /* > 0: leaves in m->head.logits the gradient of grad_scale * loss_sum, which
                               backward of this batch must take up before another forward; 0: loss only */
    int64_t counted;        /* grad_scale times so many tokens is the weight of the batch's auxiliary losses; 0: all of it */
    const struct mtp_rows *further; /* (mtp.n) as mtp_rows() leaves them (mtp.h); NULL: none */
};

/* The device's buffers of the stream between parts, (m->own, h) elements of m->dt: where forward takes
 * it from, where it leaves it, and where backward takes its gradient from and leaves it. */
void *model_stream_in(struct model *m, int slot);
void *model_stream_out(struct model *m, int slot);
void *model_stream_grad(struct model *m);

/* ids (b, t) of struct model_run, whole sequences, become the (b, t) that are here, at the front. */
void model_ids_here(const struct model *m, int32_t *ids);

/* Queues what the device gets of batch, to fixed places of its slot: all that differs from one micro-batch to the next.  It waits
 * where grad_scale is another one than before. */
int model_take(struct model *m, const struct model_batch *batch, struct err *e);
/* Forward of what was taken.  *loss_sum, of the device, gets the sum of the losses of the tokens that are here from a part that
 * heads; others leave it.  Nothing waits for the device, unless ranks are to be waited for, or how many rows experts get. */
int model_forward(struct model *m, const struct model_batch *batch, double *loss_sum, struct err *e);

/* To be called around backward of the i-th of n micro-batches of a step. */
void model_backward_begin(struct model *m, int64_t i, int64_t n);
int model_backward_end(struct model *m, struct err *e);
/* Adds the gradients of batch, whose model_forward was the last in its slot, to those of the param buffers, or overwrites them,
 * as model_backward_begin has set. */
int model_backward(struct model *m, const struct model_batch *batch, struct err *e);

/* *sum gets what backward has added up of auxiliary losses since the last call; this waits for the device. */
int model_unevenness(struct model *m, double *sum, struct err *e);

/* GENERATE: b sequences of t new tokens each (host), which stand at positions past ..
 * past + t - 1 behind what the cache has.  *logits gets (b, padded_vocab) of the last ones,
 * fp32, in host memory that the caller owns.  For a whole model. */
int model_extend(struct model *m, const int32_t *tokens, int64_t b, int64_t t, int64_t past,
                 float *logits, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
