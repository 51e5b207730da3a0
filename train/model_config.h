/* train/model_config.h -- the architecture of a model: GPT-2, GPT-3 and the Llama family.
 *
 * What 0 stands for in a field is what model_config_check() puts there, so that a GPT-2 is
 * {.layers, .hidden, .heads, .seq, .vocab} and nothing else.
 */
#ifndef TRAIN_MODEL_CONFIG_H
#define TRAIN_MODEL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum norm_kind { NORM_LAYER, NORM_RMS };
/* Where a branch of a layer has a norm: before its module, after it (of what it adds to the stream), or in both places. */
enum norm_place { NORM_PRE, NORM_POST, NORM_BOTH };
/* Whether attention and the MLP of a layer run one after the other, or side by side, each with a norm or with one for both. */
enum parallel_kind { PARALLEL_NONE, PARALLEL_NORMS, PARALLEL_NORM };
enum position_kind {
    POSITION_LEARNED, POSITION_ROPE, POSITION_NONE,
    POSITION_YARN /* model_config_check() makes it POSITION_ROPE, scaled so */
};
/* Kinds of MLP: the name, the activation, whether it gates, fc2(act(gate) * up), or not, fc2(act(fc1)); what the activation is
 * in config.json of transformers, as written and as read too; "": there is no word. */
#define MLP_KINDS(X) \
    X(MLP_GELU, "gelu", ACT_GELU_TANH, false, "gelu_new", "gelu_pytorch_tanh") \
    X(MLP_SWIGLU, "swiglu", ACT_SILU, true, "silu", "swish") \
    X(MLP_RELU2, "relu2", ACT_RELU2, false, "relu2", "relu2") \
    X(MLP_GEGLU, "geglu", ACT_GELU_TANH, true, "gelu_pytorch_tanh", "gelu_new") \
    X(MLP_REGLU, "reglu", ACT_RELU, true, "relu", "relu") \
    X(MLP_GELU_EXACT, "gelu-exact", ACT_GELU_ERF, false, "gelu", "gelu") \
    X(MLP_CLAMPED, "clamped-swiglu", ACT_CLAMPED, true, "", "")
#define MLP_KIND(id, ...) id,
enum mlp_kind { MLP_KINDS(MLP_KIND) MLP_KINDS_N };
struct mlp_row {
    enum act act;
    bool gated;
    const char *hf[2];
};
extern const struct mlp_row mlp_kinds[MLP_KINDS_N];
/* What is asked of attention beside heads and norms: INT, NUM and FLAG(field of struct model_config, key in metadata, flag, least
 * and most, help); WORD(the same with "words|of it", and all again behind help). */
#define ATTENTION_FIELDS(INT, NUM, FLAG, WORD) \
    NUM(rotary_base, "rotary_base", "rotary-base", 1, 1e12, "base of the rotary angles") \
    NUM(rotary_percent, "rotary_percent", "rotary-percent", 1e-6, 1, "share of a head that is rotated") \
    INT(window, "window_size", "window-size", 0, 1 << 24, "tokens before its own that a token sees; 0: all") \
    INT(window_freq, "window_attn_skip_freq", "window-attn-skip-freq", 0, 100000, \
        "the last of every so many layers sees all even so; 0: none does") \
    WORD(softmax, "softmax_type", "softmax-type", "vanilla|off-by-one|learnable", "its sum has, beside the keys: 0, 1, a sink", \
         "vanilla", "off-by-one", "learnable") \
    NUM(softcap, "attn_logit_softcapping", "attn-logit-softcapping", 0, 1e6, "logits x of attention as X tanh(x / X); 0: none") \
    NUM(softmax_scale, "softmax_scale", "softmax-scale", 0, 1e6, "queries times keys times this; 0: 1 / sqrt(width of a head)") \
    INT(no_rope_freq, "no_rope_freq", "no-rope-freq", 0, 100000, "the last of every so many layers does not turn; 0: all do") \
    NUM(rotary_base_local, "rotary_base_local", "rotary-base-local", 0, 1e12, \
        "base of the angles where there is a window, which nothing scales; 0: those of all") \
    FLAG(output_gate, "attention_output_gate", "attention-output-gate", 0, 0, "attention's output times a sigmoid of its input") \
    INT(value_freq, "value_embedding_freq", "value-embedding-freq", 0, 100000, \
        "values have an embedding in the last of every so many layers, counted from the end; 0: in none") \
    INT(value_gate, "value_embedding_gate", "value-embedding-gate", 0, 1 << 20, \
        "with a gate of so many channels of attention's input; 0: none") \
    NUM(value_scale, "value_embedding_multiplier", "value-embedding-multiplier", 0, 1e6, "times this; 0: 1") \
    FLAG(latent, "multi_latent_attention", "multi-latent-attention", 0, 0, "keys and values are made of latents (MLA)") \
    INT(q_rank, "q_lora_rank", "q-lora-rank", 0, 1 << 20, "MLA: width of a latent of the queries; 0: they have none") \
    INT(kv_rank, "kv_lora_rank", "kv-lora-rank", 0, 1 << 20, "MLA: of keys and values; 0: 32") \
    INT(qk_flat, "qk_head_dim", "qk-head-dim", 0, 256, "MLA: width of a query and a key that does not turn; 0: 128") \
    INT(qk_turn, "qk_pos_emb_head_dim", "qk-pos-emb-head-dim", 0, 256, "MLA: and that turns, of keys one for all heads; 0: 64") \
    INT(v_dim, "v_head_dim", "v-head-dim", 0, 256, "MLA: width of a value; 0: 128") \
    NUM(mscale, "mscale", "mscale", 0, 1e6, "MLA, yarn: cosines times .1 X ln factor + 1, divided by the same of:; 0: 1") \
    NUM(mscale_all, "mscale_all_dim", "mscale-all-dim", 0, 1e6, "MLA, yarn: queries times keys times (.1 X ln factor + 1)^2")
/* In the same way, of the maximal update parametrization (muP; Tensor Programs V, arXiv:2203.03466, table 8): rates and initial
 * weights that were found at the width of a base hold at this one. */
#define MUP_FIELDS(INT, NUM, FLAG) \
    FLAG(mup, "use_mup", "use-mup", 0, 0, "maximal update parametrization: rates and std are those of a base of another width") \
    INT(mup_base_hidden, "mup_base_hidden_size", "mup-base-hidden-size", 0, 1 << 20, "hidden-size of the base; 0: the same") \
    NUM(mup_base_head, "mup_base_head_dim", "mup-base-head-dim", 0, 1 << 20, \
        "softmax-scale is the root of this / kv-channels; the base's kv-channels; 0: 1") \
    NUM(mup_power, "mup_attn_scale_power", "mup-attn-scale-power", 0, 10, "/ kv-channels to the power of this; 0: 1")
#define FIELD_OF_INT(field, ...) int64_t field;
#define FIELD_OF_NUM(field, ...) double field;
#define FIELD_OF_FLAG(field, ...) bool field;
#define FIELD_OF_WORD(field, ...) int field;
/* The denominator of attention's softmax: the keys' alone; 1 more; exp of a learned logit a head more. */
enum softmax_kind { SOFTMAX_VANILLA, SOFTMAX_OFF_BY_ONE, SOFTMAX_LEARNABLE };

enum moe_balancing { BALANCE_AUX_LOSS, BALANCE_NONE, BALANCE_SEQUENCE, BALANCE_GLOBAL };
enum moe_drop { DROP_PROBS, DROP_POSITION };
enum router_score { ROUTER_SOFTMAX, ROUTER_SIGMOID };

/* Linear layers that may have adapters, by their bits; those of latents in place of QKV. */
enum lora_target {
    LORA_TARGET_QKV = 1, LORA_TARGET_PROJ = 2, LORA_TARGET_FC1 = 4, LORA_TARGET_FC2 = 8,
    LORA_TARGET_Q_DOWN = 16, LORA_TARGET_Q_UP = 32, LORA_TARGET_KV_DOWN = 64, LORA_TARGET_KV_UP = 128,
    LORA_TARGET_EXPERT_FC1 = 256, LORA_TARGET_EXPERT_FC2 = 512, /* of each expert that a router chooses */
    LORA_TARGET_EXPERTS = LORA_TARGET_EXPERT_FC1 | LORA_TARGET_EXPERT_FC2,
};
enum { LORA_EXPERTS = 8, LORA_TARGETS = 10 }; /* so many before those of experts; all */
enum { LORA_RANK_MOST = 4096 };

enum { MODEL_MTP_MOST = 8 };
enum { MODEL_EXPERTS_MOST = 4096, MODEL_EXPERTS_ALL = 1 << 18 }; /* of a layer; of all */

/* What a checkpoint must agree with. */
struct model_config {
    int64_t layers, hidden, heads;
    int64_t groups;       /* heads of keys and values; 0: heads */
    int64_t head_dim;     /* 0: hidden / heads */
    int64_t ffn;          /* 0: 4 hidden; gated 8/3 hidden, down to a multiple of 64 */
    int64_t seq;          /* tokens a training sample has */
    int64_t positions;    /* the longest sequence, >= seq; rows of a learned position embedding */
    int64_t vocab;        /* ids the tokenizer can give */
    int64_t padded_vocab; /* rows of the word embedding */
    int norm, position;   /* enum norm_kind, position_kind */
    int norm_place, parallel; /* enum norm_place, parallel_kind */
    bool norm_1p;         /* weights of norms are stored as the offset from one */
    bool norm_bare;       /* norms have neither weights nor biases */
    bool embedding_norm;  /* a norm of the embeddings, before the first layer */
    double embedding_scale, residual_scale, logits_scale; /* times which the embedding, what a branch adds to the stream, and
                             the logits are taken; 0: 1, with muP the logits 1 / model_width() */
    bool untie;           /* an output layer of its own */
    int mlp;              /* enum mlp_kind */
    bool qk_norm;         /* queries and keys normalised, head by head, before they turn */
    bool qk_norm_wide;    /* ... or each over its whole width, of all heads */
    bool no_bias;         /* no biases in linear layers ... */
    bool qkv_bias, proj_bias, mlp_bias; /* ... but in linear_qkv, in linear_proj, in MLPs and experts */
    double norm_eps;      /* 0: 1e-5 */
    ATTENTION_FIELDS(FIELD_OF_INT, FIELD_OF_NUM, FIELD_OF_FLAG, FIELD_OF_WORD) /* 0: rotary_base 10000, rotary_percent 1 */
    MUP_FIELDS(FIELD_OF_INT, FIELD_OF_NUM, FIELD_OF_FLAG)
    bool rope_scaling;    /* for a longer context than rope_original: struct rope_scaling of kernels/rope.h */
    int rope_kind;        /* enum rope_kind, and its numbers: */
    double rope_factor, rope_low, rope_high; /* 0: 8, 1, 4 (yarn: 32) */
    int64_t rope_original;                   /* 0: 8192 (yarn: 4096) */
    double rope_attention;                   /* 0: 0.1 ln rope_factor + 1 */
    bool rope_exact;
    int64_t experts;      /* of a layer's mixture (module_experts.c); 0: none, and so is what follows */
    int64_t topk;         /* experts of a token; 0: 2 */
    int64_t moe_ffn;      /* width inside an expert; 0: ffn */
    int64_t moe_shared;   /* width inside the MLP that every token meets beside its experts (module_shared.c); 0: there is none */
    bool router_bias;     /* added to the router's logits */
    bool shared_gate;     /* its output times the sigmoid of a product of its input */
    int64_t moe_freq;     /* every so many layers have experts, the first one too; 0: 1 */
    char moe_list[256];   /* or which ones have, as runs, "3x0,58x1"; "": every moe_freq-th */
    bool pre_softmax;     /* a token's weights are its softmax over all experts, else over its topk */
    int router_score;     /* enum router_score; sigmoids are divided by the sum of the chosen ones, unless topk is 1 */
    double router_scale;  /* of the weights; 0: 1 */
    int64_t router_groups, router_group_topk; /* a token's experts are of so many groups of neighbours; 0: of any */
    bool router_group_limited; /* these are judged by their best expert alone, not by the sum of topk / router_group_topk */
    bool expert_bias;     /* added to sigmoids for the choice (expert_bias.h); after a step it moves by so much: */
    double bias_rate;
    int balancing;        /* enum moe_balancing */
    double aux_loss, z_loss; /* coefficients */
    double capacity;      /* rows of an expert, of a micro-batch, as a multiple of those by even use; 0: any number */
    int drop_policy;      /* enum moe_drop: which are dropped then */
    bool pad_experts;     /* so many rows for each expert always */
    int64_t lora_rank;    /* of the adapters of linear layers (lora.h), which alone are trained then; 0: there are none */
    double lora_alpha;    /* 0: 32 */
    bool lora_rslora;     /* scaled by the root of the rank */
    int64_t lora_targets; /* bits: which layers have some, of enum lora_target; 0: all, with experts those of attention */
    int64_t mtp_layers;   /* so many tokens behind the next one are predicted too, each by a layer of its own (mtp.h); 0: none */
    double mtp_scale;     /* of the mean of their losses, which is trained on beside the main one */
    double head_z_loss;   /* coefficient of the square of their log-sum-exp */
    double logit_cap;     /* logits x of the output layer as cap tanh(x / cap); 0: none */
    double attention_dropout, hidden_dropout;
    double init_std;
};

/* Derives what is 0 and checks the shape; ERR_ARG names the flag. */
int model_config_check(struct model_config *m, int64_t vocab_divisor, struct err *e);

/* Widths in elements: of the queries, of the keys (and of the values), of linear_qkv's (with a gate
 * behind them, as wide as the queries, or without) and linear_fc1's output; and how many elements of a head turn. */
static inline int64_t model_q_width(const struct model_config *m)
{
    return m->heads * m->head_dim;
}
static inline int64_t model_kv_width(const struct model_config *m)
{
    return m->groups * m->head_dim;
}
static inline int64_t model_qkv_width(const struct model_config *m)
{
    return (m->output_gate ? 2 : 1) * model_q_width(m) + 2 * model_kv_width(m);
}
/* Whether values of a layer (of the whole model) have an embedding (module_value.c); and how many layers' do. */
static inline bool model_layer_value(const struct model_config *m, int64_t layer)
{
    return m->value_freq && (m->layers - 1 - layer) % m->value_freq == 0;
}
static inline int64_t model_value_layers(const struct model_config *m)
{
    return m->value_freq ? (m->layers + m->value_freq - 1) / m->value_freq : 0;
}
/* Width over that of muP's base; 1 without muP. */
static inline double model_width(const struct model_config *m)
{
    return m->mup ? (double)m->hidden / (double)m->mup_base_hidden : 1;
}
/* Widths with latents: what comes of a token beside its queries, which is what a cache keeps of it; keys without what turns, and
 * values, made of that; and in any case what goes into linear_proj. */
static inline int64_t model_latent_width(const struct model_config *m)
{
    return m->kv_rank + m->qk_turn;
}
static inline int64_t model_kv_up_width(const struct model_config *m)
{
    return m->heads * (m->qk_flat + m->v_dim);
}
static inline int64_t model_proj_width(const struct model_config *m)
{
    return m->latent ? m->heads * m->v_dim : model_q_width(m);
}
/* Whether a branch has a norm before its module, and one after it. */
static inline bool model_pre_norm(const struct model_config *m)
{
    return m->norm_place != NORM_POST;
}
static inline bool model_post_norm(const struct model_config *m)
{
    return m->norm_place != NORM_PRE;
}
/* How many norms as wide as the stream a layer has. */
static inline int model_layer_norms(const struct model_config *m)
{
    return (model_pre_norm(m) ? m->parallel == PARALLEL_NORM ? 1 : 2 : 0) + (model_post_norm(m) ? 2 : 0);
}
/* Whether linear_qkv, linear_proj, and linear_fc1 and fc2 have biases. */
static inline bool model_qkv_bias(const struct model_config *m)
{
    return !m->no_bias || m->qkv_bias;
}
static inline bool model_proj_bias(const struct model_config *m)
{
    return !m->no_bias || m->proj_bias;
}
static inline bool model_mlp_bias(const struct model_config *m)
{
    return !m->no_bias || m->mlp_bias;
}
/* The activation of its MLPs; how many halves the output of a first linear layer has. */
enum act model_act(const struct model_config *m);
int model_halves(const struct model_config *m);
static inline int64_t model_fc1_width(const struct model_config *m)
{
    return model_halves(m) * m->ffn;
}
static inline int64_t model_moe_fc1_width(const struct model_config *m)
{
    return model_halves(m) * m->moe_ffn;
}
/* Whether a layer (of the whole model) has experts; and how many of all do. */
bool model_layer_moe(const struct model_config *m, int64_t layer);
/* Whether those that predict tokens further on do: they are as the last one. */
static inline bool model_mtp_moe(const struct model_config *m)
{
    return m->mtp_layers && model_layer_moe(m, m->layers - 1);
}
int64_t model_moe_layers(const struct model_config *m);
/* Megatron's --moe-layer-freq for m->layers, to moe_freq and moe_list: a number, 0s and 1s with commas between, or an expression
 * of lists, "([0]*3+[1]*58)"; ERR_ARG.  The check is that of a list from anywhere. */
int moe_layers_parse(const char *text, struct model_config *m, struct err *e);
int moe_layers_check(const struct model_config *m, struct err *e);
/* Width inside the MLP that all tokens of a layer meet; 0: it has none. */
static inline int64_t model_layer_ffn(const struct model_config *m, bool moe)
{
    return moe ? m->moe_shared : m->ffn;
}
/* Which of enum lora_target the layers of a model have, and the name of the one of bit k, as it stands in names of tensors. */
int64_t model_lora_targets(const struct model_config *m);
const char *model_lora_target(const struct model_config *m, int k);
/* Whether the loss that keeps them evenly used is trained on. */
static inline bool model_aux_loss(const struct model_config *m)
{
    return m->experts && m->balancing != BALANCE_NONE && m->aux_loss > 0;
}
/* Whether it is of counts that go beyond a micro-batch: of the step so far, of all ranks. */
static inline bool model_aux_global(const struct model_config *m)
{
    return model_aux_loss(m) && m->balancing == BALANCE_GLOBAL;
}
/* Whether it is of other numbers than those that tokens go by. */
static inline bool model_aux_apart(const struct model_config *m)
{
    return model_aux_loss(m) && (m->router_score == ROUTER_SIGMOID || m->router_groups || m->balancing == BALANCE_SEQUENCE);
}
int64_t model_rotary_width(const struct model_config *m);
/* By what yarn multiplies queries and keys with latents: its cosines, and the scale of attention twice (DeepSeek-V2). */
double model_mscale(const struct model_config *m);

/* Elements of all parameters (padded vocabulary included); of those that a token meets: topk of the experts. */
int64_t model_config_params(const struct model_config *m);
int64_t model_config_active(const struct model_config *m);

/* Floating-point operations of forward and backward for one token of a sequence of
 * seq tokens: 6 for each weight of a matrix product that it meets (the output layer included, the
 * embedding look-ups not), and 6 * layers * heads * head_dim * seq for causal attention. */
double model_config_flops(const struct model_config *m, int64_t seq);

/* The fields by name, for what writes, reads and compares them. */
enum model_field_type { FIELD_INT, FIELD_NUM, FIELD_BOOL, FIELD_WORD /* an int: the index of a word */,
    FIELD_RUNS /* char [256], moe_list's */ };
struct model_field {
    const char *key;  /* in a checkpoint's metadata; the flag has dashes for underscores */
    enum model_field_type type;
    size_t at;        /* offset in struct model_config */
    bool needed;      /* metadata without it make no sense */
    bool shape;       /* a checkpoint that differs here is of another model */
    const char *const *words; /* of a word; NULL behind the last */
};
extern const struct model_field model_fields[];
extern const int model_fields_n;

/* The first field of `shape` in which a and b differ; NULL: none. */
const struct model_field *model_config_differs(const struct model_config *a, const struct model_config *b);

/* A field as text; for a message. */
const char *model_field_text(const struct model_field *f, const struct model_config *m, char *buf, size_t size);

/* The flags that a preset stands for, "name value name value ..."; NULL if there is none of
 * that name.  Sources: docs/training.md. */
const char *model_preset(const char *name);
/* The names of all presets, NULL at the end. */
const char *const *model_preset_names(void);

#ifdef __cplusplus
}
#endif
#endif
