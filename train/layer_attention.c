#include "train/layer_attention.h"

#include <inttypes.h>
#include <math.h>

#include "kernels/rope.h"

/* Whether the layer is the last of every n; n 0: none is. */
static bool last_of(int64_t n, int64_t layer)
{
    return n && (layer + 1) % n == 0;
}

struct layer_attention layer_attention_of(const struct model_config *m, int64_t layer)
{
    bool windowed = m->window && !last_of(m->window_freq, layer);

    return (struct layer_attention){
        .op.scale = m->softmax_scale > 0 ? (float)m->softmax_scale : 1 / sqrtf((float)m->head_dim),
        .op.cap = (float)m->softcap,
        .op.window = windowed ? m->window + 1 : 0,
        .op.sink_zero = m->softmax != SOFTMAX_VANILLA,
        .turns = m->position != POSITION_ROPE || last_of(m->no_rope_freq, layer) ? -1 : windowed && m->rotary_base_local > 0,
    };
}

int layer_attention_check(const struct model_config *m, struct err *e)
{
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
