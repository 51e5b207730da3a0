/* train/params.h -- the parameters of a model: one flat buffer, one table.
 *
 * Weights, gradients and both moments of the optimizer are flat buffers of the same
 * layout: a tensor begins at the same element in each.  The names are those of the
 * logical tensors (Megatron Core's), the same for every division of the work, and
 * are what a checkpoint stores.  Linear weights are [out, in], row-major; the rows of
 * linear_qkv are all queries, then all keys, then all values, head by head; those of a
 * gated linear_fc1 are the gate's, then the other half's.  Of a layer with experts each has its own, by number.
 *
 * A rank may hold a part of the model: some of its layers, and of these what tensor parallelism
 * leaves it.  That cuts a tensor along its axis `split`: 0 by rows (a column-parallel
 * layer), 1 by columns (a row-parallel one), -1 not at all.  With several parts each part
 * is cut by itself: rank r of n has rows [r, r + 1) * part / n of each.
 */
#ifndef TRAIN_PARAMS_H
#define TRAIN_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "comm/comm.h"
#include "train/model_config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum layer_param {
    LN1_W, LN1_B, QKV_W, QKV_B, Q_DOWN_W, Q_UP_W, KV_DOWN_W, KV_UP_W, /* either these two or, with latents, those four */
    Q_NORM_W, Q_NORM_B, K_NORM_W, K_NORM_B, SOFTMAX_OFFSET, VALUE_EMBED, VALUE_GATE, PROJ_W, PROJ_B, POST1_W, POST1_B,
    LN2_W, LN2_B, FC1_W, FC1_B, FC2_W, FC2_B, /* with experts, those of the shared one */
    POST2_W, POST2_B,
    ROUTER_W, ROUTER_B, SHARED_GATE_W, EXPERT_FC1_W, EXPERT_FC1_B, EXPERT_FC2_W, EXPERT_FC2_B, /* the first expert's */
    LORA_A, /* of the first target; A and B of each, in the order of their bits (lora.h) */
    LORA_EXPERT_A = LORA_A + 2 * LORA_EXPERTS, /* of the first one of experts; the first expert's */
    LAYER_PARAMS = LORA_A + 2 * LORA_TARGETS
};

/* Who trains a parameter, and how fast; set once, when the run is built (optim_rules of train/optim.h). */
enum { PARAM_STATES = 2 };
struct param_rule {
    int optimizer;  /* enum optim_kind */
    int states;     /* tensors of its shape that this keeps, up to PARAM_STATES */
    bool decoupled; /* by --decoupled-lr; else by --lr; */
    double rate;    /* times this */
    bool whole;     /* its update is made of whole matrices (train/matrices.h): */
    bool apart;     /* of each of its parts by itself */
};

/* The weight that adapter k (enum lora_target) is of; and A of the adapter that weight w may have, LAYER_PARAMS: none. */
enum layer_param lora_weight(int k);
enum layer_param lora_param(enum layer_param w);

enum { PARAM_PARTS = 4 };
struct param {
    char name[96];
    int dims;
    int64_t whole[2]; /* of the logical tensor */
    int64_t shape[2]; /* of what is here */
    int unit; /* see struct params */
    size_t at; /* first element in the flat buffer, a multiple of 16 */
    size_t n;  /* elements */
    int split;        /* see above */
    int parts;        /* 1 to PARAM_PARTS */
    int64_t part[PARAM_PARTS];  /* rows of each that are here; their sum is shape[0] */
    int64_t first[PARAM_PARTS]; /* the logical row where each begins */
    int64_t column;   /* the logical column where all begin */
    bool repeated;    /* a copy: another rank of the model has the same, and counts it (norm, checkpoint) */
    bool table;       /* rows are looked up, and nothing else is done with it: its gradient is only ever added to */
    bool frozen;      /* not trained: its gradient counts for nothing (params_freeze) */
    struct param_rule rule; /* else by whom */
    bool summed;      /* its gradient is whole only when added up over the tensor ranks */
    double std; /* initial values: normal(0, std); < 0: uniform within +-std; 0: all equal fill */
    float fill;
};

/* A pass takes the units of a flat buffer in their order: 0 is the embeddings, 1 + i layer i, the last one the final
 * norm and the output layer, and before them what predicts tokens further on.  One may be empty. */
struct params {
    struct param *v;
    int n;
    int units;
    size_t elements; /* of a flat buffer, padding between tensors included */
    double width;    /* model_width(), of what its rates depend on */
    bool tied_apart; /* the tied output layer is a copy of the embedding, here or in another part */
    int word, position, embed_w, embed_b, final_w, final_b, output; /* indices; -1: there is none; output == word when tied */
    struct params_layer {
        int at; /* the first of a layer's */
        bool moe, value; /* it has experts; its values have an embedding */
    } *layer;                   /* then those that predict tokens further on, and one more for what stands behind the last */
    struct params_mtp {
        int enorm_w, enorm_b, hnorm_w, hnorm_b, proj, final_w, final_b; /* beside its layer */
    } mtp[MODEL_MTP_MOST];
    int n_mtp;                  /* layers that predict tokens further on (mtp.h), in the last unit; 0: none is here */
    int place[2][2][LAYER_PARAMS]; /* within a layer, by moe and value; -1: it has none */
    int64_t first_expert, experts; /* those that are here */
    bool experts_apart;            /* each begins where a unit may (params_round) */
    int per_expert;
};

/* Which parameters: all, or but one kind. */
enum part_of { PART_ALL, PART_DENSE, PART_EXPERTS, PART_ADAPTERS, PART_EXPERT_ADAPTERS };

/* The part of a model that a rank holds. */
struct model_part {
    int64_t first, layers; /* layers first .. first + layers - 1 */
    bool embeds;           /* it begins with the embeddings */
    bool heads;            /* it ends with the final norm and the output layer */
    bool apart;            /* a tied output layer is a copy of the embedding here too, as it is where two stages have them */
    struct comm *tensor;   /* the ranks that share its layers; NULL: this one alone */
    bool sequence;         /* they share the rows of norms and dropout too */
    struct comm *context;  /* the ranks that share a sequence (see module_ring.c); NULL: this one alone */
    struct comm *expert;   /* the ranks that share the experts (see module_experts.c); NULL: this one alone */
    enum part_of of;
};

/* All of m. */
struct model_part model_part_whole(const struct model_config *m);

/* Lays out the parameters of part of m; NULL: all.  Layers are counted from the first of the part.
 * A tied output layer that stands apart from the embedding is a copy of it.  ERR_NOMEM.  ERR_ARG
 * when the tensor ranks cannot share m evenly. */
int params_init(struct params *p, const struct model_config *m, const struct model_part *part, struct err *e);
void params_free(struct params *p);

/* Freezes those whose names match a pattern of the shell's (fnmatch).  How many. */
int params_freeze(struct params *p, const char *pattern);

/* Makes each parameter begin at a multiple of `each` elements, experts that stand apart at one of `align`, units at one of
 * `unit`, and flat buffers a multiple of `flat`; each is a multiple of the one before.  Of a tied embedding that has a copy, both
 * begin and end at a multiple of `flat`, so that they are divided alike (train/bucketing.h). */
void params_round(struct params *p, size_t each, size_t align, size_t unit, size_t flat);
/* Where a unit begins in the flat buffer; elements for p->units. */
size_t params_unit_at(const struct params *p, int unit);
/* Whether parameter i is such an embedding or its copy. */
static inline bool params_apart(const struct params *p, int i)
{
    return p->tied_apart && i >= 0 && (i == p->word || i == p->output);
}

/* The index of parameter which of layer (of the part); -1 if the model has none. */
static inline int params_layer(const struct params *p, int64_t layer, enum layer_param which)
{
    const struct params_layer *l = &p->layer[layer];
    const int *within = p->place[l->moe][l->value];

    return within[which] < 0 ? -1 : l->at + within[which];
}
/* The same of the i-th expert that is here; which is EXPERT_, or of its adapters. */
static inline int params_expert(const struct params *p, int64_t layer, int64_t i, enum layer_param which)
{
    int first = params_layer(p, layer, which);

    return first < 0 ? -1 : first + (int)i * p->per_expert;
}

/* Rows of the i-th matrix of a parameter that is updated by whole matrices, of the logical tensor; 0: it has no more.  A vector
 * is a matrix of one column. */
int64_t param_matrix(const struct param *p, int i);
static inline int64_t param_columns(const struct param *p)
{
    return p->dims > 1 ? p->whole[1] : 1;
}
/* The most elements and the longest shorter side of such matrices, of parameters that are trained, and rows and columns (of a
 * vector its elements) of all of them. */
struct matrix_size {
    int64_t elements, side, lines;
};
struct matrix_size params_matrices(const struct params *p);
static inline void matrix_size_fit(struct matrix_size *most, const struct matrix_size *m)
{
    most->elements = m->elements > most->elements ? m->elements : most->elements;
    most->side = m->side > most->side ? m->side : most->side;
    most->lines += m->lines;
}

/* Elements of those whose gradients the tensor ranks add up. */
static inline size_t params_summed(const struct params *p)
{
    size_t n = 0;

    for (int i = 0; i < p->n; i++)
        n += p->v[i].summed ? p->v[i].n : 0;
    return n;
}

/* Weight decay applies to matrices, not to biases and norms, as in Megatron. */
static inline bool param_decays(const struct param *p)
{
    return p->dims > 1;
}

/* Writes initial weights to flat: normal(0, std), where std is smaller by
 * sqrt(2 * layers) for what is added to the residual stream.  Each number depends on
 * (seed, name, element) alone (Philox), so it is the same for every layout. */
void params_fill(const struct params *p, uint64_t seed, float *flat);
/* The same for elements first .. first + n - 1 of a flat buffer, to out. */
void params_fill_range(const struct params *p, uint64_t seed, size_t first, size_t n, float *out);

#ifdef __cplusplus
}
#endif
#endif
