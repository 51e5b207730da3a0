/* Attention over sequences that context ranks share: ring attention (arXiv:2310.01889).
 *
 * A sequence is cut in 2 N equal parts, of which rank r of N has part r and part 2 N - 1 - r, its two
 * halves: so all ranks have as many pairs of a query and a key that it sees.  Queries stay; keys and
 * values go around, to the next rank while they are computed with, so that in step s a rank has
 * those of rank r - s.  Their gradients follow them and are home after N steps.
 */
#include "train/exchange.h"
#include "train/module.h"

int64_t pass_half_at(const struct model *m, int rank, int half)
{
    return (half ? 2 * m->part.context->size - 1 - rank : rank) * (m->t / 2);
}

/* One message to the next rank and one from the rank before. */
struct swap {
    struct exchange_call out, in;
};

static int swap_start(struct model *m, struct swap *s, const void *out, void *in, enum comm_type type, struct err *e)
{
    struct comm *c = m->part.context;
    size_t n = (size_t)(m->b * m->t * 2 * model_kv_width(&m->config));
    struct comm_call send = {.kind = COMM_SEND, .send = out, .n = n, .type = type, .peer = (c->rank + 1) % c->size};
    struct comm_call recv = {.kind = COMM_RECV, .recv = in, .n = n, .type = type, .peer = (c->rank + c->size - 1) % c->size};

    TRY(exchange_start(&s->in, m->dev, c, &recv, e));
    TRY(exchange_start(&s->out, m->dev, c, &send, e));
    return exchange_poke(&s->out, e);
}

static int swap_wait(struct swap *s, struct err *e)
{
    TRY(exchange_wait(&s->in, e));
    return exchange_wait(&s->out, e);
}

/* The keys and values of this rank, packed to go around. */
static int pack(struct model *m, const struct attention *at, struct err *e)
{
    size_t w = dtype_size(m->dt), kv = (size_t)model_kv_width(&m->config) * w, n = (size_t)(m->b * m->t);

    TRY(device_copy_rows(m->dev, m->ring.kv[0], 2 * kv, at->k.p, (size_t)at->k.row * w, kv, n, e));
    return device_copy_rows(m->dev, (char *)m->ring.kv[0] + kv, 2 * kv, at->v.p, (size_t)at->v.row * w, kv, n, e);
}

/* v of rows from the given one on, in elements of size w. */
static struct attention_view rows_from(struct attention_view v, int64_t row, size_t w)
{
    v.p = (char *)v.p + (size_t)(row * v.row) * w;
    return v;
}

/* One half (0 or 1) of the queries here with one of the keys from rank `from`, which are in kv. */
static struct attention block_of(const struct model *m, const struct attention *whole, int query, int from, int key, void *kv)
{
    struct attention at = *whole;
    int64_t half = m->t / 2, width = model_kv_width(&m->config);
    size_t w = dtype_size(m->dt);
    struct attention_view k = {kv, m->t * 2 * width, 2 * width}, v = {pass_at(m, kv, width), k.batch, k.row};

    at.t = at.t_kv = half;
    at.q = rows_from(at.q, query * half, w);
    at.k = rows_from(k, key * half, w);
    at.v = rows_from(v, key * half, w);
    at.lse += query * m->b * m->config.heads * half;
    at.all_t = m->run.t;
    at.first_query = pass_half_at(m, m->part.context->rank, query);
    at.first_key = pass_half_at(m, from, key);
    if (at.start)
        at.start += query * m->b * half;
    at.full = at.first_key < at.first_query;
    at.block = ATTENTION_FURTHER;
    return at;
}

/* Whether a half of the queries here sees one of the keys of rank `from`. */
static bool sees(const struct model *m, int query, int from, int key)
{
    return pass_half_at(m, from, key) <= pass_half_at(m, m->part.context->rank, query);
}

/* The rank whose keys are here in a step. */
static int rank_of(const struct model *m, int step)
{
    const struct comm *c = m->part.context;

    return (c->rank + c->size - step) % c->size;
}

/* Starts to hand the keys and values of a step on, if there is a next one. */
static int hand_on(struct model *m, int step, struct swap *s, struct err *e)
{
    *s = (struct swap){0};
    if (step + 1 == m->part.context->size)
        return 0;
    return swap_start(m, s, m->ring.kv[step % 2], m->ring.kv[(step + 1) % 2], exchange_type(m->dt), e);
}

int ring_forward(struct model *m, int64_t layer, const struct dropout *drop, struct err *e)
{
    struct attention whole = attention_of(m, layer, m->b, m->t);
    int64_t half = m->t / 2;
    void *att = whole.o.p;
    struct swap kv;

    whole.drop = drop;
    if (m->ring.sum)
        whole.o.p = m->ring.sum;
    TRY(pack(m, &whole, e));
    for (int step = 0; step < m->part.context->size; step++) {
        int from = rank_of(m, step);

        TRY(hand_on(m, step, &kv, e));
        for (int i = 0; i < 4; i++) {
            bool own_first = step == 0 && attention_hides(&whole); /* of the other half, that may hide all keys */
            int query = i / 2, key = own_first ? query ^ i % 2 : i % 2;
            struct attention at = block_of(m, &whole, query, from, key, m->ring.kv[step % 2]);

            if (!sees(m, query, from, key) || !attention_any(&at))
                continue;
            at.o = rows_from(at.o, query * half, sizeof(float));
            if (step == 0 && i % 2 == 0)
                at.block = ATTENTION_FIRST;
            TRY(m->dev->ops->attention_fwd(m->dev, m->dt, &at, e));
        }
        TRY(swap_wait(&kv, e));
    }
    if (!m->ring.sum)
        return 0;
    return m->dev->ops->vec_cast(m->dev, att, m->dt, m->ring.sum, DTYPE_F32, m->b * m->t * model_q_width(&m->config), e);
}

/* The gradients of a step: of the queries to dq, of the keys and values from rank `from` to dkv. */
static int block_back(struct model *m, int64_t layer, const struct attention *whole, int step, struct attention_view dq,
                      float *dkv, struct err *e)
{
    int64_t half = m->t / 2, q = model_q_width(&m->config), width = model_kv_width(&m->config);
    struct attention_view dk = {dkv, m->t * 2 * width, 2 * width}, dv = {dkv + width, dk.batch, dk.row};
    struct attention_view dout = {m->back.dln, m->t * q, q};
    size_t w = dtype_size(m->dt);
    int from = rank_of(m, step);

    for (int i = 0; i < 4; i++) {
        int query = i / 2, key = i % 2;
        struct attention at = block_of(m, whole, query, from, key, m->ring.kv[step % 2]);

        if (!sees(m, query, from, key) || !attention_any(&at))
            continue;
        at.o = rows_from(at.o, query * half, w);
        if (step == 0 && query == key) /* once for each of the queries */
            at.dsink = pass_grad(m, pass_param(m, layer, SOFTMAX_OFFSET));
        TRY(m->dev->ops->attention_bwd(m->dev, m->dt, &at, rows_from(dout, query * half, w),
                                       rows_from(dq, query * half, sizeof(float)), rows_from(dk, key * half, sizeof(float)),
                                       rows_from(dv, key * half, sizeof(float)), e));
    }
    return 0;
}

int ring_backward(struct model *m, int64_t layer, const struct dropout *drop, struct err *e)
{
    struct attention whole = attention_of(m, layer, m->b, m->t);
    int64_t n = m->b * m->t, q = model_q_width(&m->config), kv = 2 * model_kv_width(&m->config);
    int64_t row = model_qkv_width(&m->config);
    float *sum = m->ring.sum ? m->ring.sum : m->back.dwide, *came = m->ring.grad[2];
    struct attention_view dq = {sum, m->t * row, row};
    struct swap values, grads = {0};

    whole.drop = drop;
    TRY(device_zero(m->dev, sum, (size_t)(n * row) * sizeof *sum, e));
    TRY(pack(m, &whole, e));
    for (int step = 0; step < m->part.context->size; step++) {
        float *own = m->ring.grad[step % 2];

        TRY(hand_on(m, step, &values, e));
        TRY(device_zero(m->dev, own, (size_t)(n * kv) * sizeof *own, e));
        TRY(block_back(m, layer, &whole, step, dq, own, e));
        TRY(swap_wait(&values, e));
        TRY(swap_wait(&grads, e));
        if (step)
            TRY(m->dev->ops->vec_add(m->dev, DTYPE_F32, own, came, own, n * kv, e));
        TRY(swap_start(m, &grads, own, came, COMM_F32, e));
    }
    TRY(swap_wait(&grads, e));
    TRY(device_copy_rows(m->dev, sum + q, (size_t)row * sizeof *sum, came, (size_t)kv * sizeof *sum, (size_t)kv * sizeof *sum,
                         (size_t)n, e));
    return m->ring.sum ? m->dev->ops->vec_cast(m->dev, m->back.dwide, m->dt, m->ring.sum, DTYPE_F32, n * row, e) : 0;
}
