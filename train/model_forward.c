/* The forward pass. */
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "train/branch.h"
#include "train/exchange.h"
#include "train/mtp.h"

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

int pass_norm(struct model *m, struct norm_fwd *p, int w, int b, struct err *e)
{
    p->eps = (float)m->config.norm_eps;
    p->gamma = pass_weight(m, w);
    p->beta = pass_weight(m, b);
    p->plus = m->config.norm_1p || w < 0;
    return (m->config.norm == NORM_RMS ? m->dev->ops->rmsnorm_fwd : m->dev->ops->layernorm_fwd)(m->dev, m->dt, p, e);
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

int pass_scale(struct model *m, void *x, double scale, int64_t n, struct err *e)
{
    return scale == 1 ? 0 : m->dev->ops->vec_scale(m->dev, m->dt, x, (float)scale, n, e);
}

/* Rows of the vocabulary that other ranks have come by the sum, and positions from the first of them. */
int pass_embed(struct model *m, const struct embedding *emb, void *to, const struct dropout *drop, struct err *e)
{
    const struct params *p = &m->dense.params;
    int64_t own = pass_own(m, emb->t), h = m->config.hidden;
    void *all = m->part.sequence ? m->full : to, *s;

    TRY(m->dev->ops->embedding_fwd(m->dev, m->dt, all, emb, pass_weight(m, p->word >= 0 ? p->word : p->output),
                                   pass_first(m) ? pass_weight(m, p->position) : NULL, e));
    TRY(pass_sum(m, &s, all, emb->t, e));
    TRY(pass_scale(m, s, m->config.embedding_scale, own * h, e));
    if (drop)
        return m->dev->ops->vec_dropout(m->dev, m->dt, to, s, own, h, drop, e);
    return s == to ? 0 : device_copy(m->dev, to, s, (size_t)(own * h) * dtype_size(m->dt), e);
}

/* Tokens to s1 of the first layer: what was looked up, or the norm of that, with dropout. */
static int embed(struct model *m, int64_t b, int64_t t, const struct model_dropout *md, struct err *e)
{
    const struct params *p = &m->dense.params;
    const struct norm_acts *a = &m->acts->embedding;
    struct embedding emb = pass_embedding(m, b * t);
    void *s = model_stream_in(m, (int)(m->acts - m->slot)), *x = a->s ? a->s : s;
    struct norm_fwd norm = {.t = pass_own(m, b * t), .c = m->config.hidden, .x = x, .y = s, .mean = a->mean, .rstd = a->rstd};
    struct dropout d;
    const struct dropout *drop = pass_dropout(m, md, 0, DROP_EMBEDDING, &d);

    if (!m->config.embedding_norm)
        return pass_embed(m, &emb, s, drop, e);
    TRY(pass_embed(m, &emb, x, NULL, e));
    TRY(pass_norm(m, &norm, p->embed_w, p->embed_b, e));
    return drop ? m->dev->ops->vec_dropout(m->dev, m->dt, s, s, norm.t, norm.c, drop, e) : 0;
}

/* Embeddings, all layers, final norm, as far as the part has them. */
static int pass_trunk(struct model *m, const struct pass *p, struct err *e)
{
    TRY(pass_weights(m, 0, false, e));
    if (m->part.embeds)
        TRY(embed(m, p->b, p->t, p->drop, e));
    TRY(pass_release(m, 0, e));
    for (int64_t i = 0; i < m->config.layers; i++) {
        double start = trace_begin(m->trace, "forward", m->part.first + i);

        TRY(pass_weights(m, pass_unit(i), false, e));
        if (i == 0)
            TRY(branch_start(m, 0, p, e));
        TRY(branch_begin(m, 2 * i, p, e));
        TRY(branch_join(m, 2 * i, p, e));
        TRY(branch_begin(m, 2 * i + 1, p, e));
        TRY(pass_weights(m, pass_unit(i + 1), false, e)); /* it ends with what comes next: a norm */
        TRY(branch_join(m, 2 * i + 1, p, e));
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
    return m->slot[slot].layers[0].norm[0].s;
}

void *model_stream_out(struct model *m, int slot)
{
    return m->slot[slot].final.s;
}

int pass_losses(struct model *m, const int32_t *targets, const float *scale, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    struct comm *ranks = m->part.tensor;
    size_t n = (size_t)(m->b * m->t);
    int64_t first = pass_shared(m) ? ranks->rank * m->config.padded_vocab : 0, here = m->config.vocab - first;
    struct xent x = {
        .t = (int64_t)n, .ld = m->config.padded_vocab, .first = first, .logits = m->head.logits, .target = targets,
        .scale = scale, .cap = (float)m->config.logit_cap,
        .z = (float)m->config.head_z_loss,
        .v = here < 0 ? 0 : here < m->config.padded_vocab ? here : m->config.padded_vocab,
    };
    struct comm_call most = {
        .kind = COMM_ALL_REDUCE, .send = m->head.max, .recv = m->head.max, .n = n, .type = COMM_F32, .op = COMM_MAX,
    };

    if (!pass_shared(m))
        return ops->xent(m->dev, m->dt, &x, m->head.loss, e);
    TRY(ops->xent_max(m->dev, m->dt, &x, m->head.max, e));
    TRY(exchange(m->dev, ranks, &most, e));
    TRY(ops->xent_sum(m->dev, m->dt, &x, m->head.max, m->head.sum, m->head.at, e));
    TRY(exchange_sum(m->dev, ranks, m->head.sum, n, COMM_F32, e));
    TRY(exchange_sum(m->dev, ranks, m->head.at, n, COMM_F32, e));
    return ops->xent_finish(m->dev, m->dt, &x, m->head.max, m->head.sum, m->head.at, m->head.loss, e);
}

/* m->head.scale becomes full of x: once a run, and when a batch ramps up. */
static int fill_scale(struct model *m, float x, struct err *e)
{
    size_t n = (size_t)(m->b * m->t);
    float *host;
    int rc;

    if (x == m->head.scaled)
        return 0;
    host = malloc(n * sizeof *host);
    if (!host)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        host[i] = x;
    rc = device_put(m->dev, m->head.scale, host, n * sizeof *host, e);
    m->head.scaled = rc < 0 ? 0 : x;
    free(host);
    return rc;
}

/* From where documents begin, (b, run.t), to the positions and starts of the tokens that are here. */
static int put_documents(struct model *m, struct model_acts *a, const struct model_batch *batch, struct err *e)
{
    int64_t n = m->b * m->t, half = m->t / 2;
    size_t bytes = (size_t)n * sizeof *batch->here;
    int32_t *position = batch->here, *start = batch->here + n;

    a->documents = a->longest = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = pass_position(m, i, m->t), seq = i / m->t, r = i % m->t;
        int32_t from = batch->starts[seq * m->run.t + at];

        position[i] = (int32_t)at - from;
        a->documents += position[i] == 0;
        a->longest = position[i] >= a->longest ? position[i] + 1 : a->longest;
        start[pass_ring(m) ? (r / half * m->b + seq) * half + r % half : i] = from;
    }
    if (a->positions)
        TRY(device_put_later(m->dev, a->positions, position, bytes, e));
    return a->starts ? device_put_later(m->dev, a->starts, start, bytes, e) : 0;
}

int model_take(struct model *m, const struct model_batch *batch, struct err *e)
{
    struct model_acts *a = &m->slot[batch->slot];
    size_t bytes = (size_t)(m->b * m->t) * sizeof *batch->tokens;

    if (model_looks_up(m))
        TRY(device_put_later(m->dev, a->tokens, batch->tokens, bytes, e));
    if (m->part.heads)
        TRY(device_put_later(m->dev, m->head.targets, batch->targets, bytes, e));
    for (int64_t k = 0; k < m->mtp.n && batch->further && batch->grad_scale > 0; k++)
        TRY(mtp_take(m, &m->mtp.depth[k], &batch->further[k], e));
    if (a->positions || a->starts)
        TRY(put_documents(m, a, batch, e));
    if (a->drop && batch->drop)
        TRY(device_put_later(m->dev, a->drop, &batch->drop->now, sizeof *a->drop, e));
    return m->part.heads && batch->grad_scale > 0 ? fill_scale(m, batch->grad_scale, e) : 0;
}

int pass_logits(struct model *m, const void *x, struct err *e)
{
    const struct linear output = linear_output(m, m->b * m->t);
    const void *all;

    TRY(pass_gather(m, &all, x, output.rows, e));
    TRY(linear_forward(m, &output, m->head.logits, all, e));
    return pass_scale(m, m->head.logits, m->config.logits_scale, output.rows * m->config.padded_vocab, e);
}

/* ln_final to logits and losses. */
static int head(struct model *m, const struct model_batch *batch, double *loss_sum, struct err *e)
{
    TRY(pass_logits(m, m->acts->final.y, e));
    TRY(pass_losses(m, m->head.targets, batch->grad_scale > 0 ? m->head.scale : NULL, e));
    return m->dev->ops->vec_total(m->dev, loss_sum, m->head.loss, m->b * m->t, e);
}

int model_forward(struct model *m, const struct model_batch *batch, double *loss_sum, struct err *e)
{
    int last = pass_unit(m->config.layers);

    m->acts = &m->slot[batch->slot];
    if (m->fp8)
        m->fp8->record = batch->grad_scale > 0;
    TRY(pass_trunk(m, &(struct pass){m->b, m->t, -1, batch->drop}, e));
    if (!m->part.heads)
        return 0;
    if (pass_tied(m)) /* what comes next is backward, if anything */
        TRY(pass_weights(m, 0, true, e));
    TRY(head(m, batch, loss_sum, e));
    if (pass_tied(m))
        TRY(pass_release(m, 0, e));
    return pass_release(m, last, e);
}

/* n of m->head.logits as they count, to the host. */
static int take_logits(struct model *m, int64_t n, float *logits, struct err *e)
{
    size_t bytes = (size_t)n * dtype_size(m->dt);
    uint16_t *low = m->dt == DTYPE_F32 ? NULL : malloc(bytes);
    int rc;

    if (m->dt != DTYPE_F32 && !low)
        return err_set(e, ERR_NOMEM, "out of memory");
    rc = device_get(m->dev, low ? (void *)low : logits, m->head.logits, bytes, e);
    for (int64_t i = 0; i < n && rc == 0; i++)
        logits[i] = xent_capped((float)m->config.logit_cap, low ? bf16_to(low[i]) : logits[i]);
    free(low);
    return rc;
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
    TRY(pass_trunk(m, &(struct pass){b, t, past, NULL}, e));
    for (int64_t i = 0; i < b; i++) /* the last row of each sequence, packed into s_final */
        TRY(device_copy(m->dev, (char *)m->acts->final.s + (size_t)i * row,
                        (const char *)m->acts->final.y + (size_t)((i + 1) * t - 1) * row, row, e));
    TRY(linear_forward(m, &output, m->head.logits, m->acts->final.s, e));
    TRY(pass_scale(m, m->head.logits, m->config.logits_scale, b * v, e));
    return take_logits(m, b * v, logits, e);
}
