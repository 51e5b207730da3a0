/* Layers whose MLP is a mixture of experts: a router sends each token to the topk of them that it likes best
 * (kernels/route.h), and adds up what they answer by its weights (arXiv:1701.06538, 2101.03961).
 *
 * Tensor ranks hold a slice of each expert, as of a dense MLP: all route all rows, and what comes out
 * are summands.  So are the gradients of the router's weights, and with them the auxiliary losses', which the
 * first of the tensor ranks adds.
 */
#include <string.h>

#include "train/model.h"
#include "train/model_pass.h"

static struct route route_of(const struct model *m, int64_t rows)
{
    return (struct route){rows, m->config.experts, m->config.topk, m->config.pre_softmax};
}

/* ---- products of one expert ---- */

/* A stretch of rows of the same expert. */
struct stretch {
    int64_t at, n;
    int fc1, fc1_b, fc2, fc2_b; /* its parameters */
};

/* The first stretch of a layer follows a zeroed one; false behind the last. */
static bool next_stretch(const struct model *m, int64_t layer, int64_t *expert, struct stretch *s)
{
    const struct params *p = &m->experts.params;
    int64_t i = (*expert)++;

    if (i == p->experts)
        return false;
    *s = (struct stretch){
        s->at + s->n, m->acts->layers[layer].counts[i], params_expert(p, layer, i, EXPERT_FC1_W),
        params_expert(p, layer, i, EXPERT_FC1_B), params_expert(p, layer, i, EXPERT_FC2_W),
        params_expert(p, layer, i, EXPERT_FC2_B),
    };
    return true;
}

/* y = x . W^T + b of n rows; of a row-parallel W the first tensor rank adds b. */
static int forward(struct model *m, void *y, const void *x, int w, int b, int64_t n, struct err *e)
{
    const struct param *p = &m->experts.params.v[w];
    bool biased = b >= 0 && !(p->split == 1 && pass_shared(m) && m->part.tensor->rank > 0);
    struct matmul mm = {
        .m = n, .n = p->shape[0], .k = p->shape[1], .trans_b = true, .dt = m->dt, .dt_c = m->dt, .ragged = true,
        .a = x, .b = store_weight(&m->experts, w), .c = y, .bias = biased ? store_weight(&m->experts, b) : NULL,
    };

    TRY(pass_at_point(m, MODEL_WORKS, 0, e));
    return m->dev->ops->matmul(m->dev, &mm, e);
}

/* dW (+)= dY^T . X, db += the columns of dY, then dX = dY . W; dx may be x. */
static int backward(struct model *m, void *dx, const void *dy, const void *x, int w, int b, int64_t n, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    const struct param *p = &m->experts.params.v[w];
    int64_t in = p->shape[1], out = p->shape[0];
    struct matmul weight = {
        .m = out, .n = in, .k = n, .trans_a = true, .dt = m->dt, .dt_c = DTYPE_F32, .ragged = true,
        .a = dy, .b = x, .c = store_grad(&m->experts, w), .beta = m->experts.overwrite ? 0 : 1,
    };
    struct matmul input = {
        .m = n, .n = in, .k = out, .dt = m->dt, .dt_c = m->dt, .ragged = true, .a = dy, .b = store_weight(&m->experts, w),
        .c = dx,
    };

    TRY(pass_at_point(m, MODEL_WORKS, 0, e));
    TRY(ops->matmul(m->dev, &weight, e));
    if (b >= 0)
        TRY(ops->vec_colsum(m->dev, m->dt, store_grad(&m->experts, b), dy, n, out, out, e));
    return ops->matmul(m->dev, &input, e);
}

/* ---- forward ---- */

/* Which rows of x go where: fills the layer's choice, place, share and counts, and m->route_from. */
static int choose(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    struct layer_acts *a = &m->acts->layers[layer];
    const struct route r = route_of(m, rows);
    struct matmul logits = {
        .m = rows, .n = r.experts, .k = m->config.hidden, .trans_b = true, .dt = m->dt, .dt_c = DTYPE_F32, .a = x,
        .b = pass_weight(m, pass_param(m, layer, ROUTER_W)), .c = a->prob,
    };

    TRY(ops->matmul(m->dev, &logits, e));
    TRY(ops->route_fwd(m->dev, &r, a->prob, a->route_lse, a->choice, a->share, e));
    TRY(ops->route_place(m->dev, &r, a->choice, a->place, m->route_from, m->route_count, e));
    return device_get(m->dev, a->counts, m->route_count, (size_t)r.experts * sizeof *a->counts, e);
}

int pass_experts_activate(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    struct layer_acts *a = &m->acts->layers[layer];
    int64_t n = rows * m->config.topk, f = m->config.moe_ffn;

    if (m->config.swiglu)
        return ops->glu_fwd(m->dev, m->dt, ACT_SILU, a->act, a->fc1, n, f, e);
    return ops->act_fwd(m->dev, m->dt, ACT_GELU_TANH, a->act, a->fc1, n * f, e);
}

int pass_experts(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    struct layer_acts *a = &m->acts->layers[layer];
    int64_t h = m->config.hidden, f = m->config.moe_ffn, wide = m->config.swiglu ? 2 * f : f, i = 0;
    struct stretch s = {0};
    const void *x;

    TRY(pass_gather(m, &x, a->ln2, rows, e));
    TRY(choose(m, layer, x, rows, e));
    TRY(m->dev->ops->route_take(m->dev, m->dt, a->in, x, m->route_from, rows * m->config.topk, h, e));
    while (next_stretch(m, layer, &i, &s))
        TRY(forward(m, pass_at(m, a->fc1, s.at * wide), pass_at(m, a->in, s.at * h), s.fc1, s.fc1_b, s.n, e));
    TRY(pass_experts_activate(m, layer, rows, e));
    i = 0;
    s = (struct stretch){0};
    while (next_stretch(m, layer, &i, &s))
        TRY(forward(m, pass_at(m, a->answer, s.at * h), pass_at(m, a->act, s.at * f), s.fc2, s.fc2_b, s.n, e));
    return 0;
}

int pass_experts_end(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    struct layer_acts *a = &m->acts->layers[layer];
    const struct route r = route_of(m, rows);

    return m->dev->ops->route_join(m->dev, m->dt, &r, m->out, a->answer, a->place, a->share, m->config.hidden, e);
}

/* ---- backward ---- */

/* The gradient of the auxiliary loss by each expert's probability, to m->balance.  Of a micro-batch of T tokens, of which
 * count go to an expert: coefficient E / (k T^2) * sum over experts of count * its probabilities' sum. */
static int balance(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    const struct model_config *c = &m->config;
    int32_t *count = (int32_t *)(m->balance_host + c->experts);
    double all = (double)(rows * (pass_ring(m) ? m->part.context->size : 1));
    double by = c->aux_loss * (double)c->experts / ((double)c->topk * all * all) * (double)m->aux_scale;
    float *host = m->balance_host;

    memcpy(count, m->acts->layers[layer].counts, (size_t)c->experts * sizeof *count);
    if (pass_ring(m))
        TRY(comm_all_reduce(m->part.context, count, (size_t)c->experts, COMM_I32, COMM_SUM, e));
    for (int64_t i = 0; i < c->experts; i++)
        host[i] = (float)(by * count[i]);
    return device_put(m->dev, m->balance, host, (size_t)c->experts * sizeof *host, e);
}

/* From the gradients of the shares to those of the router's weights, and onto m->dln. */
static int router_back(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    const struct model_config *c = &m->config;
    struct layer_acts *a = &m->acts->layers[layer];
    const struct route r = route_of(m, rows);
    bool aux = !(pass_shared(m) && m->part.tensor->rank > 0), even = aux && c->balancing == BALANCE_AUX_LOSS && c->aux_loss > 0;
    double all = (double)(rows * (pass_ring(m) ? m->part.context->size : 1));
    const struct route_grad g = {
        .prob = a->prob, .lse = a->route_lse, .weight = a->share, .dweight = m->dshare, .choice = a->choice,
        .balance = even ? m->balance : NULL, .z = aux ? (float)(2 * c->z_loss / all * (double)m->aux_scale) : 0,
    };
    int w = pass_param(m, layer, ROUTER_W);
    struct matmul weight = {
        .m = r.experts, .n = c->hidden, .k = rows, .trans_a = true, .dt = m->dt, .dt_c = DTYPE_F32, .a = m->dlogits,
        .c = pass_grad(m, w), .beta = m->dense.overwrite ? 0 : 1,
    };
    struct matmul input = {
        .m = rows, .n = c->hidden, .k = r.experts, .dt = m->dt, .dt_c = m->dt, .a = m->dlogits, .b = pass_weight(m, w),
        .c = m->dln, .beta = 1,
    };

    if (c->balancing == BALANCE_AUX_LOSS && c->aux_loss > 0)
        TRY(balance(m, layer, rows, e));
    TRY(m->dev->ops->route_bwd(m->dev, m->dt, &r, m->dlogits, &g, e));
    TRY(pass_gather(m, &weight.b, a->ln2, rows, e));
    TRY(m->dev->ops->matmul(m->dev, &weight, e));
    return m->dev->ops->matmul(m->dev, &input, e);
}

int pass_experts_back(struct model *m, int64_t layer, const void *dy, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    struct layer_acts *a = &m->acts->layers[layer];
    int64_t rows = m->b * m->t, h = m->config.hidden, f = m->config.moe_ffn, wide = m->config.swiglu ? 2 * f : f, i = 0;
    const struct route r = route_of(m, rows);
    struct stretch s = {0};

    TRY(pass_gather(m, &dy, dy, rows, e));
    TRY(ops->route_join_bwd(m->dev, m->dt, &r, m->drows, m->dshare, dy, a->answer, a->place, a->share, h, e));
    while (next_stretch(m, layer, &i, &s)) { /* what act was is needed no more */
        void *act = pass_at(m, a->act, s.at * f);

        TRY(backward(m, act, pass_at(m, m->drows, s.at * h), act, s.fc2, s.fc2_b, s.n, e));
    }
    if (m->config.swiglu)
        TRY(ops->glu_bwd(m->dev, m->dt, ACT_SILU, m->dwide, a->act, a->fc1, rows * r.k, f, e));
    else
        TRY(ops->act_bwd(m->dev, m->dt, ACT_GELU_TANH, m->dwide, a->act, a->fc1, rows * r.k * f, e));
    i = 0;
    s = (struct stretch){0};
    while (next_stretch(m, layer, &i, &s))
        TRY(backward(m, pass_at(m, m->drows, s.at * h), pass_at(m, m->dwide, s.at * wide), pass_at(m, a->in, s.at * h), s.fc1,
                     s.fc1_b, s.n, e));
    TRY(ops->route_join(m->dev, m->dt, &r, m->dln, m->drows, a->place, NULL, h, e));
    return router_back(m, layer, rows, e);
}
