/* The backward pass. */
#include <stdbool.h>

#include "train/model.h"
#include "train/model_pass.h"

/* dW (+)= dY^T . X and, with a bias, db += column sums of dY. */
static int linear_weight(struct model *m, const void *dy, const void *x, int w, int b, bool first, struct err *e)
{
    const struct param *p = &m->params.v[w];
    struct matmul mm = {
        .m = p->shape[0], .n = p->shape[1], .k = m->b * m->t, .trans_a = true, .dt = m->dt, .dt_c = DTYPE_F32,
        .a = dy, .b = x, .c = pass_grad(m, w), .beta = first ? 0 : 1,
    };

    TRY(m->dev->ops->matmul(m->dev, &mm, e));
    if (b < 0)
        return 0;
    return m->dev->ops->vec_colsum(m->dev, m->dt, pass_grad(m, b), dy, m->b * m->t, p->shape[0], p->shape[0], e);
}

/* dX = dY . W, and through the GELU that made X from aux. */
static int linear_input(struct model *m, void *dx, const void *dy, int w, const void *aux, struct err *e)
{
    const struct param *p = &m->params.v[w];
    struct matmul mm = {
        .m = m->b * m->t, .n = p->shape[1], .k = p->shape[0], .dt = m->dt, .dt_c = m->dt,
        .a = dy, .b = pass_weight(m, w), .c = dx, .dact = aux ? ACT_GELU_TANH : ACT_NONE, .dact_aux = aux,
    };

    return m->dev->ops->matmul(m->dev, &mm, e);
}

/* Through s = residual + dropout(x), y = norm(s): m->ds and m->dln to m->ds and the
 * gradient of x, whose place comes back in *dx. */
static int norm_back(struct model *m, bool has_dres, const void *s, const float *mean, const float *rstd, int w,
                     const struct dropout *drop, const void **dx, struct err *e)
{
    struct norm_bwd p = {
        .t = m->b * m->t, .c = m->config.hidden, .dy = m->dln, .dres = has_dres ? m->ds : NULL, .s = s,
        .mean = mean, .rstd = rstd, .gamma = pass_weight(m, w), .drop = drop, .ds = m->ds,
        .dx = drop ? m->dx : NULL, .dgamma = pass_grad(m, w), .dbeta = pass_grad(m, w + 1),
    };

    *dx = drop ? m->dx : m->ds;
    return m->dev->ops->layernorm_bwd(m->dev, m->dt, &p, e);
}

/* From dx, the gradient of the layer's attention output, to m->dln, that of norm1's. */
static int attention_back(struct model *m, int64_t layer, const void *dx, const struct model_dropout *md,
                          bool first, struct err *e)
{
    const struct params *p = &m->params;
    struct layer_acts *a = &m->layers[layer];
    struct attention at = pass_attention(m, layer, m->b, m->t);
    int64_t h = m->config.hidden, row = 3 * h;
    size_t w = dtype_size(m->dt);
    struct attention_view dq = {m->dwide, m->t * row, row}, dk = dq, dv = dq, dout = {m->dln, m->t * h, h};
    struct dropout d;
    int qkv = params_layer(p, layer, QKV_W), proj = params_layer(p, layer, PROJ_W);

    dk.p = (char *)m->dwide + (size_t)h * w;
    dv.p = (char *)m->dwide + (size_t)(2 * h) * w;
    TRY(linear_weight(m, dx, a->att, proj, proj + 1, first, e));
    TRY(linear_input(m, m->dln, dx, proj, NULL, e));
    at.drop = pass_dropout(m, md, layer, DROP_ATTENTION, &d);
    TRY(m->dev->ops->attention_bwd(m->dev, m->dt, &at, dout, dq, dk, dv, e));
    TRY(linear_weight(m, m->dwide, a->ln1, qkv, qkv + 1, first, e));
    return linear_input(m, m->dln, m->dwide, qkv, NULL, e);
}

/* From dx, the gradient of the MLP's output, to m->dln, that of norm2's. */
static int mlp_back(struct model *m, int64_t layer, const void *dx, bool first, struct err *e)
{
    struct layer_acts *a = &m->layers[layer];
    int fc1 = params_layer(&m->params, layer, FC1_W), fc2 = params_layer(&m->params, layer, FC2_W);

    TRY(linear_weight(m, dx, a->act, fc2, fc2 + 1, first, e));
    TRY(linear_input(m, m->dwide, dx, fc2, a->fc1, e));
    TRY(linear_weight(m, m->dwide, a->ln2, fc1, fc1 + 1, first, e));
    return linear_input(m, m->dln, m->dwide, fc1, NULL, e);
}

static int layer_back(struct model *m, int64_t layer, const void **dx, const struct model_dropout *md, bool first,
                      struct err *e)
{
    const struct params *p = &m->params;
    struct layer_acts *a = &m->layers[layer];
    struct dropout d;

    if (m->use == MODEL_RECOMPUTE) {
        TRY(pass_norm1(m, layer, m->b * m->t, e));
        TRY(pass_layer(m, layer, m->b, m->t, -1, md, e));
    }
    TRY(mlp_back(m, layer, *dx, first, e));
    TRY(norm_back(m, true, a->s2, a->mean2, a->rstd2, params_layer(p, layer, LN2_W),
                  pass_dropout(m, md, layer, DROP_PROJ, &d), dx, e));
    TRY(attention_back(m, layer, *dx, md, first, e));
    return norm_back(m, true, a->s1, a->mean1, a->rstd1, params_layer(p, layer, LN1_W),
                     layer ? pass_dropout(m, md, layer - 1, DROP_MLP, &d) : NULL, dx, e);
}

/* Everything that is not the weight of a matrix product is only ever added to. */
static int zero_added(struct model *m, struct err *e)
{
    const struct params *p = &m->params;

    for (int i = 0; i < p->n; i++)
        if (p->v[i].dims == 1 || i == p->position || (i == p->word && p->word != p->output))
            TRY(device_zero(m->dev, pass_grad(m, i), p->v[i].n * sizeof(float), e));
    return 0;
}

int model_backward(struct model *m, const struct model_dropout *md, bool first, struct err *e)
{
    const struct params *p = &m->params;
    int64_t last = m->config.layers - 1;
    struct embedding emb = {
        .t = m->b * m->t, .c = m->config.hidden, .token = m->tokens, .pos = m->positions,
        .n_vocab = m->config.padded_vocab, .n_pos = m->config.positions,
    };
    struct dropout d;
    const struct dropout *drop;
    const void *dx;

    if (first)
        TRY(zero_added(m, e));
    TRY(linear_weight(m, m->logits, m->ln_final, p->output, -1, first, e));
    TRY(linear_input(m, m->dln, m->logits, p->output, NULL, e));
    TRY(norm_back(m, false, m->s_final, m->mean_final, m->rstd_final, p->final_w,
                  pass_dropout(m, md, last, DROP_MLP, &d), &dx, e));
    for (int64_t i = last; i >= 0; i--)
        TRY(layer_back(m, i, &dx, md, first, e));
    drop = pass_dropout(m, md, 0, DROP_EMBEDDING, &d);
    if (drop)
        TRY(m->dev->ops->vec_dropout(m->dev, m->dt, m->ds, m->ds, m->b * m->t, m->config.hidden, drop, e));
    return m->dev->ops->embedding_bwd(m->dev, m->dt, pass_grad(m, p->word), pass_grad(m, p->position), &emb,
                                      m->ds, e);
}
