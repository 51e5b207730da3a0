#include "train/division.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "train/division_host.h"
#include "train/division_passages.h"

enum { UNDER_WAY = 2 };

/* ---- memory ---- */

static size_t blocks_of(size_t elements, size_t unit)
{
    return unit ? (elements + unit - 1) / unit : 1;
}

/* Whether the fp32 weights of the share stand apart from the store. */
static bool has_master(const struct store_memory *m, const struct store_conf *c)
{
    return (m->weights == 0 || c->offload) && !c->bf16_alone;
}

/* Bytes of the weights of the share as they are sent, where they cannot be made from the fp32 ones. */
static size_t sent_bytes(const struct store_memory *m, const struct store_conf *c, enum dtype dt)
{
    return (c->offload || c->bf16_alone) && store_shares(c, SHARD_OPTIM_GRADS_PARAMS) ?
           m->elements / (size_t)store_ranks(c) * dtype_size(dt) : 0;
}

/* All passages. */
static size_t passing(const struct store_memory *m)
{
    size_t n = 0;

    for (int i = 0; i < STORE_PASSAGES; i++)
        n += m->passage[i];
    return n;
}

/* Elements of the i-th buffer of bf16 gradients. */
static size_t wire_of(const struct store_memory *m, const struct store_conf *c, const struct division_conf *how, int i)
{
    if (!how->reduce_bf16 || !c->replicas || c->replicas->size == 1)
        return 0;
    return store_shares(c, SHARD_OPTIM_GRADS) ? m->passage[i] : i < UNDER_WAY ? m->bucket : 0;
}

struct division_memory division_plan(const struct store_memory *m, const struct store_conf *c, enum dtype dt,
                                     const struct division_conf *how)
{
    size_t own = m->elements / (size_t)store_ranks(c) * sizeof(float), levels = 0;
    struct division_memory d = {
        .weights = sent_bytes(m, c, dt), .optimizer = 2 * blocks_of(m->elements, c->unit) * sizeof(double),
    };

    if (c->offload)
        d.host = own * 3 + host_stage_bytes();
    else
        d.optimizer += own * (has_master(m, c) ? 3 : 2);
    if (how->tree)
        levels = (size_t)data_parallel_levels(how->micro_batches);
    if (store_shares(c, SHARD_OPTIM_GRADS))
        d.grads = passing(m) * sizeof(float) + own * (1 + levels);
    else
        d.grads = m->grads * levels;
    if (store_shares(c, SHARD_OPTIM_GRADS_PARAMS))
        d.weights += passing(m) * dtype_size(dt);
    for (int i = 0; i < STORE_PASSAGES; i++)
        d.grads += wire_of(m, c, how, i) * sizeof(uint16_t);
    return d;
}

static int alloc_zeroed(struct device *dev, enum memory_kind kind, void **p, size_t bytes, struct err *e)
{
    TRY(device_alloc_as(dev, kind, p, bytes, e));
    return device_zero(dev, *p, bytes, e);
}

/* Where the optimizer's state is. */
static struct device *state_device(const struct division *d)
{
    return d->host ? d->host : d->dev;
}

static int open_state(struct division *d, struct err *e)
{
    const struct store *s = d->store;
    size_t bytes = shards_own(&s->shards) * sizeof(float), sent = sent_bytes(&s->memory, &s->conf, s->dt);
    struct device *dev = state_device(d);

    TRY(alloc_zeroed(dev, MEMORY_OPTIMIZER, (void **)&d->exp_avg, bytes, e));
    TRY(alloc_zeroed(dev, MEMORY_OPTIMIZER, (void **)&d->exp_avg_sq, bytes, e));
    if (has_master(&s->memory, &s->conf))
        TRY(alloc_zeroed(dev, MEMORY_OPTIMIZER, (void **)&d->master, bytes, e));
    if (store_shares(&s->conf, SHARD_OPTIM_GRADS))
        TRY(alloc_zeroed(d->dev, MEMORY_GRADIENTS, (void **)&d->grads, bytes, e));
    if (sent)
        TRY(alloc_zeroed(d->dev, MEMORY_WEIGHTS, &d->share, sent, e));
    return d->host ? host_open(d, e) : 0;
}

/* What of the store has no slab. */
static int open_passages(struct division *d, struct err *e)
{
    const struct store *s = d->store;

    for (int i = 0; i < STORE_PASSAGES; i++) {
        size_t n = s->memory.passage[i];

        d->weight[i].section = d->grad[i].section = -1;
        if (n && store_shares(&s->conf, SHARD_OPTIM_GRADS))
            TRY(alloc_zeroed(d->dev, MEMORY_GRADIENTS, &d->grad[i].p, n * sizeof(float), e));
        if (n && store_shares(&s->conf, SHARD_OPTIM_GRADS_PARAMS))
            TRY(alloc_zeroed(d->dev, MEMORY_WEIGHTS, &d->weight[i].p, n * dtype_size(s->dt), e));
    }
    return 0;
}

int division_open(struct division *d, struct store *store, const struct division_conf *how, struct err *e)
{
    const struct store_conf *c = &store->conf;
    bool passes = store_shares(c, SHARD_OPTIM_GRADS);

    *d = (struct division){
        .store = store, .dev = store->dev, .overlap_reduce = how->overlap_reduce, .overlap_gather = how->overlap_gather,
        .host = c->offload ? how->host : NULL,
    };
    d->calls = calloc((size_t)d->store->shards.n, sizeof *d->calls);
    d->asked = d->gathered = d->store->shards.n;
    if (!d->calls)
        return err_set(e, ERR_NOMEM, "out of memory");
    TRY(data_parallel_open(&d->sums, d->dev, passes ? shards_own(&d->store->shards) : store->params.elements, how->micro_batches,
                           how->tree, e));
    TRY(open_state(d, e));
    TRY(open_passages(d, e));
    for (int i = 0; i < STORE_PASSAGES; i++) {
        size_t n = wire_of(&store->memory, c, how, i);

        if (n)
            TRY(alloc_zeroed(d->dev, MEMORY_GRADIENTS, (void **)&d->wire[i], n * sizeof(uint16_t), e));
    }
    /* The padding of weights is gathered too. */
    if (store->low)
        TRY(device_zero(d->dev, store->low, store->memory.low, e));
    return store->weights ? device_zero(d->dev, store->weights, store->memory.weights, e) : 0;
}

void division_close(struct division *d)
{
    for (int i = 0; d->dev && i < STORE_PASSAGES; i++) {
        device_free(d->dev, d->weight[i].p);
        device_free(d->dev, d->grad[i].p);
        device_free(d->dev, d->wire[i]);
    }
    if (d->dev) {
        device_free(state_device(d), d->exp_avg);
        device_free(state_device(d), d->exp_avg_sq);
        device_free(state_device(d), d->master);
        device_free(d->dev, d->grads);
        device_free(d->dev, d->share);
    }
    if (d->host)
        host_close(d);
    data_parallel_close(&d->sums);
    free(d->calls);
    *d = (struct division){0};
}

/* ---- weights ---- */

/* The fp32 weights of this rank's share of bucket i. */
static float *own_weights(const struct division *d, int i)
{
    return d->master ? d->master + shards_here(&d->store->shards, i) : d->store->weights + shards_from(&d->store->shards, i);
}

/* The bf16 ones of its share, from element `here` of it or `at` of the slab on. */
static uint16_t *own_low(const struct division *d, size_t here, size_t at)
{
    return d->share ? (uint16_t *)d->share + here : d->store->low + at;
}

/* Of bucket i, what the model computes with goes from the rank that keeps it to all. */
static int gather(struct division *d, int i, struct err *e)
{
    const struct shards *s = &d->store->shards;
    const struct store *store = d->store;
    void *slab = store->low ? (void *)store->low : store->weights;
    size_t size = dtype_size(store->dt);
    struct comm_call call = {
        .kind = COMM_ALL_GATHER, .send = (char *)slab + shards_from(s, i) * size, .recv = (char *)slab + s->at[i] * size,
        .n = shards_share(s, i), .type = exchange_type(store->dt),
    };

    return call.n ? exchange_start(&d->calls[i], d->dev, store->conf.replicas, &call, e) : 0;
}

/* Weights before element `at` of the slab have come, and the next buckets are under way. */
static int gather_until(struct division *d, size_t at, struct err *e)
{
    const struct shards *s = &d->store->shards;

    for (;;) {
        for (; d->asked < s->n && d->asked < d->gathered + UNDER_WAY; d->asked++)
            TRY(gather(d, d->asked, e));
        if (d->gathered == s->n || s->at[d->gathered] >= at)
            return 0;
        TRY(exchange_wait(&d->calls[d->gathered++], e));
    }
}

/* The share has new weights, which all are to have. */
static int gather_again(struct division *d, bool later, struct err *e)
{
    if (d->store->shards.ranks == 1)
        return 0;
    if (passages_of_weights(d))
        return passages_forget(d, later, e);
    d->asked = d->gathered = 0;
    return gather_until(d, later ? 0 : SIZE_MAX, e);
}

int division_reads(struct division *d, int section, bool back, struct err *e)
{
    if (passages_of_weights(d))
        return passages_read(d, section, back, e);
    return gather_until(d, d->store->section[section + 1].at, e);
}

int division_left(struct division *d, int section, struct err *e)
{
    return passages_of_weights(d) ? passages_left(d, section, e) : 0;
}

int division_settle(struct division *d, struct err *e)
{
    return passages_of_weights(d) ? passages_settle(d, e) : gather_until(d, SIZE_MAX, e);
}

int division_weights_changed(struct division *d, struct err *e)
{
    uint16_t *low = d->store->low;

    if (d->host)
        TRY(host_weights_changed(d, e));
    for (int i = 0; i < d->store->shards.n && low && !d->host && !d->store->conf.bf16_alone; i++)
        TRY(d->dev->ops->vec_cast(d->dev, low + shards_from(&d->store->shards, i), DTYPE_BF16, own_weights(d, i), DTYPE_F32,
                                  (int64_t)shards_share(&d->store->shards, i), e));
    return gather_again(d, false, e);
}

/* Bucket i, in place or by way of the host's memory. */
static int fill(struct division *d, int i, uint64_t seed, struct err *e)
{
    size_t first = shards_from(&d->store->shards, i), n = shards_share(&d->store->shards, i), size = sizeof(float);
    bool low = d->store->conf.bf16_alone;
    void *to = low ? (void *)own_low(d, shards_here(&d->store->shards, i), first) : own_weights(d, i), *host = to;
    int rc = 0;

    if (low || state_device(d)->kind != DEVICE_CPU)
        TRY(device_alloc_host(d->dev, &host, n * size, e));
    params_fill_range(&d->store->params, seed, first, n, host);
    for (size_t k = 0; low && k < n; k++)
        ((uint16_t *)host)[k] = bf16_of(((const float *)host)[k]);
    size = low ? sizeof(uint16_t) : size;
    if (host != to) {
        rc = device_put(d->dev, to, host, n * size, e);
        device_free_host(d->dev, host);
    }
    return rc;
}

int division_fill(struct division *d, uint64_t seed, struct err *e)
{
    for (int i = 0; i < d->store->shards.n; i++)
        TRY(fill(d, i, seed, e));
    return 0;
}

int division_pieces_max(const struct division *d)
{
    return shards_pieces_max(&d->store->shards, &d->store->params);
}

int division_pieces(const struct division *d, enum checkpoint_part part, struct piece *v)
{
    bool weights = part == CHECKPOINT_WEIGHTS, low = weights && d->store->conf.bf16_alone;
    bool in_slab = weights && !d->master && !(low && d->share);
    void *own = low ? (void *)own_low(d, 0, 0) : d->master ? d->master : d->store->weights;
    void *data[CHECKPOINT_PARTS] = {own, d->exp_avg, d->exp_avg_sq};

    return shards_pieces(&d->store->shards, &d->store->params, part, data[part], low ? DTYPE_BF16 : DTYPE_F32, in_slab, v);
}

/* ---- gradients ---- */

int division_add(struct division *d, int64_t i, int64_t n, struct err *e)
{
    if (d->grads || i + 1 == n)
        return 0;
    return data_parallel_add(&d->sums, d->store->grads, 0, d->store->params.elements, i, n, e);
}

static int reduce(struct division *d, int i, int64_t micro_batches, struct err *e)
{
    const struct shards *s = &d->store->shards;
    struct comm *replicas = d->store->conf.replicas;
    float *grads = d->store->grads;
    size_t n = s->at[i + 1] - s->at[i], from = shards_from(s, i);
    uint16_t *wire = d->wire[i % UNDER_WAY];
    struct comm_call call = {
        .kind = s->ranks > 1 ? COMM_REDUCE_SCATTER : COMM_ALL_REDUCE, .send = grads + s->at[i], .recv = grads + from,
        .n = shards_share(s, i), .type = COMM_F32, .op = COMM_SUM,
    };

    TRY(data_parallel_add(&d->sums, grads, s->at[i], n, micro_batches - 1, micro_batches, e));
    if (!replicas || replicas->size == 1)
        return 0;
    if (wire) {
        TRY(d->dev->ops->vec_cast(d->dev, wire, DTYPE_BF16, grads + s->at[i], DTYPE_F32, (int64_t)n, e));
        call.send = wire;
        call.recv = wire + (from - s->at[i]);
        call.type = COMM_BF16;
    }
    return exchange_start(&d->calls[i], d->dev, replicas, &call, e);
}

static int finish(struct division *d, int i, struct err *e)
{
    const struct shards *s = &d->store->shards;
    const uint16_t *wire = d->wire[i % UNDER_WAY];
    size_t from = shards_from(s, i);
    bool comes = d->calls[i].running;

    TRY(exchange_wait(&d->calls[i], e));
    if (!comes || !wire)
        return 0;
    return d->dev->ops->vec_cast(d->dev, d->store->grads + from, DTYPE_F32, wire + (from - s->at[i]), DTYPE_BF16,
                                 (int64_t)shards_share(s, i), e);
}

/* Starts with the buckets all of whose gradients are at element `at` of the slab or behind it, behind backward of the
 * last of n micro-batches or during it. */
static int reduce_from(struct division *d, size_t at, int64_t n, struct err *e)
{
    int buckets = d->store->shards.n;

    for (; d->reduced < buckets && d->store->shards.at[buckets - 1 - d->reduced] >= at; d->reduced++) {
        int i = buckets - 1 - d->reduced;

        if (i + UNDER_WAY < buckets)
            TRY(finish(d, i + UNDER_WAY, e));
        TRY(reduce(d, i, n, e));
    }
    return 0;
}

int division_writes(struct division *d, int section, struct err *e)
{
    return d->grads ? passages_write(d, section, e) : 0;
}

int division_wrote(struct division *d, int section, int64_t i, int64_t n, struct err *e)
{
    if (d->grads)
        return passages_wrote(d, section, i, n, e);
    return d->overlap_reduce && i + 1 == n ? reduce_from(d, d->store->section[section].at, n, e) : 0;
}

int division_reduce(struct division *d, int64_t n, struct err *e)
{
    if (d->grads)
        return passages_reduce(d, e);
    TRY(reduce_from(d, 0, n, e));
    for (int i = d->store->shards.n - 1; i >= 0; i--)
        TRY(finish(d, i, e));
    d->reduced = 0;
    return 0;
}

static int poke(struct exchange_call *x, bool *some, struct err *e)
{
    if (*some || !x->running || x->arrived)
        return 0;
    *some = true;
    return exchange_poke(x, e);
}

int division_poke(struct division *d, bool *some, struct err *e)
{
    *some = false;
    for (int i = 0; i < d->store->shards.n && !*some; i++)
        TRY(poke(&d->calls[i], some, e));
    for (int i = 0; i < STORE_PASSAGES && !*some; i++) {
        TRY(poke(&d->weight[i].call, some, e));
        TRY(poke(&d->grad[i].call, some, e));
    }
    return 0;
}

float *division_grad(const struct division *d, const struct shard_range *r)
{
    return d->grads ? d->grads + r->here : d->store->grads + r->at;
}

/* ---- norm ---- */

int64_t division_blocks(const struct division *d)
{
    return (int64_t)blocks_of(d->store->params.elements, d->store->shards.unit);
}

int division_squares(const struct division *d, double *sums, struct err *e)
{
    struct shard_range r = {0};
    size_t unit = d->store->shards.unit;

    while (shards_next(&d->store->shards, &d->store->params, &r)) {
        const float *grad = division_grad(d, &r);
        size_t lo = r.at, end = r.at + r.n;

        while (lo < end && !r.param->repeated) {
            size_t n = lo % unit && unit - lo % unit < end - lo ? unit - lo % unit : end - lo;

            TRY(d->dev->ops->vec_sumsq(d->dev, DTYPE_F32, sums + lo / unit, (int64_t)unit, grad + (lo - r.at), (int64_t)n, e));
            lo += n;
        }
    }
    return 0;
}

/* ---- update ---- */

/* Of bf16 weights, by rectangles of the logical tensor: each element is rounded as in every layout. */
static int update_low(struct division *d, const struct adamw *settings, const struct shard_range *r, struct err *e)
{
    struct adamw a = *settings;
    struct piece v[3 * PIECES_PER_PARAM];
    size_t at = 0;

    a.round.key = hash_xxh3_64_seed(span_of(r->param->name), a.round.key);
    for (int i = 0, n = shards_rectangles(r, CHECKPOINT_WEIGHTS, v); i < n; i++) {
        size_t here = r->here + at, all = (size_t)(v[i].rows * v[i].cols);

        a.round.first = v[i].row * piece_width(&v[i]) + v[i].col;
        a.round.cols = v[i].cols;
        a.round.width = piece_width(&v[i]);
        TRY(d->dev->ops->adamw(d->dev, &a, NULL, d->exp_avg + here, d->exp_avg_sq + here, division_grad(d, r) + at,
                               own_low(d, here, r->at + at), (int64_t)all, e));
        at += all;
    }
    return 0;
}

static int update(struct division *d, const struct adamw *settings, double weight_decay, struct err *e)
{
    const struct store *s = d->store;
    struct adamw a = *settings;
    struct shard_range r = {0};

    while (shards_next(&s->shards, &s->params, &r)) { /* weight decay differs by tensor, so each has a call of its own */
        a.weight_decay = param_decays(r.param) ? weight_decay : 0;
        if (s->conf.bf16_alone) {
            TRY(update_low(d, &a, &r, e));
            continue;
        }
        TRY(d->dev->ops->adamw(d->dev, &a, d->master ? d->master + r.here : s->weights + r.at, d->exp_avg + r.here,
                               d->exp_avg_sq + r.here, division_grad(d, &r), s->low ? s->low + r.at : NULL, (int64_t)r.n, e));
    }
    return 0;
}

int division_update(struct division *d, const struct adamw *a, double weight_decay, struct err *e)
{
    TRY(d->host ? host_update(d, a, weight_decay, e) : update(d, a, weight_decay, e));
    return gather_again(d, d->overlap_gather, e);
}
