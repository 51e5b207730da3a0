/* Attention with latents (multi-latent attention, DeepSeek-V2: arXiv:2405.04434): keys and values of all heads are made of one
 * latent of a token, and queries too, or of the stream.
 *
 *     q = q_up(norm(q_down(x)))             of each head what does not turn, then what turns
 *     latent, turning = kv_down(x)          one turning key for all heads
 *     k, v = kv_up(norm(latent))            of each head its key, then its value
 * For the op a head's key is k with the turning one behind it, and its value is padded to the same width: they stand packed as
 * linear_qkv would give them, so that context ranks share them as ever.  A cache keeps norm(latent) and the turning key, of which
 * keys and values are made again.  Tensor ranks share the heads; each has the latents whole, and its summand of their gradients,
 * as norms and linear layers backward give it.
 */
#include "train/module.h"

static int move(struct model *m, void *y, const void *x, const struct heads_part *p, struct err *e)
{
    return m->dev->ops->heads_move(m->dev, m->dt, y, x, p, e);
}

/* Linear layers of attention with latents have no biases, but linear_proj. */
static struct linear plain(const struct model *m, int64_t layer, enum layer_param w, int64_t rows)
{
    return linear_of(m, layer, w, QKV_B, rows);
}

/* Where heads stand in q, k and v, packed; in what linear_kv_up_proj gives; and in what goes into linear_proj. */
static struct heads_at packed(const struct model_config *c)
{
    return (struct heads_at){model_qkv_width(c), c->head_dim};
}
static struct heads_at up(const struct model_config *c)
{
    return (struct heads_at){model_kv_up_width(c), c->qk_flat + c->v_dim};
}
static struct heads_at values(const struct model_config *c)
{
    return (struct heads_at){model_proj_width(c), c->v_dim};
}
/* And where they stand in rows of them alone. */
static struct heads_at alone(const struct model_config *c)
{
    return (struct heads_at){model_q_width(c), c->head_dim};
}

/* Turns what turns of rows of queries, or of their gradients, packed. */
static int turn_queries(struct model *m, int64_t layer, void *q, int64_t rows, bool inverse, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct rope r = {.t = rows, .heads = c->heads, .d = c->head_dim, .ldx = model_qkv_width(c), .inverse = inverse};

    return attention_turn(m, layer, pass_at(m, q, c->qk_flat), r, e);
}

/* The same of the key that all heads have, behind latents. */
static int turn_key(struct model *m, int64_t layer, void *kv_down, int64_t rows, bool inverse, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct rope r = {.t = rows, .heads = 1, .d = c->qk_turn, .ldx = model_latent_width(c), .inverse = inverse};

    return attention_turn(m, layer, pass_at(m, kv_down, c->kv_rank), r, e);
}

/* ---- forward ---- */

/* x, all rows, to the queries of attention. */
static int queries(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct linear down = plain(m, layer, Q_DOWN_W, rows), make = plain(m, layer, Q_UP_W, rows);
    struct attention_acts *a = &m->acts->layers[layer].attention;
    struct norm_fwd norm = {.t = rows, .c = c->q_rank, .x = a->q_down, .y = a->q_latent, .mean = a->mean_q, .rstd = a->rstd_q};
    const struct heads_part to = {rows, c->heads, c->head_dim, packed(c), alone(c)};

    if (c->q_rank)
        TRY(linear_forward(m, &down, a->q_down, x, e));
    if (c->q_rank && c->qk_norm)
        TRY(pass_norm(m, &norm, pass_param(m, layer, Q_NORM_W), pass_param(m, layer, Q_NORM_B), e));
    TRY(linear_forward(m, &make, m->latent.q, c->q_rank ? a->q_latent : x, e));
    TRY(move(m, a->qkv, m->latent.q, &to, e));
    return turn_queries(m, layer, a->qkv, rows, false, e);
}

/* x, all rows, to latents and the key that turns. */
static int latents(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct linear down = plain(m, layer, KV_DOWN_W, rows);
    struct attention_acts *a = &m->acts->layers[layer].attention;
    const struct heads_part one = {rows, 1, c->kv_rank, {c->kv_rank, 0}, {model_latent_width(c), 0}};
    struct norm_fwd norm = {
        .t = rows, .c = c->kv_rank, .x_heads = {1, model_latent_width(c)}, .y_heads = {1, c->kv_rank},
        .x = a->kv_down, .y = a->kv_latent, .mean = a->mean_k, .rstd = a->rstd_k,
    };

    TRY(linear_forward(m, &down, a->kv_down, x, e));
    TRY(turn_key(m, layer, a->kv_down, rows, false, e));
    if (!c->qk_norm)
        return move(m, a->kv_latent, a->kv_down, &one, e);
    return pass_norm(m, &norm, pass_param(m, layer, K_NORM_W), pass_param(m, layer, K_NORM_B), e);
}

/* Rows of latents, and keys that turn, `apart` elements from row to row. */
struct compressed {
    const void *latent, *turning;
    int64_t apart, rows;
};

/* Keys at k, and behind those of a row its values: rows are `row` elements apart. */
static int expand(struct model *m, int64_t layer, const struct compressed *from, void *k, int64_t row, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct linear make = plain(m, layer, KV_UP_W, from->rows);
    const struct heads_at to = {row, c->head_dim};
    const struct heads_part key = {from->rows, c->heads, c->qk_flat, to, up(c)};
    const struct heads_part turning = {from->rows, c->heads, c->qk_turn, to, {from->apart, 0}};
    const struct heads_part value = {from->rows, c->heads, c->v_dim, to, up(c)};
    const struct heads_part padding = {from->rows, c->heads, c->head_dim - c->v_dim, to, up(c)};
    void *v = pass_at(m, k, model_kv_width(c));

    TRY(linear_forward(m, &make, m->latent.kv, from->latent, e));
    TRY(move(m, k, m->latent.kv, &key, e));
    TRY(move(m, pass_at(m, k, c->qk_flat), from->turning, &turning, e));
    TRY(move(m, v, pass_at(m, m->latent.kv, c->qk_flat), &value, e));
    return padding.c ? move(m, pass_at(m, v, c->v_dim), NULL, &padding, e) : 0;
}

/* Appends new latents and turning keys to the cache, and lets at read the keys and values made of all that it has. */
static int through_cache(struct model *m, int64_t layer, struct attention *at, int64_t past, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct attention_acts *a = &m->acts->layers[layer].attention;
    int64_t t = at->t, kv = model_kv_width(c), ld = model_latent_width(c);
    size_t w = dtype_size(m->dt), turning = (size_t)c->qk_turn * w;

    for (int64_t s = 0; s < at->b; s++) {
        int64_t first = (layer * m->b + s) * m->t;
        const struct compressed all = {pass_at(m, m->cache_k, first * c->kv_rank), pass_at(m, m->cache_v, first * c->qk_turn),
                                       c->qk_turn, past + t};

        TRY(device_copy(m->dev, pass_at(m, m->cache_k, (first + past) * c->kv_rank),
                        pass_at(m, a->kv_latent, s * t * c->kv_rank), (size_t)(t * c->kv_rank) * w, e));
        TRY(device_copy_rows(m->dev, pass_at(m, m->cache_v, (first + past) * c->qk_turn), turning,
                             pass_at(m, a->kv_down, s * t * ld + c->kv_rank), (size_t)ld * w, turning, (size_t)t, e));
        TRY(expand(m, layer, &all, pass_at(m, m->latent.cached, s * m->t * 2 * kv), 2 * kv, e));
    }
    at->k = (struct attention_view){m->latent.cached, m->t * 2 * kv, 2 * kv};
    at->v = (struct attention_view){pass_at(m, m->latent.cached, kv), m->t * 2 * kv, 2 * kv};
    at->t_kv = past + t;
    at->lse = NULL;
    return 0;
}

static int begin(struct model *m, int64_t layer, const void *y, const struct pass *p, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct attention_acts *a = &m->acts->layers[layer].attention;
    const struct compressed own = {a->kv_latent, pass_at(m, a->kv_down, c->kv_rank), model_latent_width(c), pass_rows(p)};
    struct attention at = attention_of(m, layer, p->b, p->t);
    struct dropout d;
    const void *x;

    TRY(pass_gather(m, &x, y, own.rows, e));
    TRY(queries(m, layer, x, own.rows, e));
    TRY(latents(m, layer, x, own.rows, e));
    if (p->past >= 0)
        TRY(through_cache(m, layer, &at, p->past, e));
    else
        TRY(expand(m, layer, &own, at.k.p, at.k.row, e));
    at.drop = pass_dropout(m, p->drop, layer, DROP_ATTENTION, &d);
    return pass_ring(m) ? ring_forward(m, layer, at.drop, e) : m->dev->ops->attention_fwd(m->dev, m->dt, &at, e);
}

/* The input of linear_proj, to m->latent.q: attention's output without what pads it. */
static int output(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct heads_part p = {rows, c->heads, c->v_dim, values(c), alone(c)};

    return move(m, m->latent.q, m->acts->layers[layer].attention.out, &p, e);
}

static int end(struct model *m, int64_t layer, const struct pass *p, struct err *e)
{
    const struct linear proj = linear_of(m, layer, PROJ_W, PROJ_B, pass_rows(p));

    TRY(output(m, layer, pass_rows(p), e));
    return linear_forward(m, &proj, m->out, m->latent.q, e);
}

/* ---- backward ---- */

/* From dy, of all rows of what it adds, to m->back.dln, the gradient of attention's output. */
static int output_back(struct model *m, int64_t layer, const void *dy, int64_t rows, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct linear proj = linear_of(m, layer, PROJ_W, PROJ_B, rows);
    const struct heads_part value = {rows, c->heads, c->v_dim, alone(c), values(c)};
    const struct heads_part padding = {rows, c->heads, c->head_dim - c->v_dim, alone(c), values(c)};

    TRY(output(m, layer, rows, e));
    TRY(linear_backward(m, &proj, m->latent.kv, dy, m->latent.q, e));
    TRY(move(m, m->back.dln, m->latent.kv, &value, e));
    return padding.c ? move(m, pass_at(m, m->back.dln, c->v_dim), NULL, &padding, e) : 0;
}

/* From the gradients of queries in m->back.dwide to m->back.dln, with x, all rows of the module's input. */
static int queries_back(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct linear down = plain(m, layer, Q_DOWN_W, rows), make = plain(m, layer, Q_UP_W, rows);
    const struct attention_acts *a = &m->acts->layers[layer].attention;
    const struct heads_part from = {rows, c->heads, c->head_dim, alone(c), packed(c)};
    struct norm_bwd norm = {.t = rows, .c = c->q_rank, .dy = m->latent.down, .s = a->q_down, .mean = a->mean_q,
                            .rstd = a->rstd_q, .ds = m->latent.down};

    TRY(turn_queries(m, layer, m->back.dwide, rows, true, e));
    TRY(move(m, m->latent.q, m->back.dwide, &from, e));
    if (!c->q_rank)
        return linear_backward(m, &make, m->back.dln, m->latent.q, x, e);
    TRY(linear_backward(m, &make, m->latent.down, m->latent.q, a->q_latent, e));
    if (c->qk_norm)
        TRY(pass_norm_back(m, &norm, pass_param(m, layer, Q_NORM_W), pass_param(m, layer, Q_NORM_B), e));
    return linear_backward(m, &down, m->back.dln, m->latent.down, x, e);
}

/* The gradients of keys and values in m->back.dwide to m->latent.dkv, that of what linear_kv_down_proj gave, before the norm. */
static int expand_back(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct linear make = plain(m, layer, KV_UP_W, rows);
    const struct heads_part key = {rows, c->heads, c->qk_flat, up(c), packed(c)};
    const struct heads_part turning = {rows, c->heads, c->qk_turn, {model_latent_width(c), 0}, packed(c)};
    const struct heads_part value = {rows, c->heads, c->v_dim, up(c), packed(c)};
    const struct heads_part one = {rows, 1, c->kv_rank, {model_latent_width(c), 0}, {c->kv_rank, 0}};
    void *dk = pass_at(m, m->back.dwide, model_q_width(c)), *dv = pass_at(m, dk, model_kv_width(c));

    TRY(move(m, m->latent.kv, dk, &key, e));
    TRY(move(m, pass_at(m, m->latent.kv, c->qk_flat), dv, &value, e));
    TRY(m->dev->ops->heads_sum(m->dev, m->dt, pass_at(m, m->latent.dkv, c->kv_rank), pass_at(m, dk, c->qk_flat), &turning, e));
    TRY(turn_key(m, layer, m->latent.dkv, rows, true, e));
    TRY(linear_backward(m, &make, m->latent.down, m->latent.kv, m->acts->layers[layer].attention.kv_latent, e));
    return move(m, m->latent.dkv, m->latent.down, &one, e);
}

/* From those on to m->back.dln, which has the queries' share. */
static int latents_back(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e)
{
    struct linear down = plain(m, layer, KV_DOWN_W, rows);
    const struct attention_acts *a = &m->acts->layers[layer].attention;
    struct norm_bwd norm = {
        .t = rows, .c = m->config.kv_rank, .heads = {1, model_latent_width(&m->config)}, .dy = m->latent.dkv, .s = a->kv_down,
        .mean = a->mean_k, .rstd = a->rstd_k, .ds = m->latent.dkv,
    };

    down.adds = true;
    TRY(expand_back(m, layer, rows, e));
    if (m->config.qk_norm)
        TRY(pass_norm_back(m, &norm, pass_param(m, layer, K_NORM_W), pass_param(m, layer, K_NORM_B), e));
    return linear_backward(m, &down, m->back.dln, m->latent.dkv, x, e);
}

static int backward(struct model *m, int64_t layer, const void *dy, const void *y, const struct pass *p, struct err *e)
{
    struct attention at = attention_of(m, layer, p->b, p->t);
    int64_t q = model_q_width(&m->config), row = model_qkv_width(&m->config), n = pass_rows(p);
    struct attention_view dq = {m->back.dwide, p->t * row, row}, dk = dq, dv = dq, dout = {m->back.dln, p->t * q, q};
    struct dropout d;
    const void *x;

    TRY(pass_gather(m, &dy, dy, n, e));
    dk.p = pass_at(m, m->back.dwide, q);
    dv.p = pass_at(m, m->back.dwide, 2 * q);
    at.dsink = pass_grad(m, pass_param(m, layer, SOFTMAX_OFFSET));
    TRY(output_back(m, layer, dy, n, e));
    at.drop = pass_dropout(m, p->drop, layer, DROP_ATTENTION, &d);
    if (pass_ring(m))
        TRY(ring_backward(m, layer, at.drop, e));
    else
        TRY(m->dev->ops->attention_bwd(m->dev, m->dt, &at, dout, dq, dk, dv, e));
    TRY(pass_gather(m, &x, y, n, e));
    TRY(queries_back(m, layer, x, n, e));
    return latents_back(m, layer, x, n, e);
}

const struct module module_latent = {begin, end, NULL, backward};
