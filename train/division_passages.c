#include "train/division_passages.h"

/* ---- weights ---- */

static bool is_empty(const struct division *d, int section)
{
    return d->store->section[section].at == d->store->section[section + 1].at;
}

/* A section sets out for its buffer, which no pass holds. */
static int weights_start(struct division *d, int section, struct err *e)
{
    struct store *store = d->store;
    struct passage *w = &d->weight[store_passage(store, section)];
    const struct shards *s = &d->store->shards;
    size_t n = shards_share(s, section);
    const float *own = d->share ? NULL : d->master + shards_here(s, section);
    struct comm_call call = {.kind = COMM_ALL_GATHER, .send = own, .recv = w->p, .n = n, .type = exchange_type(store->dt)};

    TRY(exchange_wait(&w->call, e));
    if (w->section >= 0)
        store->section[w->section].weights = NULL;
    w->section = section;
    if (d->share) {
        call.send = (char *)d->share + shards_here(s, section) * dtype_size(store->dt);
    } else if (store->dt == DTYPE_BF16) {
        uint16_t *low = (uint16_t *)w->p + (size_t)s->rank * n;

        call.send = low;
        TRY(d->dev->ops->vec_cast(d->dev, low, DTYPE_BF16, own, DTYPE_F32, (int64_t)n, e));
    }
    return exchange_start(&w->call, d->dev, store->conf.replicas, &call, e);
}

/* The same, if there is such a section, it is not there yet, and its buffer is free. */
static int weights_ahead(struct division *d, int section, struct err *e)
{
    const struct passage *w;

    if (!d->overlap_gather || section < 0 || section >= d->store->shards.n || is_empty(d, section))
        return 0;
    w = &d->weight[store_passage(d->store, section)];
    return w->held || w->section == section ? 0 : weights_start(d, section, e);
}

int passages_read(struct division *d, int section, bool back, struct err *e)
{
    struct passage *w = &d->weight[store_passage(d->store, section)];

    d->way = back ? -1 : 1;
    if (!is_empty(d, section)) {
        if (w->section != section && w->held)
            return err_set(e, ERR_LIMIT, "section %d of weights is read while %d is", section, w->section);
        if (w->section != section)
            TRY(weights_start(d, section, e));
        TRY(exchange_wait(&w->call, e));
        w->held = true;
        d->store->section[section].weights = w->p;
    }
    return back && section == 1 ? 0 : weights_ahead(d, section + d->way, e); /* backward does not read the embedding */
}

int passages_left(struct division *d, int section, struct err *e)
{
    struct passage *w = &d->weight[store_passage(d->store, section)];
    int next = section + 2 * d->way;

    if (w->section == section)
        w->held = false;
    return d->way < 0 && next < 1 ? 0 : weights_ahead(d, next, e);
}

int passages_settle(struct division *d, struct err *e)
{
    for (int i = 0; i < STORE_PASSAGES; i++)
        TRY(exchange_wait(&d->weight[i].call, e));
    return 0;
}

int passages_forget(struct division *d, bool begin, struct err *e)
{
    TRY(passages_settle(d, e));
    for (int i = 0; i < STORE_PASSAGES; i++) {
        if (d->weight[i].section >= 0)
            d->store->section[d->weight[i].section].weights = NULL;
        d->weight[i].section = -1;
        d->weight[i].held = false;
    }
    for (int i = 0; i < 2 && begin; i++)
        TRY(weights_ahead(d, i, e));
    return 0;
}

/* ---- gradients ---- */

/* The sum over ranks has come: this rank's share of it is added to what it keeps. */
static int grads_finish(struct division *d, struct passage *g, struct err *e)
{
    const struct shards *s = &d->store->shards;
    const uint16_t *wire = d->wire[g - d->grad];
    size_t n, here;
    float *from, *to;
    int section = g->section;

    if (section < 0)
        return 0;
    TRY(exchange_wait(&g->call, e));
    n = shards_share(s, section);
    here = shards_here(s, section);
    from = (float *)g->p + (size_t)s->rank * n;
    to = d->grads + here;
    if (wire)
        TRY(d->dev->ops->vec_cast(d->dev, from, DTYPE_F32, wire + (size_t)s->rank * n, DTYPE_BF16, (int64_t)n, e));
    g->section = -1;
    d->store->section[section].grads = NULL;
    if (!data_parallel_first(&d->sums, g->micro))
        return d->dev->ops->vec_add(d->dev, DTYPE_F32, to, to, from, (int64_t)n, e);
    TRY(device_copy(d->dev, to, from, n * sizeof *to, e));
    return data_parallel_add(&d->sums, d->grads, here, n, g->micro, g->micro_batches, e);
}

int passages_write(struct division *d, int section, struct err *e)
{
    struct passage *g = &d->grad[store_passage(d->store, section)];

    if (is_empty(d, section))
        return 0;
    TRY(grads_finish(d, g, e));
    g->section = section;
    d->store->section[section].grads = g->p;
    return 0;
}

int passages_wrote(struct division *d, int section, int64_t i, int64_t n, struct err *e)
{
    struct passage *g = &d->grad[store_passage(d->store, section)];
    const struct shards *s = &d->store->shards;
    size_t share = shards_share(s, section);
    uint16_t *wire = d->wire[g - d->grad];
    struct comm_call call = {
        .kind = COMM_REDUCE_SCATTER, .send = g->p, .recv = (float *)g->p + (size_t)s->rank * share, .n = share,
        .type = COMM_F32, .op = COMM_SUM,
    };

    if (is_empty(d, section))
        return 0;
    g->micro = i;
    g->micro_batches = n;
    if (wire) {
        TRY(d->dev->ops->vec_cast(d->dev, wire, DTYPE_BF16, g->p, DTYPE_F32, (int64_t)share * s->ranks, e));
        call.send = wire;
        call.recv = wire + (size_t)s->rank * share;
        call.type = COMM_BF16;
    }
    TRY(exchange_start(&g->call, d->dev, d->store->conf.replicas, &call, e));
    return d->overlap_reduce ? 0 : grads_finish(d, g, e);
}

int passages_reduce(struct division *d, struct err *e)
{
    for (int i = 0; i < STORE_PASSAGES; i++)
        TRY(grads_finish(d, &d->grad[i], e));
    return 0;
}
