#include "train/layer_attention.h"

#include <inttypes.h>
#include <math.h>

#include "kernels/rope.h"

/* Whether the layer is the last of every n; n 0: none is. */
static bool last_of(int64_t n, int64_t layer)
{
    return n && (layer + 1) % n == 0;
}

/* What queries times keys are multiplied with. */
static float scale_of(const struct model_config *m)
{
    float scale = m->softmax_scale > 0 ? (float)m->softmax_scale : 1 / sqrtf((float)m->head_dim);
    double more = m->latent && m->rope_scaling && m->rope_kind == ROPE_YARN ? model_mscale(m) : 1;

    return more == 1 ? scale : (float)(scale * more * more);
}

struct layer_attention layer_attention_of(const struct model_config *m, int64_t layer)
{
    bool windowed = m->window && !last_of(m->window_freq, layer);

    return (struct layer_attention){
        .op.scale = scale_of(m),
        .op.cap = (float)m->softcap,
        .op.window = windowed ? m->window + 1 : 0,
        .op.sink_zero = m->softmax != SOFTMAX_VANILLA,
        .turns = m->position != POSITION_ROPE || last_of(m->no_rope_freq, layer) ? -1 : windowed && m->rotary_base_local > 0,
    };
}

/* What attention with latents cannot be with, and what is of it alone. */
static int check_latent(const struct model_config *m, struct err *e)
{
    bool given = m->q_rank || m->kv_rank || m->qk_flat || m->qk_turn || m->v_dim || m->mscale > 0 || m->mscale_all > 0;

    if (!m->latent)
        return !given ? 0 : err_set(e, ERR_ARG, "--q-lora-rank, --kv-lora-rank, --qk-head-dim, --qk-pos-emb-head-dim,"
                                    " --v-head-dim, --mscale and --mscale-all-dim need --multi-latent-attention");
    if (m->groups != m->heads || m->output_gate || m->qk_norm_wide || m->qkv_bias)
        return err_set(e, ERR_ARG, "--multi-latent-attention cannot be with --%s", m->groups != m->heads ? "num-query-groups" :
                       m->output_gate ? "attention-output-gate" : m->qkv_bias ? "add-qkv-bias" : "qk-layernorm-full-width");
    if (m->mup)
        return err_set(e, ERR_UNSUPPORTED, "--use-mup: quern cannot do this with --multi-latent-attention yet");
    if (m->head_dim != m->qk_flat + m->qk_turn)
        return err_set(e, ERR_ARG, "--kv-channels: with --multi-latent-attention heads have the %" PRId64 " elements of"
                       " --qk-head-dim and --qk-pos-emb-head-dim", m->qk_flat + m->qk_turn);
    if (m->qk_turn % 2 || m->rotary_percent != 1)
        return err_set(e, ERR_ARG, "--%s: all pairs of the --qk-pos-emb-head-dim %" PRId64 " turn",
                       m->qk_turn % 2 ? "qk-pos-emb-head-dim" : "rotary-percent", m->qk_turn);
    if (m->v_dim > m->head_dim)
        return err_set(e, ERR_ARG, "--v-head-dim: values of %" PRId64 " elements; the %" PRId64 " of a query are the most",
                       m->v_dim, m->head_dim);
    return 0;
}

int layer_attention_check(const struct model_config *m, struct err *e)
{
    TRY(check_latent(m, e));
    if (!m->value_freq && (m->value_gate || m->value_scale > 0))
        return err_set(e, ERR_ARG, "--value-embedding-%s needs --value-embedding-freq", m->value_gate ? "gate" : "multiplier");
    if (m->value_gate > m->hidden)
        return err_set(e, ERR_ARG, "--value-embedding-gate: %" PRId64 " of %" PRId64 " channels", m->value_gate, m->hidden);
    if (m->value_freq && m->latent)
        return err_set(e, ERR_UNSUPPORTED, "--value-embedding-freq: quern cannot do this with --multi-latent-attention yet");
    if (m->position == POSITION_ROPE && model_rotary_width(m) < 2)
        return err_set(e, ERR_ARG, "--rotary-percent: %g of a head of %" PRId64 " elements is nothing",
                       m->rotary_percent, m->head_dim);
    if (m->rope_scaling && (m->position != POSITION_ROPE || m->rope_low >= m->rope_high))
        return err_set(e, ERR_ARG, "--use-rope-scaling needs --position-embedding-type rope and its two bounds in order");
    if (m->position != POSITION_ROPE && (m->no_rope_freq || m->rotary_base_local > 0))
        return err_set(e, ERR_ARG, "--%s needs --position-embedding-type rope",
                       m->no_rope_freq ? "no-rope-freq" : "rotary-base-local");
    if (m->rotary_base_local > 0 && !m->window)
        return err_set(e, ERR_ARG, "--rotary-base-local is of layers with a window: give --window-size");
    if (!m->rope_scaling && m->rope_kind)
        return err_set(e, ERR_ARG, "--rope-scaling-type needs --use-rope-scaling");
    if (m->rope_scaling && m->rope_factor < 1)
        return err_set(e, ERR_ARG, "--rope-scaling-factor: %g would make a context shorter", m->rope_factor);
    if (m->rope_scaling && m->rope_kind == ROPE_YARN && m->rotary_base <= 1)
        return err_set(e, ERR_ARG, "--rotary-base: %g has no waves of different lengths, as yarn needs them", m->rotary_base);
    return 0;
}

int64_t layer_attention_own(const struct model_config *m)
{
    int64_t n = 0;

    for (int64_t i = 0; i < m->layers; i++) {
        const struct layer_attention a = layer_attention_of(m, i);

        n += !attention_common(&a.op);
    }
    return n;
}

double layer_attention_keys(const struct model_config *m, int64_t t)
{
    double sum = 0;

    for (int64_t i = 0; i < m->layers; i++) {
        const struct layer_attention a = layer_attention_of(m, i);

        sum += attention_pairs(&a.op, (double)t) / (double)t;
    }
    return sum / (double)m->layers;
}

int rotary_tables(const struct model_config *m)
{
    return m->position == POSITION_ROPE ? 1 + (m->rotary_base_local > 0) : 0;
}

void rotary_fill(const struct model_config *m, int table, int64_t n_pos, float *cs)
{
    const struct rope_scaling s = {
        (enum rope_kind)m->rope_kind, m->rope_factor, m->rope_low, m->rope_high, m->rope_original, m->rope_attention,
        m->rope_exact,
    };

    rope_table(cs, n_pos, model_rotary_width(m), table ? m->rotary_base_local : m->rotary_base,
               m->rope_scaling && !table ? &s : NULL);
}
