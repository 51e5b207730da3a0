/* Weights of a param buffer on their way to all ranks that compute with them. */
#include "train/param_buffer.h"

/* Whether they are divided: each unit is gathered before a pass reads it. */
static bool divided(const struct param_buffer *b)
{
    return param_buffer_shares(&b->conf, SHARD_OPTIM_GRADS_PARAMS);
}

int param_buffer_weights_changed(struct param_buffer *b, struct err *e)
{
    if (!b->low)
        return 0;
    return b->dev->ops->vec_cast(b->dev, b->low, DTYPE_BF16, b->weights, DTYPE_F32, (int64_t)b->params.elements, e);
}

/* ---- all ranks have all of them ---- */

/* A bucket sets out from the ranks that keep shards of it. */
static int start_bucket(struct param_buffer *b, int i, struct err *e)
{
    const struct bucketing *s = &b->buckets;
    void *flat = b->low ? (void *)b->low : b->weights;
    size_t size = dtype_size(b->dt);
    struct comm_call call = {
        .kind = COMM_ALL_GATHER, .send = (char *)flat + bucketing_from(s, i) * size, .recv = (char *)flat + s->at[i] * size,
        .n = bucketing_share(s, i), .type = exchange_type(b->dt),
    };

    return call.n ? exchange_start(&b->calls[i], b->dev, b->conf.replicas, &call, e) : 0;
}

/* Weights before element `at` have come, and the next buckets are under way. */
static int gather_until(struct param_buffer *b, size_t at, struct err *e)
{
    const struct bucketing *s = &b->buckets;

    for (;;) {
        for (; b->asked < s->n && b->asked < b->gathered + COMM_UNDER_WAY; b->asked++)
            TRY(start_bucket(b, b->asked, e));
        if (b->gathered == s->n || s->at[b->gathered] >= at)
            return 0;
        TRY(exchange_wait(&b->calls[b->gathered++], e));
    }
}

/* ---- each rank has its shard, and units for a while ---- */

/* A unit sets out for its communication buffer, which no pass holds. */
static int start_unit(struct param_buffer *b, int unit, struct err *e)
{
    struct comm_buffer *g = &b->gather[param_buffer_turn(b, unit)];
    const struct bucketing *s = &b->buckets;
    size_t n = bucketing_share(s, unit);
    const float *main = b->shard_sent ? NULL : b->shard_main + bucketing_here(s, unit);
    struct comm_call call = {.kind = COMM_ALL_GATHER, .send = main, .recv = g->p, .n = n, .type = exchange_type(b->dt)};

    TRY(exchange_wait(&g->call, e));
    if (g->unit >= 0)
        b->unit[g->unit].weights = NULL;
    g->unit = unit;
    if (b->shard_sent) {
        call.send = (const char *)b->shard_sent + bucketing_here(s, unit) * dtype_size(b->dt);
    } else if (b->dt == DTYPE_BF16) {
        uint16_t *low = (uint16_t *)g->p + (size_t)s->rank * n;

        call.send = low;
        TRY(b->dev->ops->vec_cast(b->dev, low, DTYPE_BF16, main, DTYPE_F32, (int64_t)n, e));
    }
    return exchange_start(&g->call, b->dev, b->conf.replicas, &call, e);
}

/* The same, if there is such a unit, it is not there yet, and its buffer is free. */
static int start_ahead(struct param_buffer *b, int unit, struct err *e)
{
    const struct comm_buffer *g;

    if (!b->conf.overlap_gather || unit < 0 || unit >= b->buckets.n || param_unit_empty(b, unit))
        return 0;
    g = &b->gather[param_buffer_turn(b, unit)];
    return g->held || g->unit == unit ? 0 : start_unit(b, unit, e);
}

static int gather_unit(struct param_buffer *b, int unit, bool back, struct err *e)
{
    struct comm_buffer *g = &b->gather[param_buffer_turn(b, unit)];

    b->way = back ? -1 : 1;
    if (!param_unit_empty(b, unit)) {
        if (g->unit != unit && g->held)
            return err_set(e, ERR_LIMIT, "unit %d of weights is read while %d is", unit, g->unit);
        if (g->unit != unit)
            TRY(start_unit(b, unit, e));
        TRY(exchange_wait(&g->call, e));
        g->held = true;
        b->unit[unit].weights = g->p;
    }
    return back && unit == 1 ? 0 : start_ahead(b, unit + b->way, e); /* backward reads the embedding's norm at most */
}

static int settle_units(struct param_buffer *b, struct err *e)
{
    for (int i = 0; i < COMM_BUFFERS; i++)
        TRY(exchange_wait(&b->gather[i].call, e));
    return 0;
}

/* What is in the buffers is old. */
static int forget_units(struct param_buffer *b, bool begin, struct err *e)
{
    TRY(settle_units(b, e));
    for (int i = 0; i < COMM_BUFFERS; i++) {
        if (b->gather[i].unit >= 0)
            b->unit[b->gather[i].unit].weights = NULL;
        b->gather[i].unit = -1;
        b->gather[i].held = false;
    }
    for (int i = 0; i < 2 && begin; i++)
        TRY(start_ahead(b, i, e));
    return 0;
}

/* ---- either ---- */

int param_gather(struct param_buffer *b, int unit, bool back, struct err *e)
{
    return divided(b) ? gather_unit(b, unit, back, e) : gather_until(b, b->unit[unit + 1].at, e);
}

int param_release(struct param_buffer *b, int unit, struct err *e)
{
    struct comm_buffer *g = &b->gather[param_buffer_turn(b, unit)];
    int next = unit + 2 * b->way;

    if (!divided(b))
        return 0;
    if (g->unit == unit)
        g->held = false;
    return b->way < 0 && next < 1 ? 0 : start_ahead(b, next, e);
}

int param_gather_again(struct param_buffer *b, bool later, struct err *e)
{
    if (b->buckets.ranks == 1)
        return 0;
    if (divided(b))
        return forget_units(b, later, e);
    b->asked = b->gathered = 0;
    return gather_until(b, later ? 0 : SIZE_MAX, e);
}

int param_gather_settle(struct param_buffer *b, struct err *e)
{
    return divided(b) ? settle_units(b, e) : gather_until(b, SIZE_MAX, e);
}
