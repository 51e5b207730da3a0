/* config.json. */
#include <inttypes.h>
#include <math.h>

#include "base/json.h"
#include "base/log.h"
#include "base/node.h"
#include "kernels/rope.h"
#include "train/hf.h"
#include "train/layer_attention.h"

static const char *const family_name[] = {"gpt2", "llama", "qwen2", "qwen3", "mixtral", "qwen3_moe", "qwen2_moe"};
static const char *const class_name[] = {"GPT2LMHeadModel", "LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM",
                                         "MixtralForCausalLM", "Qwen3MoeForCausalLM", "Qwen2MoeForCausalLM"};
enum { FAMILIES = sizeof family_name / sizeof *family_name };

/* ---- reading ---- */

/* A size; fallback where it is absent or null; fallback < 0: it is needed. */
static int size_of(const char *what, const struct node *root, const char *key, int64_t fallback, int64_t *v, struct err *e)
{
    const struct node *n = node_get(root, key);

    if (!n || n->type == NODE_NULL) {
        *v = fallback;
        return fallback < 0 ? err_set(e, ERR_FORMAT, "%s: no %s", what, key) : 0;
    }
    if (n->type != NODE_INT || n->integer < 1 || n->integer > 1 << 30)
        return err_set(e, ERR_FORMAT, "%s: %s is not a size", what, key);
    *v = n->integer;
    return 0;
}

/* A positive number. */
static int number_of(const char *what, const struct node *root, const char *key, double fallback, double *v, struct err *e)
{
    const struct node *n = node_get(root, key);

    *v = fallback;
    if (!n || n->type == NODE_NULL)
        return 0;
    if ((n->type != NODE_NUM && n->type != NODE_INT) || !(n->num > 0) || !(n->num < 1e18))
        return err_set(e, ERR_FORMAT, "%s: %s is not a positive number", what, key);
    *v = n->num;
    return 0;
}

/* The kind of MLP that has the activation which key says, gated as the one that m has, which it is without key. */
static int parse_mlp(const char *what, const struct node *root, const char *key, struct model_config *m, struct err *e)
{
    const struct node *n = node_get(root, key);
    bool gated = mlp_kinds[m->mlp].gated;
    int k = 0;

    if (!n)
        return 0;
    if (n->type != NODE_STR)
        return err_set(e, ERR_FORMAT, "%s: %s is not a word", what, key);
    while (k < MLP_KINDS_N && (mlp_kinds[k].gated != gated ||
                               !(span_is(n->str, mlp_kinds[k].hf[0]) || span_is(n->str, mlp_kinds[k].hf[1]))))
        k++;
    if (k == MLP_KINDS_N)
        return err_set(e, ERR_UNSUPPORTED, "%s: %s '%s' cannot be done here%s", what, key, n->str.p, gated ? " with a gate" : "");
    m->mlp = k;
    return 0;
}

static int off(const char *what, const struct node *root, const char *key, struct err *e)
{
    return node_bool(root, key, false) ? err_set(e, ERR_UNSUPPORTED, "%s: %s cannot be done here", what, key) : 0;
}

static int parse_gpt2(const char *what, const struct node *root, struct model_config *m, struct err *e)
{
    TRY(size_of(what, root, "n_layer", -1, &m->layers, e));
    TRY(size_of(what, root, "n_embd", -1, &m->hidden, e));
    TRY(size_of(what, root, "n_head", -1, &m->heads, e));
    TRY(size_of(what, root, "n_inner", 0, &m->ffn, e));
    TRY(size_of(what, root, "n_positions", 1024, &m->positions, e));
    TRY(number_of(what, root, "layer_norm_epsilon", 1e-5, &m->norm_eps, e));
    m->mlp = MLP_GELU;
    TRY(parse_mlp(what, root, "activation_function", m, e));
    TRY(off(what, root, "scale_attn_by_inverse_layer_idx", e));
    if (!node_bool(root, "scale_attn_weights", true))
        return err_set(e, ERR_UNSUPPORTED, "%s: scale_attn_weights is false", what);
    m->untie = !node_bool(root, "tie_word_embeddings", true);
    return 0;
}

static const char *const rope_name[] = {[ROPE_LLAMA3] = "llama3", [ROPE_LINEAR] = "linear", [ROPE_YARN] = "yarn",
                                        [ROPE_DYNAMIC] = "dynamic"};
enum { ROPES = sizeof rope_name / sizeof *rope_name };

/* By how much yarn's cosines grow where nothing else is said. */
static double yarn_attention(double factor, double scale)
{
    return factor > 1 ? 0.1 * scale * log(factor) + 1 : 1;
}

/* Numbers of a rope_type, in r or, some of them, at the root. */
static int parse_scaling(const char *what, const struct node *root, const struct node *r, struct model_config *m, struct err *e)
{
    const struct node *outside = node_get(root, "original_max_position_embeddings");
    double scale, all;

    m->rope_scaling = true;
    if (m->rope_kind == ROPE_LLAMA3 || m->rope_kind == ROPE_YARN)
        TRY(size_of(what, outside ? root : r, "original_max_position_embeddings", m->positions, &m->rope_original, e));
    TRY(number_of(what, r, "factor", m->rope_kind == ROPE_YARN ? (double)m->positions / (double)m->rope_original : 0,
                  &m->rope_factor, e));
    if (m->rope_factor < 1)
        return err_set(e, ERR_FORMAT, "%s: rope_type '%s' without a factor of at least 1", what, rope_name[m->rope_kind]);
    if (m->rope_kind == ROPE_LLAMA3) {
        TRY(number_of(what, r, "low_freq_factor", 1, &m->rope_low, e));
        return number_of(what, r, "high_freq_factor", 4, &m->rope_high, e);
    }
    if (m->rope_kind != ROPE_YARN)
        return 0;
    TRY(number_of(what, r, "beta_slow", 1, &m->rope_low, e));
    TRY(number_of(what, r, "beta_fast", 32, &m->rope_high, e));
    TRY(number_of(what, r, "mscale", 0, &scale, e));
    TRY(number_of(what, r, "mscale_all_dim", 0, &all, e));
    if (scale == 0 || all == 0) {
        scale = 1;
        all = 0;
    }
    m->rope_exact = !node_bool(r, "truncate", true);
    return number_of(what, r, "attention_factor", yarn_attention(m->rope_factor, scale) / yarn_attention(m->rope_factor, all),
                     &m->rope_attention, e);
}

/* rope_parameters as transformers 5 writes it; before that rope_theta and rope_scaling. */
static int parse_rope(const char *what, const struct node *root, enum hf_family family, struct model_config *m, struct err *e)
{
    const struct node *r = node_get(root, "rope_parameters");
    const char *type;
    double share;

    if (!r || r->type != NODE_MAP)
        r = node_get(root, "rope_scaling");
    TRY(number_of(what, root, "rope_theta", 10000, &m->rotary_base, e));
    TRY(number_of(what, r, "rope_theta", m->rotary_base, &m->rotary_base, e));
    TRY(number_of(what, root, "partial_rotary_factor", 1, &share, e));
    TRY(number_of(what, r, "partial_rotary_factor", share, &share, e));
    if (share != 1)
        return err_set(e, ERR_UNSUPPORTED, "%s: partial_rotary_factor: transformers turns whole heads in such a model", what);
    for (const struct node *c = r && r->type == NODE_MAP ? r->child : NULL; c; c = c->next)
        if (c->type == NODE_MAP)
            return err_set(e, ERR_UNSUPPORTED, "%s: rotary angles that differ from layer to layer cannot be done here", what);
    if (family != HF_LLAMA && !node_get(root, "rope_theta") && !node_get(r, "rope_theta"))
        return err_set(e, ERR_FORMAT, "%s: no rope_theta", what);
    type = node_str(r, "rope_type");
    if (!type)
        type = node_str(r, "type");
    if (!type || strcmp(type, "default") == 0)
        return 0;
    while (m->rope_kind < ROPES && strcmp(type, rope_name[m->rope_kind]) != 0)
        m->rope_kind++;
    if (m->rope_kind == ROPES)
        return err_set(e, ERR_UNSUPPORTED, "%s: rope_type '%s' cannot be done here", what, type);
    return parse_scaling(what, root, r, m, e);
}

/* Within a window's length it makes no difference, so that is how long the model is here. */
static int parse_window(const char *what, const struct node *root, enum hf_family family, struct model_config *m, struct err *e)
{
    bool windowed = family == HF_LLAMA || family == HF_MIXTRAL || node_bool(root, "use_sliding_window", false);
    const struct node *types = node_get(root, "layer_types");
    int64_t window = 0;

    for (const struct node *t = types ? types->child : NULL; t; t = t->next) {
        bool slides = t->type == NODE_STR && span_is(t->str, "sliding_attention");

        windowed |= slides;
        if (!slides && !(t->type == NODE_STR && span_is(t->str, "full_attention")))
            return err_set(e, ERR_UNSUPPORTED, "%s: layer_types has another than full_attention", what);
    }
    if (windowed)
        TRY(size_of(what, root, "sliding_window", m->positions, &window, e));
    if (!windowed || window >= m->positions)
        return 0;
    log_msg(LOG_WARN, "%s: sliding_window: sequences of %" PRId64 " tokens at most, where it makes no difference, not %" PRId64,
            what, window, m->positions);
    m->positions = window;
    return 0;
}

/* Mixtral's weights are a softmax over the chosen, as Qwen's are where they are made to sum to 1. */
static int parse_experts(const char *what, const struct node *root, enum hf_family family, struct model_config *m, struct err *e)
{
    const struct node *dense = node_get(root, "mlp_only_layers");
    int64_t step;

    TRY(size_of(what, root, "num_experts_per_tok", -1, &m->topk, e));
    TRY(size_of(what, root, node_get(root, "num_experts") ? "num_experts" : "num_local_experts", -1, &m->experts, e));
    if (family == HF_MIXTRAL)
        return 0;
    TRY(size_of(what, root, "moe_intermediate_size", -1, &m->moe_ffn, e));
    TRY(size_of(what, root, "decoder_sparse_step", 1, &step, e));
    if (step != 1 || (dense && dense->child))
        return err_set(e, ERR_UNSUPPORTED, "%s: %s: layers without experts cannot be done here", what,
                       step != 1 ? "decoder_sparse_step" : "mlp_only_layers");
    m->pre_softmax = !node_bool(root, "norm_topk_prob", false);
    m->shared_gate = family == HF_QWEN2_MOE;
    return family == HF_QWEN2_MOE ? size_of(what, root, "shared_expert_intermediate_size", -1, &m->moe_shared, e) : 0;
}

static bool has_experts(enum hf_family family)
{
    return family == HF_MIXTRAL || family == HF_QWEN3_MOE || family == HF_QWEN2_MOE;
}

static int parse_llama(const char *what, const struct node *root, enum hf_family family, struct model_config *m, struct err *e)
{
    static const char *const needed[] = {"num_key_value_heads", "rms_norm_eps"};
    bool llama = strcmp(node_str(root, "model_type"), "llama") == 0;

    /* Each of the others has defaults of its own; files of old have none of Llama's. */
    for (size_t i = 0; !llama && i < sizeof needed / sizeof *needed; i++)
        if (!node_get(root, needed[i]))
            return err_set(e, ERR_FORMAT, "%s: no %s", what, needed[i]);
    TRY(size_of(what, root, "num_hidden_layers", -1, &m->layers, e));
    TRY(size_of(what, root, "hidden_size", -1, &m->hidden, e));
    TRY(size_of(what, root, "num_attention_heads", -1, &m->heads, e));
    TRY(size_of(what, root, "intermediate_size", -1, &m->ffn, e));
    TRY(size_of(what, root, "max_position_embeddings", llama ? 2048 : -1, &m->positions, e));
    TRY(size_of(what, root, "num_key_value_heads", m->heads, &m->groups, e));
    TRY(size_of(what, root, "head_dim", family == HF_QWEN3 ? 128 : 0, &m->head_dim, e));
    TRY(parse_rope(what, root, family, m, e)); /* by all positions */
    TRY(parse_window(what, root, family, m, e));
    TRY(number_of(what, root, "rms_norm_eps", 1e-6, &m->norm_eps, e));
    m->mlp = MLP_SWIGLU;
    TRY(parse_mlp(what, root, "hidden_act", m, e));
    m->norm = NORM_RMS;
    m->position = POSITION_ROPE;
    m->qk_norm = family == HF_QWEN3 || family == HF_QWEN3_MOE;
    m->untie = !node_bool(root, "tie_word_embeddings", false);
    m->no_bias = !node_bool(root, "mlp_bias", false);
    if (m->no_bias == node_bool(root, "attention_bias", false))
        return err_set(e, ERR_UNSUPPORTED, "%s: attention_bias and mlp_bias: both or neither can be done here", what);
    m->qkv_bias = family == HF_QWEN2 || (family == HF_QWEN2_MOE && node_bool(root, "qkv_bias", true));
    return has_experts(family) ? parse_experts(what, root, family, m, e) : 0;
}

int hf_config_parse(const char *what, struct span text, int64_t divisor, struct model_config *m,
                    enum hf_family *family, struct err *e)
{
    struct arena a = {.max = 64 << 20};
    struct node *root;
    const char *type;
    int rc = node_parse_json(&a, text, &root, e), f = 0;

    memset(m, 0, sizeof *m);
    m->init_std = 0.02;
    if (rc < 0) {
        arena_free(&a);
        return err_wrap(e, "%s", what);
    }
    type = node_str(root, "model_type");
    if (type && strcmp(type, "mistral") == 0)
        type = "llama"; /* the same but for its window */
    while (f < FAMILIES && !(type && strcmp(type, family_name[f]) == 0))
        f++;
    if (f == FAMILIES)
        rc = err_set(e, type ? ERR_UNSUPPORTED : ERR_FORMAT, "%s: model_type '%s' is not one of gpt2, llama, mistral, mixtral,"
                     " qwen2, qwen2_moe, qwen3, qwen3_moe", what, type ? type : "");
    *family = (enum hf_family)f;
    if (rc == 0 && node_get(root, "quantization_config") && node_get(root, "quantization_config")->type != NODE_NULL)
        rc = err_set(e, ERR_UNSUPPORTED, "%s: quantization_config: quantized weights cannot be read here", what);
    if (rc == 0)
        rc = size_of(what, root, "vocab_size", -1, &m->vocab, e);
    if (rc == 0)
        rc = *family == HF_GPT2 ? parse_gpt2(what, root, m, e) : parse_llama(what, root, *family, m, e);
    m->seq = m->positions;
    if (rc == 0 && model_config_check(m, divisor, e) < 0)
        rc = err_wrap(e, "%s", what);
    arena_free(&a);
    return rc;
}

/* ---- writing ---- */

/* llama: but for its experts it is like one. */
static int family_with_experts(const struct model_config *m, bool llama, enum hf_family *family, struct err *e)
{
    bool shared = m->moe_shared > 0;

    *family = shared ? HF_QWEN2_MOE : m->qk_norm ? HF_QWEN3_MOE : HF_MIXTRAL;
    if (m->router_score != ROUTER_SOFTMAX || m->router_scale != 1 || m->router_groups)
        return err_set(e, ERR_UNSUPPORTED, "transformers' mixtral, qwen2_moe and qwen3_moe weigh experts by a softmax,"
                       " unscaled, of any group; this model differs");
    if (!llama || !m->no_bias || m->moe_freq != 1)
        return err_set(e, ERR_UNSUPPORTED, "transformers' mixtral, qwen2_moe and qwen3_moe have experts in each layer, gated"
                       " MLPs, RMSNorm, rotary positions and no biases; this model differs");
    if (shared && (!m->shared_gate || m->qk_norm))
        return err_set(e, ERR_UNSUPPORTED, "transformers' qwen2_moe, which has a shared expert, has a gate at it and no norms of"
                       " queries and keys; this model differs");
    if (!shared && (m->qkv_bias || (m->pre_softmax && !m->qk_norm)))
        return err_set(e, ERR_UNSUPPORTED, "transformers' mixtral and qwen3_moe have no biases, mixtral a softmax over the chosen"
                       " experts; this model differs");
    return 0;
}

int hf_family_of(const struct model_config *m, enum hf_family *family, struct err *e)
{
    bool gated = mlp_kinds[m->mlp].gated;
    bool llama = m->position == POSITION_ROPE && m->norm == NORM_RMS && gated && m->rotary_percent == 1;
    bool gpt2 = m->position == POSITION_LEARNED && m->norm == NORM_LAYER && !gated && !m->qk_norm && !m->no_bias &&
                m->groups == m->heads && model_q_width(m) == m->hidden;

    if (m->norm_place || m->parallel || m->norm_1p || m->qk_norm_wide || (m->no_bias && (m->proj_bias || m->mlp_bias)) ||
        m->embedding_scale != 1 || m->residual_scale != 1 || m->logits_scale != 1)
        return err_set(e, ERR_UNSUPPORTED, "export knows no model of transformers with such a block, such biases or multipliers");
    if (!layer_attention_alike(m))
        return err_set(e, ERR_UNSUPPORTED, "no model of transformers that can be written has this one's attention");
    if (m->experts)
        return family_with_experts(m, llama, family, e);
    if (gpt2)
        *family = HF_GPT2;
    else if (llama && !m->qk_norm && !(m->no_bias && m->qkv_bias))
        *family = HF_LLAMA;
    else if (llama && !m->qk_norm && model_q_width(m) == m->hidden)
        *family = HF_QWEN2;
    else if (llama && m->qk_norm && m->no_bias && !m->qkv_bias)
        *family = HF_QWEN3;
    else
        return err_set(e, ERR_UNSUPPORTED,
                       "no model of transformers (gpt2, llama, mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe) has this one's "
                       "positions, norms, MLP and biases");
    return 0;
}

static int put_scaling(struct buf *b, const struct model_config *m)
{
    bool llama3 = m->rope_kind == ROPE_LLAMA3, yarn = m->rope_kind == ROPE_YARN;

    if (!m->rope_scaling)
        return buf_puts(b, ",\"rope_scaling\":null");
    TRY(buf_printf(b, ",\"rope_scaling\":{\"rope_type\":\"%s\",\"factor\":%.17g", rope_name[m->rope_kind], m->rope_factor));
    if (llama3 || yarn)
        TRY(buf_printf(b, ",\"%s\":%.17g,\"%s\":%.17g,\"original_max_position_embeddings\":%" PRId64,
                       llama3 ? "low_freq_factor" : "beta_slow", m->rope_low, llama3 ? "high_freq_factor" : "beta_fast",
                       m->rope_high, m->rope_original));
    if (yarn && m->rope_attention != yarn_attention(m->rope_factor, 1))
        TRY(buf_printf(b, ",\"attention_factor\":%.17g", m->rope_attention));
    if (yarn && m->rope_exact)
        TRY(buf_puts(b, ",\"truncate\":false"));
    return buf_puts(b, "}");
}

static int put_llama(struct buf *b, const struct model_config *m, enum hf_family family)
{
    const char *bias = m->no_bias ? "false" : "true";

    TRY(buf_printf(b, ",\"num_hidden_layers\":%" PRId64 ",\"hidden_size\":%" PRId64 ",\"num_attention_heads\":%" PRId64
                      ",\"intermediate_size\":%" PRId64 ",\"max_position_embeddings\":%" PRId64
                      ",\"num_key_value_heads\":%" PRId64 ",\"head_dim\":%" PRId64 ",\"rms_norm_eps\":%.17g"
                      ",\"hidden_act\":\"%s\",\"rope_theta\":%.17g",
                   m->layers, m->hidden, m->heads, family == HF_MIXTRAL ? m->moe_ffn : m->ffn, m->positions, m->groups,
                   m->head_dim, m->norm_eps, mlp_kinds[m->mlp].hf[0], m->rotary_base));
    if (family == HF_MIXTRAL)
        TRY(buf_printf(b, ",\"num_local_experts\":%" PRId64 ",\"num_experts_per_tok\":%" PRId64, m->experts, m->topk));
    if (family == HF_QWEN3_MOE || family == HF_QWEN2_MOE)
        TRY(buf_printf(b, ",\"num_experts\":%" PRId64 ",\"num_experts_per_tok\":%" PRId64 ",\"moe_intermediate_size\":%" PRId64
                          ",\"norm_topk_prob\":%s,\"decoder_sparse_step\":1,\"mlp_only_layers\":[]",
                       m->experts, m->topk, m->moe_ffn, m->pre_softmax ? "false" : "true"));
    if (family == HF_QWEN2_MOE)
        TRY(buf_printf(b, ",\"shared_expert_intermediate_size\":%" PRId64 ",\"qkv_bias\":%s", m->moe_shared,
                       m->qkv_bias ? "true" : "false"));
    if (family == HF_LLAMA)
        TRY(buf_printf(b, ",\"attention_bias\":%s,\"mlp_bias\":%s", bias, bias));
    return put_scaling(b, m);
}

int hf_config_put(struct buf *b, const struct model_config *m, enum hf_family family, const char *dtype)
{
    TRY(buf_printf(b, "{\"model_type\":\"%s\",\"architectures\":[\"%s\"],\"torch_dtype\":\"%s\",\"vocab_size\":%" PRId64
                      ",\"tie_word_embeddings\":%s,\"bos_token_id\":null,\"eos_token_id\":null",
                   family_name[family], class_name[family], dtype, m->vocab, m->untie ? "false" : "true"));
    if (family == HF_GPT2)
        TRY(buf_printf(b, ",\"n_layer\":%" PRId64 ",\"n_embd\":%" PRId64 ",\"n_head\":%" PRId64 ",\"n_inner\":%" PRId64
                          ",\"n_positions\":%" PRId64 ",\"layer_norm_epsilon\":%.17g,\"activation_function\":\"%s\"",
                       m->layers, m->hidden, m->heads, m->ffn, m->positions, m->norm_eps, mlp_kinds[m->mlp].hf[0]));
    else
        TRY(put_llama(b, m, family));
    return buf_puts(b, "}\n");
}
