/* The forward pass. */
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "train/exchange.h"
#include "train/linear.h"
#include "train/model_pass.h"

const struct dropout *pass_dropout(const struct model *m, const struct model_dropout *md, int64_t layer,
                                   enum drop_place place, struct dropout *d)
{
    double p = place == DROP_ATTENTION ? m->config.attention_dropout : m->config.hidden_dropout;
    int64_t first = m->part.sequence ? m->part.tensor->rank * m->own : 0;

    if (!md || p == 0)
        return NULL;
    *d = (struct dropout){
        .p = (float)p, .key = hash_xxh3_64_seed(span_of("dropout"), md->seed),
        .stream = (uint64_t)(m->part.first + layer) << 2 | (uint64_t)place,
        .every = place == DROP_ATTENTION ? m->run.t * m->whole.heads : m->run.t, .now = m->acts->drop,
    };
    if (place == DROP_ATTENTION)
        return d;
    if (!pass_ring(m)) {
        d->row0 = first;
        return d;
    }
    d->cut = m->t / 2;
    d->first = first;
    for (int i = 0; i < 2; i++)
        d->at[i] = pass_half_at(m, m->part.context->rank, i);
    return d;
}

/* ---- units of parameters ---- */

int pass_weights(struct model *m, int unit, bool back, struct err *e)
{
    for (int i = 0; i < m->n_buffers; i++)
        TRY(param_gather(m->buffers[i], unit, back, e));
    return pass_progress(m, e);
}

int pass_release(struct model *m, int unit, struct err *e)
{
    for (int i = 0; i < m->n_buffers; i++)
        TRY(param_release(m->buffers[i], unit, e));
    return pass_progress(m, e);
}

/* ---- what tensor ranks do together ---- */

int pass_sum(struct model *m, void **result, void *buf, int64_t rows, struct err *e)
{
    int64_t own = pass_own(m, rows) * m->config.hidden;
    struct comm_call call = {
        .kind = COMM_REDUCE_SCATTER, .send = buf, .n = (size_t)own, .type = exchange_type(m->dt), .op = COMM_SUM,
    };

    *result = buf;
    if (!pass_shared(m))
        return 0;
    if (!m->part.sequence)
        return exchange_sum(m->dev, m->part.tensor, buf, (size_t)(rows * m->config.hidden), exchange_type(m->dt), e);
    *result = call.recv = pass_at(m, buf, m->part.tensor->rank * own);
    return exchange(m->dev, m->part.tensor, &call, e);
}

int pass_gather(struct model *m, const void **result, const void *x, int64_t rows, struct err *e)
{
    struct comm_call call = {
        .kind = COMM_ALL_GATHER, .send = x, .recv = m->full, .n = (size_t)(pass_own(m, rows) * m->config.hidden),
        .type = exchange_type(m->dt),
    };

    *result = m->part.sequence ? m->full : x;
    return m->part.sequence ? exchange(m->dev, m->part.tensor, &call, e) : 0;
}

static layernorm_fwd_fn *norm_of(const struct model *m)
{
    return m->config.norm == NORM_RMS ? m->dev->ops->rmsnorm_fwd : m->dev->ops->layernorm_fwd;
}

/* p with its weights and the model's eps, as the model's kind of norm. */
static int norm_op(struct model *m, struct norm_fwd *p, int w, int b, struct err *e)
{
    p->eps = (float)m->config.norm_eps;
    p->gamma = pass_weight(m, w);
    p->beta = pass_weight(m, b);
    return norm_of(m)(m->dev, m->dt, p, e);
}

/* One that is FP8_LN1 or FP8_LN2 of a layer. */
static int layer_norm(struct model *m, struct norm_fwd *p, int64_t layer, enum fp8_input as, struct err *e)
{
    int w = pass_param(m, layer, as == FP8_LN1 ? LN1_W : LN2_W), b = pass_param(m, layer, as == FP8_LN1 ? LN1_B : LN2_B);

    if (!model_fp8_made(m, layer, as))
        return norm_op(m, p, w, b, e);
    p->eps = (float)m->config.norm_eps;
    p->gamma = pass_weight(m, w);
    p->beta = pass_weight(m, b);
    return pass_fp8_norm(m, layer, as, norm_of(m), p, e);
}

/* norm1 of layer, taken of a->s1 alone: before the first layer and when it is made again. */
static int pass_norm1(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    struct layer_acts *a = &m->acts->layers[layer];
    struct norm_fwd p = {
        .t = pass_own(m, rows), .c = m->config.hidden, .x = a->s1, .y = a->ln1, .mean = a->mean1, .rstd = a->rstd1,
    };

    return layer_norm(m, &p, layer, FP8_LN1, e);
}

/* ---- attention ---- */

struct attention pass_attention(const struct model *m, int64_t layer, int64_t b, int64_t t)
{
    const struct layer_acts *a = &m->acts->layers[layer];
    const struct model_config *c = &m->config;
    int64_t q = model_q_width(c), kv = model_kv_width(c), row = q + 2 * kv, row_qk = a->qk ? q + kv : row;
    void *qk = a->qk ? a->qk : a->qkv;
    struct attention at = {
        .b = b, .t = t, .t_kv = t, .heads = c->heads, .kv_heads = c->groups,
        .d = c->head_dim, .scale = 1 / sqrtf((float)c->head_dim), .all_heads = m->whole.heads,
        .first_head = pass_shared(m) ? m->part.tensor->rank * c->heads : 0,
        .q = {qk, t * row_qk, row_qk},
        .k = {pass_at(m, qk, q), t * row_qk, row_qk},
        .v = {pass_at(m, a->qkv, q + kv), t * row, row},
        .o = {a->att, t * q, q},
        .lse = a->lse,
        .start = m->acts->starts,
    };

    return at;
}

int pass_rope(struct model *m, void *qk, int64_t ld, int64_t rows, bool inverse, struct err *e)
{
    const struct model_config *c = &m->config;
    const struct rope r = {
        .t = rows, .heads = c->heads + c->groups, .d = c->head_dim, .ldx = ld, .rot = model_rotary_width(c),
        .n_pos = m->run.t, .cs = m->turns, .pos = pass_positions_of(m), .inverse = inverse,
    };

    return c->position == POSITION_ROPE ? m->dev->ops->rope(m->dev, m->dt, qk, &r, e) : 0;
}

/* Queries and keys from a->qkv as attention takes them: normalised and turned. */
static int prepare_qk(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    const struct model_config *c = &m->config;
    struct layer_acts *a = &m->acts->layers[layer];
    int64_t q = model_q_width(c), ld = model_qkv_width(c), to = q + model_kv_width(c);
    struct norm_fwd nq = {
        .t = rows * c->heads, .c = c->head_dim, .x_heads = {c->heads, ld}, .y_heads = {c->heads, to},
        .x = a->qkv, .y = a->qk, .mean = a->mean_q, .rstd = a->rstd_q,
    };
    struct norm_fwd nk = {
        .t = rows * c->groups, .c = c->head_dim, .x_heads = {c->groups, ld}, .y_heads = {c->groups, to},
        .x = pass_at(m, a->qkv, q), .y = pass_at(m, a->qk, q), .mean = a->mean_k, .rstd = a->rstd_k,
    };

    if (!c->qk_norm)
        return pass_rope(m, a->qkv, ld, rows, false, e);
    TRY(norm_op(m, &nq, pass_param(m, layer, Q_NORM_W), pass_param(m, layer, Q_NORM_B), e));
    TRY(norm_op(m, &nk, pass_param(m, layer, K_NORM_W), pass_param(m, layer, K_NORM_B), e));
    return pass_rope(m, a->qk, to, rows, false, e);
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

/* ---- layers ---- */

int pass_act(struct model *m, void *y, const void *x, int64_t rows, int64_t f, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    enum act act = model_act(&m->config);

    return model_halves(&m->config) == 2 ? ops->glu_fwd(m->dev, m->dt, act, y, x, rows, f, e)
                                         : ops->act_fwd(m->dev, m->dt, act, y, x, rows * f, e);
}

/* a->act of layer from a->fc1. */
static int pass_activate(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    struct layer_acts *a = &m->acts->layers[layer];

    if (model_fp8_made(m, layer, FP8_ACT))
        return pass_fp8_activate(m, layer, rows, e);
    return pass_act(m, a->act, a->fc1, rows, model_layer_ffn(&m->config, pass_moe(m, layer)), e);
}

int pass_mlp(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e)
{
    struct layer_acts *a = &m->acts->layers[layer];
    struct linear fc1 = linear_of(m, layer, FC1_W, FC1_B, rows);

    if (pass_fused(m) && !model_fp8_made(m, layer, FP8_ACT)) {
        fc1.act = model_act(&m->config);
        fc1.aux = a->fc1;
        return linear_forward(m, &fc1, a->act, x, e);
    }
    TRY(linear_forward(m, &fc1, a->fc1, x, e));
    return pass_activate(m, layer, rows, e);
}

int pass_mlp_end(struct model *m, int64_t layer, void *y, int64_t rows, struct err *e)
{
    const struct linear fc2 = linear_of(m, layer, FC2_W, FC2_B, rows);

    return linear_forward(m, &fc2, y, m->acts->layers[layer].act, e);
}

/* One layer from a->s1 and a->ln1 up to a->act: everything but the MLP's last product.  b sequences of t rows; with
 * past >= 0 keys and values go through the cache. */
static int pass_layer(struct model *m, int64_t layer, int64_t b, int64_t t, int64_t past,
               const struct model_dropout *md, struct err *e)
{
    struct layer_acts *a = &m->acts->layers[layer];
    struct attention at = pass_attention(m, layer, b, t);
    struct dropout d, d2;
    int64_t n = b * t;
    const struct linear qkv = linear_of(m, layer, QKV_W, QKV_B, n), proj = linear_of(m, layer, PROJ_W, PROJ_B, n);
    struct norm_fwd norm2 = {
        .t = pass_own(m, n), .c = m->config.hidden, .residual = a->s1, .drop = pass_dropout(m, md, layer, DROP_PROJ, &d2),
        .s = a->s2, .y = a->ln2, .mean = a->mean2, .rstd = a->rstd2,
    };
    const void *x;
    void *added;

    TRY(pass_gather(m, &x, a->ln1, n, e));
    TRY(linear_forward(m, &qkv, a->qkv, x, e));
    TRY(prepare_qk(m, layer, n, e));
    if (past >= 0)
        TRY(through_cache(m, layer, &at, past, e));
    at.drop = pass_dropout(m, md, layer, DROP_ATTENTION, &d);
    TRY(pass_ring(m) ? pass_ring_forward(m, layer, at.drop, e) : m->dev->ops->attention_fwd(m->dev, m->dt, &at, e));
    TRY(linear_forward(m, &proj, m->out, a->att, e));
    TRY(pass_sum(m, &added, m->out, n, e));
    norm2.x = added;
    TRY(layer_norm(m, &norm2, layer, FP8_LN2, e));
    if (pass_moe(m, layer)) {
        TRY(pass_experts(m, layer, n, e));
        return pass_has_shared(m, layer) ? pass_shared_expert(m, layer, n, e) : 0;
    }
    TRY(pass_gather(m, &x, a->ln2, n, e));
    return pass_mlp(m, layer, x, n, e);
}

/* s_final = s2 + dropout(added) of the last layer, which another part goes on from. */
static int leave(struct model *m, int64_t layer, void *added, int64_t rows, const struct model_dropout *md, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    int64_t own = pass_own(m, rows), h = m->config.hidden;
    struct dropout d;
    const struct dropout *drop = pass_dropout(m, md, layer, DROP_MLP, &d);

    if (drop)
        TRY(ops->vec_dropout(m->dev, m->dt, added, added, own, h, drop, e));
    return ops->vec_add(m->dev, m->dt, m->acts->s_final, m->acts->layers[layer].s2, added, own * h, e);
}

/* From a->act of layer to the next layer's s1 and ln1, or to s_final and, with a head, ln_final. */
static int pass_layer_end(struct model *m, int64_t layer, int64_t rows, const struct model_dropout *md, struct err *e)
{
    struct model_acts *acts = m->acts;
    struct layer_acts *a = &acts->layers[layer];
    bool last = layer + 1 == m->config.layers;
    struct layer_acts *next = last ? NULL : a + 1;
    struct dropout d;
    struct norm_fwd p = {
        .t = pass_own(m, rows), .c = m->config.hidden, .residual = a->s2, .drop = pass_dropout(m, md, layer, DROP_MLP, &d),
        .s = last ? acts->s_final : next->s1, .y = last ? acts->ln_final : next->ln1,
        .mean = last ? acts->mean_final : next->mean1, .rstd = last ? acts->rstd_final : next->rstd1,
    };
    void *added;

    TRY(pass_moe(m, layer) ? pass_experts_end(m, layer, rows, e) : pass_mlp_end(m, layer, m->out, rows, e));
    if (pass_has_shared(m, layer))
        TRY(pass_shared_expert_end(m, layer, rows, e));
    TRY(pass_sum(m, &added, m->out, rows, e));
    if (last && !m->part.heads)
        return leave(m, layer, added, rows, md, e);
    p.x = added;
    if (last)
        return norm_op(m, &p, m->dense.params.final_w, m->dense.params.final_b, e);
    return layer_norm(m, &p, layer + 1, FP8_LN1, e);
}

int64_t pass_chunk(const struct model *m, int64_t layer)
{
    const struct model_run *r = &m->run;

    if (r->use != MODEL_TRAIN || r->recompute != RECOMPUTE_FULL)
        return -1;
    if (r->block)
        return layer < r->layers ? layer : -1;
    return layer - layer % r->layers;
}

static int again(struct model *m, int64_t layer, const struct model_dropout *md, struct err *e)
{
    struct layer_acts *a = &m->acts->layers[layer];
    int64_t n = m->b * m->t, chunk = pass_chunk(m, layer);
    struct norm_fwd p = {.t = m->own, .c = m->config.hidden, .x = a->s2, .y = a->ln2, .mean = a->mean2, .rstd = a->rstd2};

    if (m->run.recompute == RECOMPUTE_SELECTIVE) {
        TRY(pass_norm1(m, layer, n, e));
        TRY(layer_norm(m, &p, layer, FP8_LN2, e));
        if (pass_moe(m, layer))
            TRY(pass_experts_activate(m, layer, e));
        return pass_moe(m, layer) && !pass_has_shared(m, layer) ? 0 : pass_activate(m, layer, n, e);
    }
    if (chunk < 0 || (layer + 1 < m->config.layers && pass_chunk(m, layer + 1) == chunk))
        return 0; /* kept, or already run again with its chunk */
    if (chunk < layer) /* first others are needed */
        TRY(pass_release(m, pass_unit(layer), e));
    TRY(pass_weights(m, pass_unit(chunk), false, e));
    TRY(pass_norm1(m, chunk, n, e));
    for (int64_t i = chunk; i <= layer; i++) {
        TRY(pass_layer(m, i, m->b, m->t, -1, md, e));
        if (i == layer)
            break;
        TRY(pass_weights(m, pass_unit(i + 1), false, e));
        TRY(pass_layer_end(m, i, n, md, e));
        if (i + 1 < layer) /* the last two are needed next */
            TRY(pass_release(m, pass_unit(i), e));
    }
    return pass_weights(m, pass_unit(layer), true, e);
}

int pass_again(struct model *m, int64_t layer, const struct model_dropout *md, struct err *e)
{
    int rc;

    if (m->fp8)
        m->fp8->again = true;
    rc = again(m, layer, md, e);
    if (m->fp8)
        m->fp8->again = false;
    return rc;
}

struct embedding pass_embedding(const struct model *m, int64_t rows)
{
    return (struct embedding){
        .t = rows, .c = m->config.hidden, .token = m->acts->tokens, .pos = pass_positions_of(m),
        .n_vocab = m->config.padded_vocab,
        .n_pos = m->config.positions, .first = pass_shared(m) ? m->part.tensor->rank * m->config.padded_vocab : 0,
    };
}

void model_ids_here(const struct model *m, int32_t *ids)
{
    for (int64_t i = 0; i < m->b * m->t && pass_ring(m); i++) /* none comes from before its place */
        ids[i] = ids[i / m->t * m->run.t + pass_position(m, i, m->t)];
}

/* Tokens to s1 of the first layer; rows of the vocabulary that other ranks have come by the sum, and
 * positions from the first of them. */
static int embed(struct model *m, int64_t b, int64_t t, const struct model_dropout *md, struct err *e)
{
    const struct params *p = &m->dense.params;
    int64_t rows = b * t;
    struct embedding emb = pass_embedding(m, rows);
    void *to = m->part.sequence ? m->full : model_stream_in(m, (int)(m->acts - m->slot)), *s;
    struct dropout d;
    const struct dropout *drop = pass_dropout(m, md, 0, DROP_EMBEDDING, &d);
    int64_t own = pass_own(m, rows), h = m->config.hidden;

    TRY(m->dev->ops->embedding_fwd(m->dev, m->dt, to, &emb, pass_weight(m, p->word),
                                   pass_first(m) ? pass_weight(m, p->position) : NULL, e));
    TRY(pass_sum(m, &s, to, rows, e));
    to = model_stream_in(m, (int)(m->acts - m->slot));
    if (drop)
        return m->dev->ops->vec_dropout(m->dev, m->dt, to, s, own, h, drop, e);
    return s == to ? 0 : device_copy(m->dev, to, s, (size_t)(own * h) * dtype_size(m->dt), e);
}

/* Embeddings, all layers, final norm, as far as the part has them. */
static int pass_trunk(struct model *m, int64_t b, int64_t t, int64_t past, const struct model_dropout *md, struct err *e)
{
    TRY(pass_weights(m, 0, false, e));
    if (m->part.embeds)
        TRY(embed(m, b, t, md, e));
    TRY(pass_release(m, 0, e));
    for (int64_t i = 0; i < m->config.layers; i++) {
        double start = trace_begin(m->trace, "forward", m->part.first + i);

        TRY(pass_weights(m, pass_unit(i), false, e));
        if (i == 0)
            TRY(pass_norm1(m, 0, b * t, e));
        TRY(pass_layer(m, i, b, t, past, md, e));
        TRY(pass_weights(m, pass_unit(i + 1), false, e)); /* it ends with what comes next: a norm */
        TRY(pass_layer_end(m, i, b * t, md, e));
        TRY(pass_release(m, pass_unit(i), e));
        trace_end(m->trace, TRACE_LAYERS, "forward", m->part.first + i, start);
    }
    return 0;
}

int pass_positions(struct model *m, int64_t b, int64_t t, int64_t first, struct err *e)
{
    int32_t *pos = malloc((size_t)(b * t) * sizeof *pos);
    int rc;

    if (!pos)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int64_t i = 0; i < b * t; i++)
        pos[i] = (int32_t)(first + pass_position(m, i, t));
    rc = device_put(m->dev, m->positions, pos, (size_t)(b * t) * sizeof *pos, e);
    free(pos);
    return rc;
}

void *model_stream_in(struct model *m, int slot)
{
    return m->slot[slot].layers[0].s1;
}

void *model_stream_out(struct model *m, int slot)
{
    return m->slot[slot].s_final;
}

/* The losses of the rows of m->logits, in m->loss, and the gradient in their place. */
static int losses(struct model *m, bool gradient, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    struct comm *ranks = m->part.tensor;
    size_t n = (size_t)(m->b * m->t);
    int64_t first = pass_shared(m) ? ranks->rank * m->config.padded_vocab : 0, here = m->config.vocab - first;
    struct xent x = {
        .t = (int64_t)n, .ld = m->config.padded_vocab, .first = first, .logits = m->logits, .target = m->targets,
        .scale = gradient ? m->scale : NULL, .v = here < 0 ? 0 : here < m->config.padded_vocab ? here : m->config.padded_vocab,
    };
    struct comm_call most = {
        .kind = COMM_ALL_REDUCE, .send = m->max, .recv = m->max, .n = n, .type = COMM_F32, .op = COMM_MAX,
    };

    if (!pass_shared(m))
        return ops->xent(m->dev, m->dt, &x, m->loss, e);
    TRY(ops->xent_max(m->dev, m->dt, &x, m->max, e));
    TRY(exchange(m->dev, ranks, &most, e));
    TRY(ops->xent_sum(m->dev, m->dt, &x, m->max, m->sum, m->at, e));
    TRY(exchange_sum(m->dev, ranks, m->sum, n, COMM_F32, e));
    TRY(exchange_sum(m->dev, ranks, m->at, n, COMM_F32, e));
    return ops->xent_finish(m->dev, m->dt, &x, m->max, m->sum, m->at, m->loss, e);
}

/* m->scale becomes full of x: once a run, and when a batch ramps up. */
static int fill_scale(struct model *m, float x, struct err *e)
{
    size_t n = (size_t)(m->b * m->t);
    float *host;
    int rc;

    if (x == m->scaled)
        return 0;
    host = malloc(n * sizeof *host);
    if (!host)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        host[i] = x;
    rc = device_put(m->dev, m->scale, host, n * sizeof *host, e);
    m->scaled = rc < 0 ? 0 : x;
    free(host);
    return rc;
}

/* From where documents begin, (b, run.t), to the positions and starts of the tokens that are here. */
static int put_documents(struct model *m, const struct model_acts *a, const struct model_batch *batch, struct err *e)
{
    int64_t n = m->b * m->t, half = m->t / 2;
    size_t bytes = (size_t)n * sizeof *batch->here;
    int32_t *position = batch->here, *start = batch->here + n;

    for (int64_t i = 0; i < n; i++) {
        int64_t at = pass_position(m, i, m->t), seq = i / m->t, r = i % m->t;
        int32_t from = batch->starts[seq * m->run.t + at];

        position[i] = (int32_t)at - from;
        start[pass_ring(m) ? (r / half * m->b + seq) * half + r % half : i] = from;
    }
    if (a->positions)
        TRY(device_put_later(m->dev, a->positions, position, bytes, e));
    return a->starts ? device_put_later(m->dev, a->starts, start, bytes, e) : 0;
}

int model_take(struct model *m, const struct model_batch *batch, struct err *e)
{
    const struct model_acts *a = &m->slot[batch->slot];
    size_t bytes = (size_t)(m->b * m->t) * sizeof *batch->tokens;

    if (m->part.embeds)
        TRY(device_put_later(m->dev, a->tokens, batch->tokens, bytes, e));
    if (m->part.heads)
        TRY(device_put_later(m->dev, m->targets, batch->targets, bytes, e));
    if (a->positions || a->starts)
        TRY(put_documents(m, a, batch, e));
    if (a->drop && batch->drop)
        TRY(device_put_later(m->dev, a->drop, &batch->drop->now, sizeof *a->drop, e));
    return m->part.heads && batch->grad_scale > 0 ? fill_scale(m, batch->grad_scale, e) : 0;
}

/* ln_final to logits and losses. */
static int head(struct model *m, const struct model_batch *batch, double *loss_sum, struct err *e)
{
    int64_t n = m->b * m->t;
    const struct linear output = linear_output(m, n);
    const void *x;

    TRY(pass_gather(m, &x, m->acts->ln_final, n, e));
    TRY(linear_forward(m, &output, m->logits, x, e));
    TRY(losses(m, batch->grad_scale > 0, e));
    return m->dev->ops->vec_total(m->dev, loss_sum, m->loss, n, e);
}

int model_forward(struct model *m, const struct model_batch *batch, double *loss_sum, struct err *e)
{
    int last = pass_unit(m->config.layers);

    m->acts = &m->slot[batch->slot];
    if (m->fp8)
        m->fp8->record = batch->grad_scale > 0;
    TRY(pass_trunk(m, m->b, m->t, -1, batch->drop, e));
    if (!m->part.heads)
        return 0;
    if (pass_tied(m)) /* what comes next is backward, if anything */
        TRY(pass_weights(m, 0, true, e));
    TRY(head(m, batch, loss_sum, e));
    if (pass_tied(m))
        TRY(pass_release(m, 0, e));
    return pass_release(m, last, e);
}

int model_extend(struct model *m, const int32_t *tokens, int64_t b, int64_t t, int64_t past, float *logits,
                 struct err *e)
{
    int64_t v = m->config.padded_vocab;
    const struct linear output = linear_output(m, b);
    size_t row = (size_t)m->config.hidden * dtype_size(m->dt);

    m->acts = m->slot;
    if (m->run.use != MODEL_GENERATE || b < 1 || b > m->b || t < 1 || past < 0 || past + t > m->t)
        return err_set(e, ERR_ARG, "%lld tokens behind %lld do not fit a cache of %lld", (long long)t,
                       (long long)past, (long long)m->t);
    TRY(pass_positions(m, b, t, past, e));
    TRY(device_put_later(m->dev, m->acts->tokens, tokens, (size_t)(b * t) * sizeof *tokens, e));
    TRY(pass_trunk(m, b, t, past, NULL, e));
    for (int64_t i = 0; i < b; i++) /* the last row of each sequence, packed into s_final */
        TRY(device_copy(m->dev, (char *)m->acts->s_final + (size_t)i * row,
                        (const char *)m->acts->ln_final + (size_t)((i + 1) * t - 1) * row, row, e));
    TRY(linear_forward(m, &output, m->logits, m->acts->s_final, e));
    if (m->dt == DTYPE_F32)
        return device_get(m->dev, logits, m->logits, (size_t)(b * v) * sizeof *logits, e);
    uint16_t *low = malloc((size_t)(b * v) * sizeof *low);
    if (!low)
        return err_set(e, ERR_NOMEM, "out of memory");
    int rc = device_get(m->dev, low, m->logits, (size_t)(b * v) * sizeof *low, e);
    for (int64_t i = 0; rc == 0 && i < b * v; i++)
        logits[i] = bf16_to(low[i]);
    free(low);
    return rc;
}
