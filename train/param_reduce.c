/* Gradients of a param buffer on their way to the sums over micro-batches and ranks. */
#include "train/param_buffer.h"

void param_reduce_begin(struct param_buffer *b, int64_t i, int64_t n)
{
    b->micro = i;
    b->micro_batches = n;
    b->overwrite = data_parallel_first(&b->sums, i) || b->shard_grads;
}

/* n elements of all copies of a unit's gradients at g, or of all units', become their sum in the first: a tree, as that of
 * comm.h, of which it is the lower part. */
static int fold(struct param_buffer *b, float *g, size_t n, int unit, struct err *e)
{
    int copies = param_buffer_copies(&b->conf);
    size_t step = param_copy_step(b, unit);

    for (int by = 1; by < copies; by *= 2)
        for (int i = 0; i + by < copies; i += 2 * by) {
            float *to = g + (size_t)i * step;

            TRY(b->dev->ops->vec_add(b->dev, DTYPE_F32, to, to, to + (size_t)by * step, (int64_t)n, e));
        }
    return 0;
}

/* ---- gradients are whole on each rank: buckets ---- */

/* Gradients of a micro-batch, elements at .. at + n - 1, go to the sum over micro-batches; after the last the copies are one. */
static int add_micro(struct param_buffer *b, size_t at, size_t n, struct err *e)
{
    bool first = param_buffer_by_turns(&b->conf), last = b->micro + 1 >= b->micro_batches;
    int64_t i = last ? b->micro_batches - 1 : b->micro;

    if (first)
        TRY(fold(b, b->grads + at, n, 0, e));
    for (int k = 0; k < (first ? 1 : param_buffer_copies(&b->conf)); k++)
        TRY(data_parallel_add(&b->sums, b->grads, (size_t)k * b->params.elements + at, n, i, b->micro_batches, e));
    return first || !last ? 0 : fold(b, b->grads + at, n, 0, e);
}

/* Bucket i, complete on this rank, sets out. */
static int start_bucket(struct param_buffer *b, int i, struct err *e)
{
    const struct bucketing *s = &b->buckets;
    struct comm *replicas = b->conf.replicas;
    size_t n = s->at[i + 1] - s->at[i], from = bucketing_from(s, i);
    uint16_t *wire = b->wire[i % COMM_UNDER_WAY];
    struct comm_call call = {
        .kind = s->ranks > 1 ? COMM_REDUCE_SCATTER : COMM_ALL_REDUCE, .send = b->grads + s->at[i], .recv = b->grads + from,
        .n = bucketing_share(s, i), .type = COMM_F32, .op = COMM_SUM,
    };

    TRY(add_micro(b, s->at[i], n, e));
    if (!replicas || replicas->size == 1)
        return 0;
    if (wire) {
        TRY(b->dev->ops->vec_cast(b->dev, wire, DTYPE_BF16, b->grads + s->at[i], DTYPE_F32, (int64_t)n, e));
        call.send = wire;
        call.recv = wire + (from - s->at[i]);
        call.type = COMM_BF16;
    }
    return exchange_start(&b->calls[i], b->dev, replicas, &call, e);
}

static int finish_bucket(struct param_buffer *b, int i, struct err *e)
{
    const struct bucketing *s = &b->buckets;
    const uint16_t *wire = b->wire[i % COMM_UNDER_WAY];
    size_t from = bucketing_from(s, i);
    bool comes = b->calls[i].running;

    TRY(exchange_wait(&b->calls[i], e));
    if (!comes || !wire)
        return 0;
    return b->dev->ops->vec_cast(b->dev, b->grads + from, DTYPE_F32, wire + (from - s->at[i]), DTYPE_BF16,
                                 (int64_t)bucketing_share(s, i), e);
}

/* Starts with the buckets all of whose gradients are at element `at` or behind it, behind the last backward or during it. */
static int reduce_from(struct param_buffer *b, size_t at, struct err *e)
{
    int n = b->buckets.n;

    for (; b->reduced < n && b->buckets.at[n - 1 - b->reduced] >= at; b->reduced++) {
        int i = n - 1 - b->reduced;

        if (i + COMM_UNDER_WAY < n)
            TRY(finish_bucket(b, i + COMM_UNDER_WAY, e));
        if (b->buckets.at[i] < b->buckets.at[i + 1]) /* there may be no memory then */
            TRY(start_bucket(b, i, e));
    }
    return 0;
}

/* ---- each rank keeps a shard of them: units ---- */

/* The sum over ranks has come: this rank's shard of it is added to what it keeps. */
static int finish_unit(struct param_buffer *b, struct comm_buffer *g, struct err *e)
{
    const struct bucketing *s = &b->buckets;
    const uint16_t *wire = b->wire[g - b->reduce];
    size_t n, here;
    float *from, *to;
    int unit = g->unit;

    if (unit < 0)
        return 0;
    TRY(exchange_wait(&g->call, e));
    n = bucketing_share(s, unit);
    here = bucketing_here(s, unit);
    from = (float *)g->p + (size_t)s->rank * n;
    to = b->shard_grads + here;
    if (wire)
        TRY(b->dev->ops->vec_cast(b->dev, from, DTYPE_F32, wire + (size_t)s->rank * n, DTYPE_BF16, (int64_t)n, e));
    g->unit = -1;
    b->unit[unit].grads = NULL;
    if (!data_parallel_first(&b->sums, g->micro))
        return b->dev->ops->vec_add(b->dev, DTYPE_F32, to, to, from, (int64_t)n, e);
    TRY(device_copy(b->dev, to, from, n * sizeof *to, e));
    return data_parallel_add(&b->sums, b->shard_grads, here, n, g->micro, g->micro_batches, e);
}

/* A unit's gradients are to be written to its communication buffer. */
static int open_unit(struct param_buffer *b, int unit, struct err *e)
{
    struct comm_buffer *g = &b->reduce[param_buffer_turn(b, unit)];

    if (param_unit_empty(b, unit))
        return 0;
    TRY(finish_unit(b, g, e));
    g->unit = unit;
    b->unit[unit].grads = g->p;
    return 0;
}

/* They were: the sum over ranks sets out. */
static int start_unit(struct param_buffer *b, int unit, struct err *e)
{
    struct comm_buffer *g = &b->reduce[param_buffer_turn(b, unit)];
    const struct bucketing *s = &b->buckets;
    size_t n = bucketing_share(s, unit);
    uint16_t *wire = b->wire[g - b->reduce];
    struct comm_call call = {
        .kind = COMM_REDUCE_SCATTER, .send = g->p, .n = n, .type = COMM_F32, .op = COMM_SUM,
    };

    if (param_unit_empty(b, unit)) /* g has no memory then */
        return 0;
    call.recv = (float *)g->p + (size_t)s->rank * n;
    TRY(fold(b, g->p, (size_t)s->ranks * n, unit, e));
    g->micro = b->micro;
    g->micro_batches = b->micro_batches;
    if (wire) {
        TRY(b->dev->ops->vec_cast(b->dev, wire, DTYPE_BF16, g->p, DTYPE_F32, (int64_t)n * s->ranks, e));
        call.send = wire;
        call.recv = wire + (size_t)s->rank * n;
        call.type = COMM_BF16;
    }
    TRY(exchange_start(&g->call, b->dev, b->conf.replicas, &call, e));
    return b->conf.overlap_reduce ? 0 : finish_unit(b, g, e);
}

/* ---- either ---- */

int param_reduce_open(struct param_buffer *b, int unit, struct err *e)
{
    const struct params *p = &b->params;

    if (!b->trained)
        return 0;
    if (b->shard_grads)
        TRY(open_unit(b, unit, e));
    for (int i = 0; b->overwrite && i < p->n; i++) /* all but weights of matrix products are only ever added to */
        if (p->v[i].unit == unit && (p->v[i].dims == 1 || p->v[i].table))
            for (int k = 0; k < param_buffer_copies(&b->conf); k++)
                TRY(device_zero(b->dev, param_grad_copy(b, i, k), p->v[i].n * sizeof(float), e));
    return 0;
}

int param_reduce_done(struct param_buffer *b, int unit, struct err *e)
{
    if (!b->trained)
        return 0;
    if (b->shard_grads)
        return start_unit(b, unit, e);
    return b->conf.overlap_reduce && b->micro + 1 == b->micro_batches ? reduce_from(b, b->unit[unit].at, e) : 0;
}

int param_reduce_add(struct param_buffer *b, struct err *e)
{
    if (!b->trained || b->shard_grads || b->micro + 1 == b->micro_batches)
        return 0;
    return add_micro(b, 0, b->params.elements, e);
}

int param_reduce_finish(struct param_buffer *b, struct err *e)
{
    for (int i = 0; i < COMM_BUFFERS && b->shard_grads; i++)
        TRY(finish_unit(b, &b->reduce[i], e));
    if (b->trained && !b->shard_grads) {
        TRY(reduce_from(b, 0, e));
        for (int i = b->buckets.n - 1; i >= 0; i--)
            TRY(finish_bucket(b, i, e));
        b->reduced = 0;
    }
    b->micro = b->micro_batches = 0;
    return 0;
}

/* ---- a parameter that two units have ---- */

int param_reduce_whole(struct param_buffer *b, int i, float **whole, struct err *e)
{
    const struct param *p = &b->params.v[i];
    struct comm_buffer *g = &b->reduce[param_buffer_turn(b, p->unit)];
    const struct comm_call call = {
        .kind = COMM_ALL_GATHER, .send = b->shard_grads + bucketing_here(&b->buckets, p->unit), .recv = g->p,
        .n = bucketing_share(&b->buckets, p->unit), .type = COMM_F32,
    };

    *whole = (float *)g->p + (p->at - b->unit[p->unit].at);
    return exchange(b->dev, b->conf.replicas, &call, e);
}

int param_reduce_keep(struct param_buffer *b, int i, const float *whole, bool add, struct err *e)
{
    const struct param *p = &b->params.v[i];
    struct shard_range r = {.bucket = p->unit, .next = i};

    if (!bucketing_next(&b->buckets, &b->params, &r) || r.param != p)
        return 0;
    whole += r.at - p->at;
    if (!add)
        return device_copy(b->dev, b->shard_grads + r.here, whole, r.n * sizeof *whole, e);
    return b->dev->ops->vec_add(b->dev, DTYPE_F32, b->shard_grads + r.here, b->shard_grads + r.here, whole, (int64_t)r.n, e);
}
