#include "train/model_config.h"
#include "kernels/rope.h"
#include "kernels/route.h"
#include "train/layer_attention.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int64_t model_rotary_width(const struct model_config *m)
{
    return m->latent ? m->qk_turn : (int64_t)((double)m->head_dim * m->rotary_percent) / 2 * 2;
}

static int64_t pad(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

double model_mscale(const struct model_config *m)
{
    return 0.1 * m->mscale_all * log(m->rope_factor) + 1;
}

static void derive_rope(struct model_config *m)
{
    if (m->position == POSITION_YARN) {
        m->position = POSITION_ROPE;
        m->rope_scaling = true;
        m->rope_kind = ROPE_YARN;
    }
    if (m->rope_factor == 0)
        m->rope_factor = 8;
    if (m->rope_low == 0)
        m->rope_low = 1;
    if (m->rope_high == 0)
        m->rope_high = m->rope_kind == ROPE_YARN ? 32 : 4;
    if (!m->rope_original)
        m->rope_original = m->rope_kind == ROPE_YARN ? 4096 : 8192;
    if (m->rope_attention == 0 && m->rope_kind == ROPE_YARN)
        m->rope_attention = (0.1 * (m->latent ? m->mscale : 1) * log(m->rope_factor) + 1) / model_mscale(m);
}

static void derive_lora(struct model_config *m)
{
    if (!m->lora_rank) {
        m->lora_alpha = 0;
        m->lora_rslora = false;
        m->lora_targets = 0;
        return;
    }
    if (m->lora_alpha == 0)
        m->lora_alpha = 32;
    if (!m->lora_targets) /* PEFT takes gate_proj and its like of a model with experts for those of experts */
        m->lora_targets = model_lora_targets(m) & (m->experts ? ~(LORA_TARGET_FC1 | LORA_TARGET_FC2 | LORA_TARGET_EXPERTS) : -1);
}

static void derive_mup(struct model_config *m)
{
    if (!m->mup)
        return;
    if (!m->mup_base_hidden)
        m->mup_base_hidden = m->hidden;
    if (m->mup_base_head == 0)
        m->mup_base_head = 1;
    if (m->mup_power == 0)
        m->mup_power = 1;
    if (m->softmax_scale == 0 && m->head_dim)
        m->softmax_scale = sqrt(m->mup_base_head) / pow((double)m->head_dim, m->mup_power);
}

/* Heads have what turns and what does not side by side; values are padded to their width. */
static void derive_latent(struct model_config *m)
{
    if (!m->latent)
        return;
    if (!m->kv_rank)
        m->kv_rank = 32;
    if (!m->qk_flat)
        m->qk_flat = 128;
    if (!m->qk_turn)
        m->qk_turn = 64;
    if (!m->v_dim)
        m->v_dim = 128;
    if (m->mscale == 0)
        m->mscale = 1;
    if (!m->head_dim)
        m->head_dim = m->qk_flat + m->qk_turn;
}

/* What follows from other fields, or from nothing. */
static void derive(struct model_config *m, int64_t vocab_divisor)
{
    derive_latent(m);
    if (!m->groups)
        m->groups = m->heads;
    if (!m->head_dim && m->hidden % m->heads == 0)
        m->head_dim = m->hidden / m->heads;
    if (!m->ffn)
        m->ffn = model_halves(m) == 2 ? m->hidden * 8 / 3 / 64 * 64 : 4 * m->hidden;
    if (!m->positions)
        m->positions = m->seq;
    if (m->norm_eps == 0)
        m->norm_eps = 1e-5;
    if (m->embedding_scale == 0)
        m->embedding_scale = 1;
    if (m->residual_scale == 0)
        m->residual_scale = 1;
    derive_mup(m);
    if (m->logits_scale == 0)
        m->logits_scale = 1 / model_width(m);
    if (m->qkv_bias && m->proj_bias && m->mlp_bias)
        m->no_bias = false;
    if (!m->no_bias)
        m->qkv_bias = m->proj_bias = m->mlp_bias = false;
    if (m->value_freq && m->value_scale == 0)
        m->value_scale = 1;
    if (m->rotary_base == 0)
        m->rotary_base = 10000;
    if (m->rotary_percent == 0)
        m->rotary_percent = 1;
    derive_rope(m);
    derive_lora(m);
    m->padded_vocab = pad(m->vocab, vocab_divisor);
    if (!m->experts) {
        m->topk = m->moe_ffn = m->moe_freq = m->moe_shared = 0;
        m->pre_softmax = m->pad_experts = m->shared_gate = m->router_bias = false;
        m->capacity = m->router_scale = 0;
        m->router_groups = m->router_group_topk = 0;
        m->router_group_limited = false;
        m->expert_bias = false;
        m->moe_list[0] = 0;
        m->router_score = ROUTER_SOFTMAX;
        return;
    }
    if (!m->topk)
        m->topk = 2;
    if (!m->moe_ffn)
        m->moe_ffn = m->ffn;
    if (!m->moe_freq)
        m->moe_freq = 1;
    if (m->router_scale == 0)
        m->router_scale = 1;
    if (m->router_score != ROUTER_SOFTMAX)
        m->pre_softmax = false;
}

static int check_groups(const struct model_config *m, struct err *e)
{
    int64_t n = m->router_groups, of = m->router_group_topk, each = n ? m->experts / n : 0;
    int64_t judges = m->router_group_limited ? 1 : of ? m->topk / of : 0;

    if (!n != !of)
        return err_set(e, ERR_ARG, "--moe-router-num-groups and --moe-router-group-topk: give both or neither");
    if (n && (n > ROUTE_GROUPS || m->experts % n))
        return err_set(e, ERR_ARG, "--moe-router-num-groups: %" PRId64 " experts in %" PRId64 " equal groups (%d are the most)",
                       m->experts, n, ROUTE_GROUPS);
    if (m->router_group_limited && !n)
        return err_set(e, ERR_ARG, "--moe-router-group-limited-greedy needs --moe-router-num-groups");
    if (n && (of > n || judges < 1 || judges > each || m->topk > of * each))
        return err_set(e, ERR_ARG, "--moe-router-group-topk: %" PRId64 " of %" PRId64 " groups of %" PRId64 " experts; of each"
                       " the topk %" PRId64 " / %" PRId64 " best judge it, and the topk are of these", of, n, each, m->topk, of);
    return 0;
}

int64_t model_lora_targets(const struct model_config *m)
{
    int64_t attention = LORA_TARGET_QKV, mlp = LORA_TARGET_FC1 | LORA_TARGET_FC2;

    if (m->latent)
        attention = (m->q_rank ? LORA_TARGET_Q_DOWN : 0) | LORA_TARGET_Q_UP | LORA_TARGET_KV_DOWN | LORA_TARGET_KV_UP;
    if (m->experts && !m->moe_shared && model_moe_layers(m) == m->layers)
        mlp = 0;
    return attention | LORA_TARGET_PROJ | mlp | (m->experts ? LORA_TARGET_EXPERTS : 0);
}

const char *model_lora_target(const struct model_config *m, int k)
{
    static const char *const names[LORA_TARGETS] = {"linear_qkv", "linear_proj", "linear_fc1", "linear_fc2", "linear_q_down_proj",
                                                    "linear_q_up_proj", "linear_kv_down_proj", "linear_kv_up_proj",
                                                    "experts.linear_fc1", "experts.linear_fc2"};

    return INT64_C(1) << k == LORA_TARGET_Q_UP && !m->q_rank ? "linear_q_proj" : names[k];
}

static int check_lora(const struct model_config *m, struct err *e)
{
    if (m->lora_rank > LORA_RANK_MOST)
        return err_set(e, ERR_ARG, "--lora-rank: %" PRId64 " is more than %d", m->lora_rank, LORA_RANK_MOST);
    if (m->lora_targets & ~model_lora_targets(m))
        return err_set(e, ERR_ARG, "--lora-target: %" PRId64 " has bits of no layer", m->lora_targets);
    return 0;
}

/* Of tokens that are predicted further on. */
static int check_mtp(const struct model_config *m, struct err *e)
{
    if (m->mtp_layers < 0 || m->mtp_layers > MODEL_MTP_MOST)
        return err_set(e, ERR_ARG, "--mtp-num-layers: %" PRId64 " are more than %d", m->mtp_layers, MODEL_MTP_MOST);
    if (m->mtp_layers && m->mtp_layers >= m->seq)
        return err_set(e, ERR_ARG, "--mtp-num-layers: sequences of %" PRId64 " tokens have none so far on", m->seq);
    return 0;
}

static int check_experts(const struct model_config *m, struct err *e)
{
    TRY(check_groups(m, e));
    TRY(moe_layers_check(m, e));
    if (m->experts > MODEL_EXPERTS_MOST)
        return err_set(e, ERR_ARG, "--num-experts: %" PRId64 " are more than %d", m->experts, MODEL_EXPERTS_MOST);
    if (m->experts * model_moe_layers(m) > MODEL_EXPERTS_ALL)
        return err_set(e, ERR_ARG, "--num-experts: %" PRId64 " in each of %" PRId64 " layers are more than %d", m->experts,
                       model_moe_layers(m), MODEL_EXPERTS_ALL);
    if (m->experts && (m->topk < 1 || m->topk > m->experts || m->topk > ROUTE_MOST))
        return err_set(e, ERR_ARG, "--moe-router-topk: %" PRId64 " of %" PRId64 " experts (%d are the most)", m->topk, m->experts,
                       ROUTE_MOST);
    if (m->experts && m->topk == 1 && m->router_score == ROUTER_SOFTMAX && !m->pre_softmax) /* a softmax over one is 1 */
        return err_set(e, ERR_ARG, "--moe-router-topk: 1 needs --moe-router-pre-softmax, or the router learns nothing");
    if (m->moe_shared && model_mlp_bias(m)) /* as Megatron has it */
        return err_set(e, ERR_ARG, "--moe-shared-expert-intermediate-size needs --disable-bias-linear without --add-mlp-bias");
    if (m->expert_bias && m->router_score != ROUTER_SIGMOID) /* as Megatron has it */
        return err_set(e, ERR_ARG, "--moe-router-enable-expert-bias needs --moe-router-score-function sigmoid");
    if (m->shared_gate && !m->moe_shared)
        return err_set(e, ERR_ARG, "--moe-shared-expert-gate needs --moe-shared-expert-intermediate-size");
    if (m->pad_experts && m->capacity <= 0)
        return err_set(e, ERR_ARG, "--moe-pad-expert-input-to-capacity: to which? (--moe-expert-capacity-factor)");
    return 0;
}

int model_config_check(struct model_config *m, int64_t vocab_divisor, struct err *e)
{
    const struct {
        int64_t v;
        const char *flag;
    } need[] = {{m->layers, "num-layers"}, {m->hidden, "hidden-size"}, {m->heads, "num-attention-heads"},
                {m->seq, "seq-length"}, {m->vocab, "vocab-size"}};

    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (need[i].v <= 0)
            return err_set(e, ERR_ARG, "--%s is needed", need[i].flag);
    if (!m->mup && (m->mup_base_hidden || m->mup_base_head > 0 || m->mup_power > 0))
        return err_set(e, ERR_ARG, "--mup-%s needs --use-mup", m->mup_base_hidden ? "base-hidden-size" :
                       m->mup_base_head > 0 ? "base-head-dim" : "attn-scale-power");
    derive(m, vocab_divisor);
    if (m->layers > 100000)
        return err_set(e, ERR_ARG, "--num-layers: %" PRId64 " are more than 100000", m->layers);
    if (!m->head_dim)
        return err_set(e, ERR_ARG, "--num-attention-heads: %" PRId64 " does not divide the hidden size %" PRId64
                       " (give --kv-channels for heads of another width)", m->heads, m->hidden);
    if (m->heads % m->groups)
        return err_set(e, ERR_ARG, "--num-query-groups: %" PRId64 " does not divide the %" PRId64 " heads",
                       m->groups, m->heads);
    if (m->head_dim > 256)
        return err_set(e, ERR_ARG, "--kv-channels: heads of %" PRId64 " elements; 256 are the most", m->head_dim);
    if (m->ffn < 1)
        return err_set(e, ERR_ARG, "--ffn-hidden-size is needed for a hidden size of %" PRId64, m->hidden);
    if (m->norm_bare && m->norm_1p)
        return err_set(e, ERR_ARG, "--apply-layernorm-1p is of weights of norms, which --disable-norm-weight leaves out");
    if (m->qk_norm_wide && !m->qk_norm)
        return err_set(e, ERR_ARG, "--qk-layernorm-full-width needs --qk-layernorm");
    TRY(layer_attention_check(m, e));
    if (m->positions < m->seq)
        return err_set(e, ERR_ARG,
                       "--max-position-embeddings: %" PRId64 " is less than the sequence length %" PRId64,
                       m->positions, m->seq);
    if (m->padded_vocab > INT32_MAX)
        return err_set(e, ERR_ARG, "--vocab-size: %" PRId64 " is too large", m->vocab);
    TRY(check_mtp(m, e));
    TRY(check_lora(m, e));
    return check_experts(m, e);
}

/* ---- kinds of MLP ---- */

#define MLP_ROW(id, name, act, gated, ...) {act, gated, {__VA_ARGS__}},
const struct mlp_row mlp_kinds[MLP_KINDS_N] = {MLP_KINDS(MLP_ROW)};

enum act model_act(const struct model_config *m)
{
    return mlp_kinds[m->mlp].act;
}

int model_halves(const struct model_config *m)
{
    return mlp_kinds[m->mlp].gated ? 2 : 1;
}

/* ---- counts ---- */

/* Of a layer's shared expert and its gate, which have no biases. */
static int64_t shared_params(const struct model_config *m)
{
    return (model_halves(m) + 1) * m->moe_shared * m->hidden + (m->shared_gate ? m->hidden : 0);
}

/* Weights of the matrix products of a layer's attention. */
static int64_t attention_weights(const struct model_config *m)
{
    int64_t h = m->hidden, q = model_q_width(m), proj = model_proj_width(m) * h;

    if (!m->latent)
        return model_qkv_width(m) * h + proj;
    return (m->q_rank ? m->q_rank * (h + q) : h * q) + model_latent_width(m) * h + m->kv_rank * model_kv_up_width(m) + proj;
}

/* Numbers of a layer's norms inside attention. */
static int64_t attention_norms(const struct model_config *m)
{
    int64_t wide = m->qk_norm_wide ? model_q_width(m) + model_kv_width(m) : 2 * m->head_dim;

    return m->qk_norm ? m->latent ? m->q_rank + m->kv_rank : wide : 0;
}

/* Weights of the matrix products of all layers that a token meets. */
static double layers_matrices(const struct model_config *m)
{
    double h = (double)m->hidden, mtp = (double)m->mtp_layers, all = (double)m->layers + mtp;
    double moe = (double)model_moe_layers(m) + (model_mtp_moe(m) ? mtp : 0);
    double dense = h * (double)model_fc1_width(m) + (double)m->ffn * h;
    double experts = (double)m->topk * h * (double)(model_moe_fc1_width(m) + m->moe_ffn) + h * (double)m->experts +
                     (double)shared_params(m);

    double gates = (double)(model_value_layers(m) * m->groups * m->value_gate);

    return gates + all * (double)attention_weights(m) + (all - moe) * dense + moe * experts + mtp * 2 * h * h;
}

/* An MLP's of such widths. */
static int64_t mlp_params(const struct model_config *m, int64_t fc1, int64_t ffn)
{
    return fc1 * m->hidden + m->hidden * ffn + (model_mlp_bias(m) ? fc1 + m->hidden : 0);
}

/* Elements of one expert. */
static int64_t expert_params(const struct model_config *m)
{
    return m->experts ? mlp_params(m, model_moe_fc1_width(m), m->moe_ffn) : 0;
}

/* With so many experts a layer. */
static int64_t params_with(const struct model_config *m, int64_t experts)
{
    int64_t h = m->hidden, qkv = model_qkv_width(m), moe = model_moe_layers(m);
    int64_t norm = m->norm_bare ? 0 : m->norm == NORM_RMS ? 1 : 2;
    int64_t layer = model_layer_norms(m) * norm * h + attention_weights(m) + norm * attention_norms(m);
    int64_t all = m->layers + m->mtp_layers;

    layer += (model_qkv_bias(m) && !m->latent ? qkv : 0) + (model_proj_bias(m) ? h : 0);
    if (m->softmax == SOFTMAX_LEARNABLE)
        layer += m->heads;
    layer = layer * all + model_value_layers(m) * (m->padded_vocab * model_kv_width(m) + m->groups * m->value_gate);
    moe += model_mtp_moe(m) ? m->mtp_layers : 0;
    return m->padded_vocab * h * (m->untie ? 2 : 1) + (m->position == POSITION_LEARNED ? m->positions * h : 0) +
           layer + (1 + m->embedding_norm) * norm * h + (all - moe) * mlp_params(m, model_fc1_width(m), m->ffn) +
           moe * (m->experts * (h + m->router_bias) + shared_params(m) + experts * expert_params(m)) +
           m->mtp_layers * (3 * norm * h + 2 * h * h);
}

int64_t model_config_params(const struct model_config *m)
{
    return params_with(m, m->experts);
}

int64_t model_config_active(const struct model_config *m)
{
    return params_with(m, m->topk);
}

double model_config_flops(const struct model_config *m, int64_t seq)
{
    double products = layers_matrices(m) + (double)(1 + m->mtp_layers) * (double)m->padded_vocab * (double)m->hidden;

    return 6 * products + 6 * (double)(m->layers + m->mtp_layers) * (double)(model_q_width(m) + model_proj_width(m)) *
           layer_attention_keys(m, seq);
}

/* ---- fields ---- */

#define INT(key, field, needed, shape) {key, FIELD_INT, offsetof(struct model_config, field), needed, shape, NULL}
#define NUM(key, field) {key, FIELD_NUM, offsetof(struct model_config, field), false, false, NULL}
#define SHAPE_NUM(key, field) {key, FIELD_NUM, offsetof(struct model_config, field), false, true, NULL}
#define BOOL(key, field) {key, FIELD_BOOL, offsetof(struct model_config, field), false, true, NULL}
#define WORD(key, field, ...) \
    {key, FIELD_WORD, offsetof(struct model_config, field), false, true, (const char *const[]){__VA_ARGS__, NULL}}

#define INT_ROW(field, key, ...) INT(key, field, false, true),
#define NUM_ROW(field, key, ...) NUM(key, field),
#define BOOL_ROW(field, key, ...) BOOL(key, field),
#define WORD_ROW(field, key, flag, words, help, ...) WORD(key, field, __VA_ARGS__),
#define MLP_WORD(id, name, ...) name,
const struct model_field model_fields[] = {
    INT("num_layers", layers, true, true),
    INT("hidden_size", hidden, true, true),
    INT("num_attention_heads", heads, true, true),
    INT("ffn_hidden_size", ffn, true, true),
    INT("seq_length", seq, true, false),
    INT("max_position_embeddings", positions, true, false),
    INT("vocab_size", vocab, true, true),
    INT("padded_vocab_size", padded_vocab, true, true),
    BOOL("untie_embeddings_and_output_weights", untie),
    INT("num_query_groups", groups, false, true),
    INT("kv_channels", head_dim, false, true),
    WORD("normalization", norm, "LayerNorm", "RMSNorm"),
    NUM("norm_epsilon", norm_eps),
    WORD("norm_placement", norm_place, "pre", "post", "both"),
    WORD("parallel_block", parallel, "none", "two-norms", "one-norm"),
    BOOL("apply_layernorm_1p", norm_1p),
    BOOL("disable_norm_weight", norm_bare),
    BOOL("embedding_layernorm", embedding_norm),
    SHAPE_NUM("embedding_multiplier", embedding_scale),
    SHAPE_NUM("residual_multiplier", residual_scale),
    SHAPE_NUM("logits_multiplier", logits_scale),
    WORD("position_embedding_type", position, "learned_absolute", "rope", "none"),
    ATTENTION_FIELDS(INT_ROW, NUM_ROW, BOOL_ROW, WORD_ROW)
    MUP_FIELDS(INT_ROW, NUM_ROW, BOOL_ROW)
    {"use_rope_scaling", FIELD_BOOL, offsetof(struct model_config, rope_scaling), false, false, NULL},
    NUM("rope_scaling_factor", rope_factor),
    NUM("rope_scaling_low", rope_low),
    NUM("rope_scaling_high", rope_high),
    INT("rope_scaling_original", rope_original, false, false),
    {"rope_scaling_type", FIELD_WORD, offsetof(struct model_config, rope_kind), false, false,
     (const char *const[]){"llama3", "linear", "yarn", "dynamic", NULL}},
    NUM("rope_scaling_attention", rope_attention),
    {"rope_scaling_exact", FIELD_BOOL, offsetof(struct model_config, rope_exact), false, false, NULL},
    {"mlp_activation", FIELD_WORD, offsetof(struct model_config, mlp), false, true,
     (const char *const[]){MLP_KINDS(MLP_WORD) NULL}},
    BOOL("qk_layernorm", qk_norm),
    BOOL("disable_bias_linear", no_bias),
    BOOL("qk_layernorm_full_width", qk_norm_wide),
    BOOL("add_qkv_bias", qkv_bias),
    BOOL("add_proj_bias", proj_bias),
    BOOL("add_mlp_bias", mlp_bias),
    NUM("final_logit_softcapping", logit_cap),
    INT("mtp_num_layers", mtp_layers, false, true),
    INT("num_experts", experts, false, true),
    INT("moe_router_topk", topk, false, true),
    INT("moe_ffn_hidden_size", moe_ffn, false, true),
    INT("moe_layer_freq", moe_freq, false, true),
    {"moe_layer_list", FIELD_RUNS, offsetof(struct model_config, moe_list), false, true, NULL},
    INT("moe_shared_expert_intermediate_size", moe_shared, false, true),
    BOOL("moe_shared_expert_gate", shared_gate),
    BOOL("moe_router_bias", router_bias),
    BOOL("moe_router_pre_softmax", pre_softmax),
    WORD("moe_router_score_function", router_score, "softmax", "sigmoid"),
    NUM("moe_router_topk_scaling_factor", router_scale),
    BOOL("moe_router_enable_expert_bias", expert_bias),
    INT("moe_router_num_groups", router_groups, false, true),
    INT("moe_router_group_topk", router_group_topk, false, true),
    BOOL("moe_router_group_limited_greedy", router_group_limited),
    INT("lora_rank", lora_rank, false, false),
    NUM("lora_alpha", lora_alpha),
    {"lora_rslora", FIELD_BOOL, offsetof(struct model_config, lora_rslora), false, false, NULL},
    INT("lora_targets", lora_targets, false, false),
};
const int model_fields_n = sizeof model_fields / sizeof *model_fields;

const char *model_field_text(const struct model_field *f, const struct model_config *m, char *buf, size_t size)
{
    const void *at = (const char *)m + f->at;

    if (f->type == FIELD_INT)
        snprintf(buf, size, "%" PRId64, *(const int64_t *)at);
    else if (f->type == FIELD_NUM)
        snprintf(buf, size, "%.17g", *(const double *)at);
    else if (f->type == FIELD_RUNS)
        snprintf(buf, size, "%s", (const char *)at);
    else if (f->type == FIELD_BOOL)
        snprintf(buf, size, "%s", *(const bool *)at ? "true" : "false");
    else
        snprintf(buf, size, "%s", f->words[*(const int *)at]);
    return buf;
}

const struct model_field *model_config_differs(const struct model_config *a, const struct model_config *b)
{
    char x[256], y[256];

    for (int i = 0; i < model_fields_n; i++) {
        const struct model_field *f = &model_fields[i];
        bool shape = f->shape || (a->position == POSITION_LEARNED && f->at == offsetof(struct model_config, positions));

        if (shape && strcmp(model_field_text(f, a, x, sizeof x), model_field_text(f, b, y, sizeof y)) != 0)
            return f;
    }
    return NULL;
}
