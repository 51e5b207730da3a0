/* The router of a layer with experts: which of them each token goes to, by what weights (kernels/route.h), and the auxiliary
 * losses that keep them evenly used.
 *
 * Tensor ranks all route all rows and have slices of what the experts answer: so the gradients of the router's weights are
 * summands, and with them the auxiliary losses', which the first of the tensor ranks adds.
 */
#include <math.h>

#include "train/exchange.h"
#include "train/module.h"

struct route router_route(const struct model *m, int64_t rows)
{
    const struct model_config *c = &m->config;
    double capacity = ceil((double)(rows * c->topk) / (double)c->experts * c->capacity);

    return (struct route){
        rows, c->experts, c->topk, c->pre_softmax, .capacity = capacity < (double)rows ? (int64_t)capacity : rows,
        .by_position = c->drop_policy == DROP_POSITION, .pad = c->pad_experts, .score = c->router_score,
        .scale = (float)c->router_scale, .groups = c->router_groups, .of = c->router_group_topk,
        .limited = c->router_group_limited,
    };
}

int64_t pass_moe_rows(const struct model *m)
{
    const struct route r = router_route(m, m->b * m->t);

    return route_rows(&r);
}

static struct linear router_of(const struct model *m, int64_t layer, int64_t rows)
{
    return (struct linear){
        .buffer = &m->dense, .w = pass_param(m, layer, ROUTER_W), .b = pass_param(m, layer, ROUTER_B), .rows = rows, .wide = true,
        .adds = true,
    };
}

/* ---- forward ---- */

int router_choose(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    struct experts_acts *a = &m->acts->layers[layer].experts;
    struct route r = router_route(m, rows);
    const struct linear router = router_of(m, layer, rows);

    r.bias = m->moe.bias.now ? m->moe.bias.now + layer * r.experts : NULL;
    TRY(linear_forward(m, &router, a->prob, x, e));
    TRY(ops->route_fwd(m->dev, &r, a->prob, a->route_lse, a->choice, a->share, e));
    return ops->route_place(m->dev, &r, a->choice, a->share, a->place, m->moe.route_from, a->chosen, e);
}

/* ---- backward ---- */

/* Tokens of the micro-batch of which `rows` are here. */
static double tokens_of(const struct model *m, int64_t rows)
{
    return (double)(rows * (pass_ring(m) ? m->part.context->size : 1));
}

/* The ranks that count together: those that share a micro-batch, or all that have one at the same time; NULL: this one alone. */
static struct comm *counters(const struct model *m)
{
    return m->moe.so_far ? m->dense.conf.replicas : pass_ring(m) ? m->part.context : NULL;
}

/* What an auxiliary loss is of: each token's probabilities (T, E), and how many tokens go to each expert (parts, E), of all that
 * ranks count together. */
static int likely(struct model *m, int64_t layer, int64_t rows, const float **prob, int32_t **count, struct err *e)
{
    const struct model_config *c = &m->config;
    struct experts_acts *a = &m->acts->layers[layer].experts;
    const struct route r = router_route(m, rows);
    int64_t parts = pass_aux_parts(m);
    bool apart = model_aux_apart(c);
    struct comm_call call = {.kind = COMM_ALL_REDUCE, .n = (size_t)(parts * c->experts), .type = COMM_I32, .op = COMM_SUM};

    *prob = c->router_score == ROUTER_SOFTMAX ? a->prob : m->moe.likely_prob;
    *count = apart ? m->moe.likely : a->chosen;
    if (apart) {
        TRY(device_zero(m->dev, *count, call.n * sizeof **count, e));
        TRY(m->dev->ops->route_likely(m->dev, &r, parts, a->prob, *prob == a->prob ? NULL : m->moe.likely_prob, *count,
                                          e));
    }
    call.send = call.recv = *count;
    return counters(m) ? exchange(m->dev, counters(m), &call, e) : 0;
}

/* *count becomes that of all micro-batches of the step up to this one, and *each is divided by how many there were. */
static int add_up(struct model *m, int64_t layer, int32_t **count, double *each, struct err *e)
{
    int64_t n = m->config.experts, datas = counters(m) ? counters(m)->size / (pass_ring(m) ? m->part.context->size : 1) : 1;
    int32_t *sum = m->moe.so_far + layer * n;

    if (m->dense.micro == 0)
        TRY(device_zero(m->dev, sum, (size_t)n * sizeof *sum, e));
    TRY(m->dev->ops->route_tally(m->dev, n, sum, *count, e));
    *count = sum;
    *each /= (double)((m->dense.micro + 1) * datas);
    return 0;
}

/* The gradient of the auxiliary loss by each expert's probability, to m->moe.balance.  Of T tokens, a micro-batch or each of its
 * sequences, of which count go to an expert: coefficient E / (k T^2) * sum over experts of count * its probabilities' sum, the
 * mean over sequences; or with counts of more micro-batches than this, divided by how many. */
static int balance(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    const struct model_config *c = &m->config;
    int64_t parts = pass_aux_parts(m), n = c->experts, stretch = rows / parts;
    double all = tokens_of(m, rows) / (double)parts, each = (double)n / ((double)c->topk * all * all) / (double)parts;
    const float *prob;
    int32_t *count;

    TRY(likely(m, layer, rows, &prob, &count, e));
    if (m->moe.so_far)
        TRY(add_up(m, layer, &count, &each, e));
    TRY(device_zero(m->dev, m->moe.balance, (size_t)(parts * n) * sizeof *m->moe.balance, e));
    for (int64_t i = 0; i < parts; i++)
        TRY(m->dev->ops->vec_colsum(m->dev, DTYPE_F32, m->moe.balance + i * n, prob + i * stretch * n, stretch, n, n, e));
    return m->dev->ops->route_balance(m->dev, parts * n, m->moe.balance, count,
                                      (float)(c->aux_loss * each * (double)m->moe.aux_scale), each, m->moe.unevenness, e);
}

int model_unevenness(struct model *m, double *sum, struct err *e)
{
    *sum = 0;
    if (!m->moe.unevenness)
        return 0;
    TRY(device_get(m->dev, sum, m->moe.unevenness, sizeof *sum, e));
    return device_zero(m->dev, m->moe.unevenness, sizeof *m->moe.unevenness, e);
}

int router_backward(struct model *m, int64_t layer, const void *y, int64_t rows, struct err *e)
{
    const struct model_config *c = &m->config;
    struct experts_acts *a = &m->acts->layers[layer].experts;
    const struct route r = router_route(m, rows);
    bool even = pass_first(m) && model_aux_loss(c);
    const struct route_grad g = {
        .logits = a->prob, .lse = a->route_lse, .weight = a->share, .dweight = m->moe.dshare, .choice = a->choice,
        .balance = even ? m->moe.balance : NULL, .each = rows / pass_aux_parts(m),
        .z = pass_first(m) ? (float)(2 * c->z_loss / tokens_of(m, rows) * (double)m->moe.aux_scale) : 0,
    };
    const struct linear router = router_of(m, layer, rows);
    const void *x;

    if (m->moe.bias.load)
        TRY(m->dev->ops->route_tally(m->dev, r.experts, m->moe.bias.load + layer * r.experts, a->chosen, e));
    if (even)
        TRY(balance(m, layer, rows, e));
    TRY(m->dev->ops->route_bwd(m->dev, m->dt, &r, m->moe.dlogits, &g, e));
    TRY(pass_gather(m, &x, y, rows, e));
    return linear_backward(m, &router, m->back.dln, m->moe.dlogits, x, e);
}
