/* config.json written, and which family has a model: that whose config.json, read again, says the same. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "kernels/rope.h"
#include "train/hf.h"
#include "train/hf_family.h"

/* A number that transformers takes for no integer. */
static int put_num(struct buf *b, double v)
{
    size_t at = b->n;

    TRY(buf_printf(b, "%.17g", v));
    for (; at < b->n; at++)
        if (!strchr("-0123456789", b->p[at]))
            return 0;
    return buf_puts(b, ".0");
}

static int put_scaling(struct buf *b, const struct model_config *m)
{
    bool llama3 = m->rope_kind == ROPE_LLAMA3, yarn = m->rope_kind == ROPE_YARN;

    if (!m->rope_scaling)
        return buf_puts(b, ",\"rope_scaling\":null");
    TRY(buf_printf(b, ",\"rope_scaling\":{\"rope_type\":\"%s\",\"factor\":%.17g", hf_rope_name[m->rope_kind], m->rope_factor));
    if (llama3 || yarn)
        TRY(buf_printf(b, ",\"%s\":%.17g,\"%s\":%.17g,\"original_max_position_embeddings\":%" PRId64,
                       llama3 ? "low_freq_factor" : "beta_slow", m->rope_low, llama3 ? "high_freq_factor" : "beta_fast",
                       m->rope_high, m->rope_original));
    if (yarn && m->latent)
        TRY(buf_printf(b, ",\"mscale\":%.17g", m->mscale));
    if (yarn && m->mscale_all > 0)
        TRY(buf_printf(b, ",\"mscale_all_dim\":%.17g", m->mscale_all));
    if (yarn && (m->latent || m->rope_attention != hf_yarn_attention(m->rope_factor, 1)))
        TRY(buf_printf(b, ",\"attention_factor\":%#.17g", m->rope_attention));
    if (yarn && m->rope_exact)
        TRY(buf_puts(b, ",\"truncate\":false"));
    return buf_puts(b, "}");
}

static int put_flag(struct buf *b, const struct model_config *m, const struct hf_key *k)
{
    const void *at = hf_field(m, k);
    bool v;

    if (k->kind == HF_SWITCH)
        v = *(const int *)at == k->on;
    else if (k->kind == HF_BIAS_QKV)
        v = model_qkv_bias(m);
    else if (k->kind == HF_BIAS_ATTENTION)
        v = model_qkv_bias(m) && model_proj_bias(m);
    else if (k->kind == HF_BIAS_MLP)
        v = model_mlp_bias(m);
    else
        v = *(const bool *)at != (k->kind == HF_NOT);
    return buf_puts(b, v ? "true" : "false");
}

/* A list of what layers are, of which the last of every n is another one. */
static int put_layers(struct buf *b, const struct model_config *m, int64_t every, const char *one, const char *other)
{
    for (int64_t i = 0; i < m->layers; i++)
        TRY(buf_printf(b, "%s%s", i ? "," : "[", every && (i + 1) % every == 0 ? other : one));
    return buf_puts(b, "]");
}

static int64_t dense_layers(const struct model_config *m)
{
    int64_t n = 0;

    while (n < m->layers && !model_layer_moe(m, n))
        n++;
    return n;
}

static int put_groups(struct buf *b, const struct model_config *m, const struct hf_key *k)
{
    return buf_printf(b, "%" PRId64 ",\"%s\":%" PRId64, m->router_groups ? m->router_groups : 1, k->also,
                      m->router_groups ? m->router_group_topk : 1);
}

static int put_value(struct buf *b, const struct model_config *m, const struct hf_key *k)
{
    const void *at = hf_field(m, k);
    double scale = m->softmax_scale > 0 ? m->softmax_scale : 1 / sqrt((double)m->head_dim);

    switch (k->kind) {
    case HF_SIZE:
        return *(const int64_t *)at ? buf_printf(b, "%" PRId64, *(const int64_t *)at) : buf_puts(b, "null");
    case HF_WIDTH:
        return buf_printf(b, "%" PRId64, m->moe_ffn);
    case HF_NUM:
        return put_num(b, *(const double *)at);
    case HF_INVERSE:
        return put_num(b, 1 / *(const double *)at);
    case HF_ACT:
        return buf_printf(b, "\"%s\"", mlp_kinds[m->mlp].hf[k->on]);
    case HF_SHARE:
        return buf_printf(b, "%.17g", m->rotary_percent);
    case HF_THETA:
        TRY(buf_printf(b, "%.17g", m->rotary_base));
        return put_scaling(b, m);
    case HF_CAP:
        return *(const double *)at > 0 ? put_num(b, *(const double *)at) : buf_puts(b, "null");
    case HF_SCALE:
        return buf_printf(b, "%.12g", k->on ? 1 / (scale * scale) : scale);
    case HF_LOCAL:
        return buf_printf(b, "%.17g", m->rotary_base_local > 0 ? m->rotary_base_local : m->rotary_base);
    case HF_NO_ROPE:
        return put_layers(b, m, m->no_rope_freq, "1", "0");
    case HF_WINDOW:
        return m->window ? buf_printf(b, "%" PRId64, m->window + 1) : buf_puts(b, "null");
    case HF_LAYERS:
        return put_layers(b, m, m->window ? m->window_freq : 1, "\"sliding_attention\"", "\"full_attention\"");
    case HF_SLIDES:
        return buf_puts(b, m->window ? "true" : "false");
    case HF_DENSE:
        return buf_printf(b, "%" PRId64, dense_layers(m));
    case HF_SHARED:
        return buf_printf(b, "%" PRId64, m->moe_ffn ? m->moe_shared / m->moe_ffn : 0);
    case HF_GROUPS:
        return put_groups(b, m, k);
    case HF_METHOD:
        if (!m->router_group_limited)
            return buf_puts(b, "\"greedy\"");
        return buf_printf(b, "\"group_limited_greedy\",\"n_group\":%" PRId64 ",\"topk_group\":%" PRId64, m->router_groups,
                          m->router_group_topk);
    case HF_NORMED:
        return buf_puts(b, m->topk > 1 ? "true" : "false");
    case HF_LEFT:
    case HF_IS:
        return buf_puts(b, k->value);
    default:
        return put_flag(b, m, k);
    }
}

int hf_config_put(struct buf *b, const struct model_config *m, const struct hf_family *family, const char *dtype)
{
    TRY(buf_printf(b, "{\"model_type\":\"%s\",\"architectures\":[\"%s\"],\"torch_dtype\":\"%s\",\"vocab_size\":%" PRId64
                      ",\"bos_token_id\":null,\"eos_token_id\":null,\"pad_token_id\":null",
                   family->type, family->class, dtype, m->vocab));
    for (const struct hf_key *k = family->keys; k->key; k++) {
        if (k->kind == HF_PART || (k->kind == HF_SHARE && k->value))
            continue;
        TRY(buf_printf(b, ",\"%s\":", k->key));
        TRY(put_value(b, m, k));
    }
    return buf_puts(b, "}\n");
}

/* ---- which family has a model ---- */

#define FIELD_AT(field, ...) offsetof(struct model_config, field),
/* Whether a field says something of the model. */
static bool tells(const struct model_field *f, const struct model_config *m)
{
    static const size_t rotary[] = {
        offsetof(struct model_config, rotary_base), offsetof(struct model_config, rotary_percent),
        offsetof(struct model_config, rope_scaling),
    };
    static const size_t scaled[] = {
        offsetof(struct model_config, rope_factor), offsetof(struct model_config, rope_low),
        offsetof(struct model_config, rope_high), offsetof(struct model_config, rope_original),
        offsetof(struct model_config, rope_attention), offsetof(struct model_config, rope_exact),
        offsetof(struct model_config, mscale), offsetof(struct model_config, mscale_all),
    };

    static const size_t training[] = {MUP_FIELDS(FIELD_AT, FIELD_AT, FIELD_AT)};

    for (size_t i = 0; i < sizeof training / sizeof *training; i++)
        if (f->at == training[i])
            return false;
    for (size_t i = 0; i < sizeof rotary / sizeof *rotary; i++)
        if (f->at == rotary[i] && m->position != POSITION_ROPE)
            return false;
    for (size_t i = 0; i < sizeof scaled / sizeof *scaled; i++)
        if (f->at == scaled[i] && !m->rope_scaling)
            return false;
    if (f->at == offsetof(struct model_config, ffn) && m->experts && model_moe_layers(m) == m->layers)
        return false; /* each layer has experts */
    return f->at != offsetof(struct model_config, seq) && f->at != offsetof(struct model_config, padded_vocab);
}

static bool same_field(const struct model_field *f, const struct model_config *a, const struct model_config *b)
{
    char x[64], y[64];

    if (f->type == FIELD_NUM) {
        double v, w;

        memcpy(&v, (const char *)a + f->at, sizeof v);
        memcpy(&w, (const char *)b + f->at, sizeof w);
        return fabs(v - w) <= 1e-6 * fabs(v);
    }
    return strcmp(model_field_text(f, a, x, sizeof x), model_field_text(f, b, y, sizeof y)) == 0;
}

int hf_family_has(const struct hf_family *family, const struct model_config *m, struct err *e)
{
    const struct hf_family *f;
    struct model_config read;
    struct buf b = {0};
    int rc;
    char text[64];

    if (hf_config_put(&b, m, family, "float32") < 0) {
        buf_free(&b);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    rc = hf_config_parse(family->type, buf_span(&b), 1, &read, &f, e);
    buf_free(&b);
    if (rc < 0)
        return err_wrap(e, "transformers' %s cannot have this model", family->type);
    for (int i = 0; rc == 0 && i < model_fields_n; i++)
        if (tells(&model_fields[i], m) && !same_field(&model_fields[i], m, &read))
            rc = err_set(e, ERR_UNSUPPORTED, "transformers' %s cannot have this model's %s, %s", family->type,
                         model_fields[i].key, model_field_text(&model_fields[i], m, text, sizeof text));
    return rc;
}

int hf_family_of(const struct model_config *m, const struct hf_family **family, struct err *e)
{
    struct err first;

    for (int i = 0; i < hf_families_n; i++) {
        int rc = hf_family_has(&hf_families[i], m, e);

        *family = &hf_families[i];
        if (rc == 0 || rc == ERR_NOMEM)
            return rc;
        if (i == 1)
            first = *e; /* Llama's, of which most are */
    }
    return err_set(e, ERR_UNSUPPORTED, "no model of transformers that is known here has this one: %s", first.msg);
}
