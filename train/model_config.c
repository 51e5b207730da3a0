#include "train/model_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t model_rotary_width(const struct model_config *m)
{
    return (int64_t)((double)m->head_dim * m->rotary_percent) / 2 * 2;
}

static int64_t pad(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* What follows from other fields, or from nothing. */
static void derive(struct model_config *m, int64_t vocab_divisor)
{
    if (!m->groups)
        m->groups = m->heads;
    if (!m->head_dim && m->hidden % m->heads == 0)
        m->head_dim = m->hidden / m->heads;
    if (!m->ffn)
        m->ffn = m->swiglu ? m->hidden * 8 / 3 / 64 * 64 : 4 * m->hidden;
    if (!m->positions)
        m->positions = m->seq;
    if (m->norm_eps == 0)
        m->norm_eps = 1e-5;
    if (m->rotary_base == 0)
        m->rotary_base = 10000;
    if (m->rotary_percent == 0)
        m->rotary_percent = 1;
    if (m->rope_factor == 0)
        m->rope_factor = 8;
    if (m->rope_low == 0)
        m->rope_low = 1;
    if (m->rope_high == 0)
        m->rope_high = 4;
    if (!m->rope_original)
        m->rope_original = 8192;
    m->padded_vocab = pad(m->vocab, vocab_divisor);
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
    if (m->position == POSITION_ROPE && model_rotary_width(m) < 2)
        return err_set(e, ERR_ARG, "--rotary-percent: %g of a head of %" PRId64 " elements is nothing",
                       m->rotary_percent, m->head_dim);
    if (m->rope_scaling && (m->position != POSITION_ROPE || m->rope_low >= m->rope_high))
        return err_set(e, ERR_ARG, "--use-rope-scaling needs --position-embedding-type rope and its two bounds in order");
    if (m->positions < m->seq)
        return err_set(e, ERR_ARG,
                       "--max-position-embeddings: %" PRId64 " is less than the sequence length %" PRId64,
                       m->positions, m->seq);
    if (m->padded_vocab > INT32_MAX)
        return err_set(e, ERR_ARG, "--vocab-size: %" PRId64 " is too large", m->vocab);
    return 0;
}

/* ---- counts ---- */

/* Weights of a layer's four matrix products. */
static double layer_matrices(const struct model_config *m)
{
    double h = (double)m->hidden, q = (double)model_q_width(m);

    return h * (double)model_qkv_width(m) + q * h + h * (double)model_fc1_width(m) + (double)m->ffn * h;
}

int64_t model_config_params(const struct model_config *m)
{
    int64_t h = m->hidden, qkv = model_qkv_width(m), fc1 = model_fc1_width(m);
    int64_t norm = m->norm == NORM_RMS ? 1 : 2;
    int64_t layer = 2 * norm * h + qkv * h + h * model_q_width(m) + fc1 * h + h * m->ffn;

    if (!m->no_bias)
        layer += qkv + h + fc1 + h;
    else if (m->qkv_bias)
        layer += qkv;
    if (m->qk_norm)
        layer += 2 * norm * m->head_dim;
    return m->padded_vocab * h * (m->untie ? 2 : 1) + (m->position == POSITION_LEARNED ? m->positions * h : 0) +
           m->layers * layer + norm * h;
}

double model_config_flops(const struct model_config *m, int64_t seq)
{
    double layers = (double)m->layers, products = layers * layer_matrices(m) + (double)m->padded_vocab * (double)m->hidden;

    return 6 * products + 6 * layers * (double)model_q_width(m) * (double)seq;
}

/* ---- fields ---- */

#define INT(key, field, needed, shape) {key, FIELD_INT, offsetof(struct model_config, field), needed, shape, {0}}
#define NUM(key, field) {key, FIELD_NUM, offsetof(struct model_config, field), false, false, {0}}
#define BOOL(key, field) {key, FIELD_BOOL, offsetof(struct model_config, field), false, true, {0}}
#define WORD(key, field, ...) {key, FIELD_WORD, offsetof(struct model_config, field), false, true, {__VA_ARGS__}}

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
    WORD("position_embedding_type", position, "learned_absolute", "rope", "none"),
    NUM("rotary_base", rotary_base),
    NUM("rotary_percent", rotary_percent),
    {"use_rope_scaling", FIELD_BOOL, offsetof(struct model_config, rope_scaling), false, false, {0}},
    NUM("rope_scaling_factor", rope_factor),
    NUM("rope_scaling_low", rope_low),
    NUM("rope_scaling_high", rope_high),
    INT("rope_scaling_original", rope_original, false, false),
    BOOL("swiglu", swiglu),
    BOOL("qk_layernorm", qk_norm),
    BOOL("disable_bias_linear", no_bias),
    BOOL("add_qkv_bias", qkv_bias),
};
const int model_fields_n = sizeof model_fields / sizeof *model_fields;

const char *model_field_text(const struct model_field *f, const struct model_config *m, char *buf, size_t size)
{
    const void *at = (const char *)m + f->at;

    if (f->type == FIELD_INT)
        snprintf(buf, size, "%" PRId64, *(const int64_t *)at);
    else if (f->type == FIELD_NUM)
        snprintf(buf, size, "%.17g", *(const double *)at);
    else if (f->type == FIELD_BOOL)
        snprintf(buf, size, "%s", *(const bool *)at ? "true" : "false");
    else
        snprintf(buf, size, "%s", f->words[*(const int *)at]);
    return buf;
}

const struct model_field *model_config_differs(const struct model_config *a, const struct model_config *b)
{
    char x[64], y[64];

    for (int i = 0; i < model_fields_n; i++) {
        const struct model_field *f = &model_fields[i];
        bool shape = f->shape || (a->position == POSITION_LEARNED && f->at == offsetof(struct model_config, positions));

        if (shape && strcmp(model_field_text(f, a, x, sizeof x), model_field_text(f, b, y, sizeof y)) != 0)
            return f;
    }
    return NULL;
}
