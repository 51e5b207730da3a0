/* The backward pass. */
#include <stdbool.h>

#include "train/model.h"
#include "train/model_pass.h"

/* p with its weights, as the model's kind of norm. */
static int norm_op(struct model *m, struct norm_bwd *p, int w, int b, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;

    p->gamma = pass_weight(m, w);
    p->dgamma = pass_grad(m, w);
    p->dbeta = pass_grad(m, b);
    return (m->config.norm == NORM_RMS ? ops->rmsnorm_bwd : ops->layernorm_bwd)(m->dev, m->dt, p, e);
}

/* Through s = residual + dropout(x), y = norm(s): m->ds and the tensor ranks' summands of y's gradient
 * in m->dln to m->ds and the gradient of x, whose place comes back in *dx. */
static int norm_back(struct model *m, bool has_dres, const void *s, const float *mean, const float *rstd, int w, int b,
                     const struct dropout *drop, const void **dx, struct err *e)
{
    struct norm_bwd p = {
        .t = m->own, .c = m->config.hidden, .dres = has_dres ? m->ds : NULL, .s = s,
        .mean = mean, .rstd = rstd, .drop = drop, .ds = m->ds, .dx = drop ? m->dx : NULL,
    };
    void *dy;

    TRY(pass_sum(m, &dy, m->dln, m->b * m->t, e));
    p.dy = dy;
    *dx = drop ? m->dx : m->ds;
    return norm_op(m, &p, w, b, e);
}

/* The gradients of q and k in m->dwide, from behind the turn and the norm to before them. */
static int qk_back(struct model *m, int64_t layer, struct err *e)
{
    const struct model_config *c = &m->config;
    struct layer_acts *a = &m->acts->layers[layer];
    int64_t n = m->b * m->t, ld = model_qkv_width(c), q = model_q_width(c);
    void *dk = pass_at(m, m->dwide, q);
    struct norm_bwd nq = {
        .t = n * c->heads, .c = c->head_dim, .heads = {c->heads, ld}, .dy = m->dwide, .s = a->qkv,
        .mean = a->mean_q, .rstd = a->rstd_q, .ds = m->dwide,
    };
    struct norm_bwd nk = {
        .t = n * c->groups, .c = c->head_dim, .heads = {c->groups, ld}, .dy = dk, .s = pass_at(m, a->qkv, q),
        .mean = a->mean_k, .rstd = a->rstd_k, .ds = dk,
    };

    TRY(pass_rope(m, m->dwide, ld, n, true, e));
    if (!c->qk_norm)
        return 0;
    TRY(norm_op(m, &nq, pass_param(m, layer, Q_NORM_W), pass_param(m, layer, Q_NORM_B), e));
    return norm_op(m, &nk, pass_param(m, layer, K_NORM_W), pass_param(m, layer, K_NORM_B), e);
}

/* From dx, the gradient of the layer's attention output, to m->dln, that of norm1's (a summand of it). */
static int attention_back(struct model *m, int64_t layer, const void *dx, const struct model_dropout *md,
                          struct err *e)
{
    const void *x;
    struct layer_acts *a = &m->acts->layers[layer];
    struct attention at = pass_attention(m, layer, m->b, m->t);
    int64_t q = model_q_width(&m->config), kv = model_kv_width(&m->config), row = q + 2 * kv;
    struct attention_view dq = {m->dwide, m->t * row, row}, dk = dq, dv = dq, dout = {m->dln, m->t * q, q};
    struct dropout d;
    const struct linear qkv = linear_of(m, layer, QKV_W, QKV_B, m->b * m->t);
    const struct linear proj = linear_of(m, layer, PROJ_W, PROJ_B, m->b * m->t);

    TRY(pass_gather(m, &dx, dx, m->b * m->t, e));
    dk.p = pass_at(m, m->dwide, q);
    dv.p = pass_at(m, m->dwide, q + kv);
    TRY(linear_backward(m, &proj, m->dln, dx, a->att, e));
    at.drop = pass_dropout(m, md, layer, DROP_ATTENTION, &d);
    if (pass_ring(m))
        TRY(pass_ring_backward(m, layer, at.drop, e));
    else
        TRY(m->dev->ops->attention_bwd(m->dev, m->dt, &at, dout, dq, dk, dv, e));
    TRY(qk_back(m, layer, e));
    TRY(pass_gather(m, &x, a->ln1, m->b * m->t, e));
    return linear_backward(m, &qkv, m->dln, m->dwide, x, e);
}

int pass_act_back(struct model *m, void *dx, const void *dy, const void *x, int64_t rows, int64_t f, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    enum act act = model_act(&m->config);

    return model_halves(&m->config) == 2 ? ops->glu_bwd(m->dev, m->dt, act, dx, dy, x, rows, f, e)
                                         : ops->act_bwd(m->dev, m->dt, act, dx, dy, x, rows * f, e);
}

int pass_mlp_back(struct model *m, int64_t layer, void *dx, const void *dy, struct err *e)
{
    struct layer_acts *a = &m->acts->layers[layer];
    int64_t n = m->b * m->t;
    const struct linear fc1 = linear_of(m, layer, FC1_W, FC1_B, n);
    struct linear fc2 = linear_of(m, layer, FC2_W, FC2_B, n);
    const void *x, *dfc1 = m->dwide;

    if (model_fp8_made(m, layer, FP8_ACT)) {
        TRY(linear_backward(m, &fc2, m->dwide, dy, NULL, e));
        TRY(pass_fp8_activate_back(m, layer, &dfc1, e));
    } else if (pass_fused(m)) {
        fc2.before = model_act(&m->config);
        fc2.before_x = a->fc1;
        TRY(linear_backward(m, &fc2, m->dwide, dy, a->act, e));
    } else {
        TRY(linear_backward(m, &fc2, a->act, dy, a->act, e)); /* what act was is needed no more */
        TRY(pass_act_back(m, m->dwide, a->act, a->fc1, n, model_layer_ffn(&m->config, pass_moe(m, layer)), e));
    }
    TRY(pass_gather(m, &x, a->ln2, n, e));
    return linear_backward(m, &fc1, dx, dfc1, x, e);
}

/* From dy, the gradient of what the layer adds behind norm2, to m->dln, that of norm2's output (a summand of it). */
static int behind_back(struct model *m, int64_t layer, const void *dy, struct err *e)
{
    if (pass_moe(m, layer)) {
        TRY(pass_experts_back(m, layer, dy, e));
        return pass_has_shared(m, layer) ? pass_shared_expert_back(m, layer, dy, e) : 0;
    }
    TRY(pass_gather(m, &dy, dy, m->b * m->t, e));
    return pass_mlp_back(m, layer, m->dln, dy, e);
}

static int layer_back(struct model *m, int64_t layer, const void **dx, const struct model_dropout *md, struct err *e)
{
    struct layer_acts *a = &m->acts->layers[layer];
    struct dropout d;

    TRY(pass_again(m, layer, md, e));
    TRY(behind_back(m, layer, *dx, e));
    TRY(norm_back(m, true, a->s2, a->mean2, a->rstd2, pass_param(m, layer, LN2_W), pass_param(m, layer, LN2_B),
                  pass_dropout(m, md, layer, DROP_PROJ, &d), dx, e));
    TRY(attention_back(m, layer, *dx, md, e));
    return norm_back(m, true, a->s1, a->mean1, a->rstd1, pass_param(m, layer, LN1_W), pass_param(m, layer, LN1_B),
                     layer ? pass_dropout(m, md, layer - 1, DROP_MLP, &d) : NULL, dx, e);
}

/* Gradients of a unit are about to be written; they were, and with them those of all units behind it. */
static int open_grads(struct model *m, int unit, struct err *e)
{
    for (int i = 0; i < m->n_buffers; i++)
        TRY(param_reduce_open(m->buffers[i], unit, e));
    return pass_progress(m, e);
}
static int grads_done(struct model *m, int unit, struct err *e)
{
    for (int i = 0; i < m->n_buffers; i++)
        TRY(param_reduce_done(m->buffers[i], unit, e));
    return pass_progress(m, e);
}

void *model_stream_grad(struct model *m)
{
    return m->ds;
}

/* From the logits' gradient, or the stream's that the next part has left in m->ds, to the gradient of
 * what the last layer adds to the stream, at *dx. */
static int head_back(struct model *m, const struct model_dropout *md, const void **dx, struct err *e)
{
    const struct params *p = &m->dense.params;
    const struct model_acts *a = m->acts;
    struct dropout d;
    const struct dropout *drop = pass_dropout(m, md, m->config.layers - 1, DROP_MLP, &d);
    const struct linear output = linear_output(m, m->b * m->t);
    const void *x;

    if (m->part.heads) {
        TRY(pass_gather(m, &x, a->ln_final, m->b * m->t, e));
        TRY(linear_backward(m, &output, m->dln, m->logits, x, e));
        return norm_back(m, false, a->s_final, a->mean_final, a->rstd_final, p->final_w, p->final_b, drop, dx, e);
    }
    *dx = drop ? m->dx : m->ds;
    return drop ? m->dev->ops->vec_dropout(m->dev, m->dt, m->dx, m->ds, m->own, m->config.hidden, drop, e) : 0;
}

/* From the gradient of the first s1 to that of the embeddings. */
static int embed_back(struct model *m, const struct model_dropout *md, struct err *e)
{
    const struct params *p = &m->dense.params;
    struct embedding emb = pass_embedding(m, m->b * m->t);
    struct dropout d;
    const struct dropout *drop = pass_dropout(m, md, 0, DROP_EMBEDDING, &d);
    const void *ds;

    if (drop)
        TRY(m->dev->ops->vec_dropout(m->dev, m->dt, m->ds, m->ds, m->own, m->config.hidden, drop, e));
    TRY(pass_gather(m, &ds, m->ds, m->b * m->t, e));
    return m->dev->ops->embedding_bwd(m->dev, m->dt, pass_grad(m, p->word), pass_grad(m, p->position), &emb, ds, e);
}

/* What comes before the layers in backward: the output layer, which may be the embedding too. */
static int head_section(struct model *m, const struct model_dropout *md, const void **dx, struct err *e)
{
    int last = pass_unit(m->config.layers);

    TRY(pass_weights(m, last, true, e));
    TRY(open_grads(m, last, e));
    if (pass_tied(m)) {
        TRY(pass_weights(m, 0, true, e));
        TRY(open_grads(m, 0, e));
    }
    TRY(head_back(m, md, dx, e));
    if (pass_tied(m))
        TRY(pass_release(m, 0, e));
    TRY(pass_release(m, last, e));
    return grads_done(m, last, e);
}

void model_backward_begin(struct model *m, int64_t i, int64_t n)
{
    for (int k = 0; k < m->n_buffers; k++)
        param_reduce_begin(m->buffers[k], i, n);
}

int model_backward_end(struct model *m, struct err *e)
{
    for (int k = 0; k < m->n_buffers; k++)
        TRY(param_reduce_add(m->buffers[k], e));
    return 0;
}

int model_backward(struct model *m, const struct model_batch *batch, struct err *e)
{
    const void *dx;

    m->acts = &m->slot[batch->slot];
    m->aux_scale = batch->grad_scale * (float)(batch->counted ? batch->counted : m->b * m->run.t);
    TRY(head_section(m, batch->drop, &dx, e));
    for (int64_t i = m->config.layers - 1; i >= 0; i--) {
        double start = trace_begin(m->trace, "backward", m->part.first + i);

        TRY(pass_weights(m, pass_unit(i), true, e));
        TRY(open_grads(m, pass_unit(i), e));
        TRY(layer_back(m, i, &dx, batch->drop, e));
        TRY(pass_release(m, pass_unit(i), e));
        TRY(grads_done(m, pass_unit(i), e));
        trace_end(m->trace, TRACE_LAYERS, "backward", m->part.first + i, start);
    }
    if (!m->part.embeds)
        return 0;
    if (!pass_tied(m))
        TRY(open_grads(m, 0, e));
    TRY(embed_back(m, batch->drop, e));
    return grads_done(m, 0, e);
}
