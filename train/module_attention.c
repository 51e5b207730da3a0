/* Attention: linear_qkv, norms of heads, rotary positions, the product of probabilities and values, linear_proj. */
#include "train/layer_attention.h"
#include "train/module.h"

static struct layer_attention kind_of(const struct model *m, int64_t layer)
{
    return layer_attention_of(&m->config, pass_layer_as(m, layer));
}

struct attention attention_of(const struct model *m, int64_t layer, int64_t b, int64_t t)
{
    const struct layer_attention kind = kind_of(m, layer);
    const struct attention_acts *a = &m->acts->layers[layer].attention;
    const struct model_config *c = &m->config;
    int64_t q = model_q_width(c), kv = model_kv_width(c), row = model_qkv_width(c), row_qk = a->qk ? q + kv : row;
    void *qk = a->qk ? a->qk : a->qkv;
    struct attention at = kind.op;

    at.b = b, at.t = at.t_kv = t;
    at.heads = c->heads, at.kv_heads = c->groups, at.d = c->head_dim;
    at.all_heads = m->whole.heads;
    at.first_head = pass_shared(m) ? m->part.tensor->rank * c->heads : 0;
    at.q = (struct attention_view){qk, t * row_qk, row_qk};
    at.k = (struct attention_view){pass_at(m, qk, q), t * row_qk, row_qk};
    at.v = (struct attention_view){pass_at(m, a->qkv, q + kv), t * row, row};
    at.o = (struct attention_view){a->out, t * q, q};
    at.lse = a->lse;
    at.most = m->most ? m->most + layer * c->heads : NULL;
    at.start = m->acts->starts;
    at.documents = m->acts->documents, at.longest = m->acts->longest;
    at.sink = pass_weight(m, pass_param(m, layer, SOFTMAX_OFFSET));
    return at;
}

int attention_turn(struct model *m, int64_t layer, void *x, struct rope r, struct err *e)
{
    int table = kind_of(m, layer).turns;

    if (table < 0)
        return 0;
    r.rot = model_rotary_width(&m->config);
    r.n_pos = m->run.t;
    r.pos = pass_positions_of(m);
    r.cs = m->turns + table * r.n_pos * r.rot;
    return m->dev->ops->rope(m->dev, m->dt, x, &r, e);
}

/* All of rows of q and k heads, ld apart. */
static int turn(struct model *m, int64_t layer, void *qk, int64_t ld, int64_t rows, bool inverse, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct rope r = {.t = rows, .heads = c->heads + c->groups, .d = c->head_dim, .ldx = ld, .inverse = inverse};

    return attention_turn(m, layer, qk, r, e);
}

/* ---- forward ---- */

/* Queries and keys as attention takes them: normalised and turned. */
static int prepare(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    const struct model_config *c = &m->config;
    struct attention_acts *a = &m->acts->layers[layer].attention;
    int64_t q = model_q_width(c), kv = model_kv_width(c), ld = model_qkv_width(c), to = q + kv;
    int64_t nh = c->qk_norm_wide ? 1 : c->heads, ng = c->qk_norm_wide ? 1 : c->groups; /* norms of a row */
    struct norm_fwd nq = {
        .t = rows * nh, .c = q / nh, .x_heads = {nh, ld}, .y_heads = {nh, to},
        .x = a->qkv, .y = a->qk, .mean = a->mean_q, .rstd = a->rstd_q,
    };
    struct norm_fwd nk = {
        .t = rows * ng, .c = kv / ng, .x_heads = {ng, ld}, .y_heads = {ng, to},
        .x = pass_at(m, a->qkv, q), .y = pass_at(m, a->qk, q), .mean = a->mean_k, .rstd = a->rstd_k,
    };

    if (!c->qk_norm)
        return turn(m, layer, a->qkv, ld, rows, false, e);
    TRY(pass_norm(m, &nq, pass_param(m, layer, Q_NORM_W), pass_param(m, layer, Q_NORM_B), e));
    TRY(pass_norm(m, &nk, pass_param(m, layer, K_NORM_W), pass_param(m, layer, K_NORM_B), e));
    return turn(m, layer, a->qk, to, rows, false, e);
}

/* Appends the new keys and values to the cache and lets at read them there. */
static int through_cache(struct model *m, int64_t layer, struct attention *at, int64_t past, struct err *e)
{
    int64_t kv = model_kv_width(&m->config);
    size_t w = dtype_size(m->dt), row = (size_t)kv * w;
    char *base[2] = {m->cache_k, m->cache_v};
    struct attention_view *view[2] = {&at->k, &at->v};

    for (int i = 0; i < 2; i++) {
        char *cache = base[i] + (size_t)(layer * m->b * m->t) * row;

        for (int64_t r = 0; r < at->b * at->t; r++) {
            int64_t s = r / at->t, j = r % at->t;
            const char *from = (const char *)view[i]->p + (size_t)(s * view[i]->batch + j * view[i]->row) * w;

            TRY(device_copy(m->dev, cache + (size_t)(s * m->t + past + j) * row, from, row, e));
        }
        *view[i] = (struct attention_view){cache, m->t * kv, kv};
    }
    at->t_kv = past + at->t;
    at->lse = NULL;
    return 0;
}

/* What the output is multiplied by, behind queries, keys and values. */
static struct gate_rows gate_of(const struct model *m, int64_t layer, int64_t rows)
{
    const struct model_config *c = &m->config;
    int64_t q = model_q_width(c);

    return (struct gate_rows){.gate = pass_at(m, m->acts->layers[layer].attention.qkv, q + 2 * model_kv_width(c)),
                              .ld = model_qkv_width(c), .t = rows, .c = q};
}

/* The input of linear_proj. */
static void *output_of(const struct model *m, int64_t layer)
{
    const struct attention_acts *a = &m->acts->layers[layer].attention;

    return a->gated ? a->gated : a->out;
}

static int begin(struct model *m, int64_t layer, const void *y, const struct pass *p, struct err *e)
{
    const struct linear qkv = linear_of(m, layer, QKV_W, QKV_B, pass_rows(p));
    const struct gate_rows gate = gate_of(m, layer, pass_rows(p));
    struct attention at = attention_of(m, layer, p->b, p->t);
    struct dropout d;
    const void *x;

    TRY(pass_gather(m, &x, y, qkv.rows, e));
    TRY(linear_forward(m, &qkv, m->acts->layers[layer].attention.qkv, x, e));
    TRY(value_add(m, layer, x, qkv.rows, e));
    TRY(prepare(m, layer, qkv.rows, e));
    if (p->past >= 0)
        TRY(through_cache(m, layer, &at, p->past, e));
    at.drop = pass_dropout(m, p->drop, layer, DROP_ATTENTION, &d);
    TRY(pass_ring(m) ? ring_forward(m, layer, at.drop, e) : m->dev->ops->attention_fwd(m->dev, m->dt, &at, e));
    return m->config.output_gate ? m->dev->ops->gate_mul(m->dev, m->dt, output_of(m, layer), at.o.p, &gate, e) : 0;
}

static int end(struct model *m, int64_t layer, const struct pass *p, struct err *e)
{
    const struct linear proj = linear_of(m, layer, PROJ_W, PROJ_B, pass_rows(p));

    return linear_forward(m, &proj, m->out, output_of(m, layer), e);
}

/* ---- backward ---- */

/* The gradients of q and k in m->back.dwide, from behind the turn and the norm to before them. */
static int prepare_back(struct model *m, int64_t layer, struct err *e)
{
    const struct model_config *c = &m->config;
    struct attention_acts *a = &m->acts->layers[layer].attention;
    int64_t n = m->b * m->t, ld = model_qkv_width(c), q = model_q_width(c);
    int64_t nh = c->qk_norm_wide ? 1 : c->heads, ng = c->qk_norm_wide ? 1 : c->groups;
    void *dk = pass_at(m, m->back.dwide, q);
    struct norm_bwd nq = {
        .t = n * nh, .c = q / nh, .heads = {nh, ld}, .dy = m->back.dwide, .s = a->qkv,
        .mean = a->mean_q, .rstd = a->rstd_q, .ds = m->back.dwide,
    };
    struct norm_bwd nk = {
        .t = n * ng, .c = model_kv_width(c) / ng, .heads = {ng, ld}, .dy = dk, .s = pass_at(m, a->qkv, q),
        .mean = a->mean_k, .rstd = a->rstd_k, .ds = dk,
    };

    TRY(turn(m, layer, m->back.dwide, ld, n, true, e));
    if (!c->qk_norm)
        return 0;
    TRY(pass_norm_back(m, &nq, pass_param(m, layer, Q_NORM_W), pass_param(m, layer, Q_NORM_B), e));
    return pass_norm_back(m, &nk, pass_param(m, layer, K_NORM_W), pass_param(m, layer, K_NORM_B), e);
}

static int backward(struct model *m, int64_t layer, const void *dy, const void *y, const struct pass *p, struct err *e)
{
    struct attention at = attention_of(m, layer, p->b, p->t);
    int64_t q = model_q_width(&m->config), kv = model_kv_width(&m->config), row = model_qkv_width(&m->config), n = pass_rows(p);
    const struct linear qkv = linear_of(m, layer, QKV_W, QKV_B, n), proj = linear_of(m, layer, PROJ_W, PROJ_B, n);
    struct attention_view dq = {m->back.dwide, p->t * row, row}, dk = dq, dv = dq, dout = {m->back.dln, p->t * q, q};
    const struct gate_rows gate = gate_of(m, layer, n);
    struct dropout d;
    const void *x;

    TRY(pass_gather(m, &dy, dy, n, e));
    dk.p = pass_at(m, m->back.dwide, q);
    dv.p = pass_at(m, m->back.dwide, q + kv);
    at.dsink = pass_grad(m, pass_param(m, layer, SOFTMAX_OFFSET));
    TRY(linear_backward(m, &proj, m->back.dln, dy, output_of(m, layer), e));
    if (m->config.output_gate)
        TRY(m->dev->ops->gate_mul(m->dev, m->dt, m->back.dln, m->back.dln, &gate, e));
    at.drop = pass_dropout(m, p->drop, layer, DROP_ATTENTION, &d);
    if (pass_ring(m))
        TRY(ring_backward(m, layer, at.drop, e));
    else
        TRY(m->dev->ops->attention_bwd(m->dev, m->dt, &at, dout, dq, dk, dv, e));
    if (m->config.output_gate) /* the ring writes whole rows */
        TRY(m->dev->ops->gate_slope(m->dev, m->dt, pass_at(m, m->back.dwide, q + 2 * kv), m->back.dln, at.o.p, &gate, e));
    TRY(value_back(m, layer, e));
    TRY(prepare_back(m, layer, e));
    TRY(pass_gather(m, &x, y, n, e));
    TRY(linear_backward(m, &qkv, m->back.dln, m->back.dwide, x, e));
    return value_gate_back(m, layer, x, e);
}

const struct module module_attention = {begin, end, NULL, backward};
