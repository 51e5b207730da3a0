#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>


enum { UNDER_WAY = 2 }; /* buckets of a part: each takes buffers of the transport */

/* ---- memory ---- */

void optimizer_of_run(struct model_run *run, const struct model_config *config, bool sharded, int64_t replicas)
{
    int ranks = sharded ? (int)replicas : 1;

    run->multiple = shards_multiple(shards_unit(model_config_params(config)), ranks);
    run->no_master = run->dt == DTYPE_BF16 && ranks > 1;
}

static size_t blocks_of(size_t elements, size_t unit)
{
    return (elements + unit - 1) / unit;
}

size_t optimizer_bytes(const struct model_memory *m, const struct model_run *run, bool sharded, int64_t replicas)
{
    size_t ranks = sharded ? (size_t)replicas : 1, own = m->elements / ranks * sizeof(float);

    return own * (run->no_master ? 3 : 2) + blocks_of(m->elements, run->multiple / ranks) * sizeof(double) + sizeof(float);
}

static int open_part(struct optimizer *o, struct train_part *p, int ranks, size_t bucket, struct err *e)
{
    const struct model *m = p->model;
    struct comm *group = o->layout->replicas;
    float **slab[] = {&p->exp_avg, &p->exp_avg_sq, m->run.no_master ? &p->master : NULL};

    p->optimizer = o;
    TRY(shards_open(&p->shards, &m->params, m->run.multiple / (size_t)ranks, ranks, ranks > 1 ? group->rank : 0, bucket, e));
    p->calls = calloc((size_t)p->shards.n, sizeof *p->calls);
    p->asked = p->gathered = p->shards.n;
    if (!p->calls)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (size_t k = 0; k < sizeof slab / sizeof *slab && slab[k]; k++) {
        size_t bytes = shards_own(&p->shards) * sizeof(float);

        TRY(device_alloc(o->dev, (void **)slab[k], bytes, e));
        TRY(device_zero(o->dev, *slab[k], bytes, e));
    }
    o->blocks += (int64_t)blocks_of(m->params.elements, p->shards.unit);
    /* The padding of weights is gathered too. */
    return p->master ? 0 : device_zero(o->dev, m->weights, m->memory.weights, e);
}

int optimizer_open(struct optimizer *o, struct device *dev, const struct layout *l, struct train_part *parts, int n,
                   bool sharded, size_t bucket, struct err *e)
{
    *o = (struct optimizer){.dev = dev, .layout = l, .parts = parts, .n = n};
    for (int i = 0; i < n; i++)
        TRY(open_part(o, &parts[i], sharded ? l->replicas->size : 1, bucket, e));
    o->host = malloc((size_t)o->blocks * sizeof *o->host);
    if (!o->host)
        return err_set(e, ERR_NOMEM, "out of memory");
    TRY(device_alloc(dev, (void **)&o->sums, (size_t)o->blocks * sizeof *o->sums, e));
    return device_alloc(dev, (void **)&o->clip, sizeof *o->clip, e);
}

void optimizer_close(struct optimizer *o)
{
    for (int i = 0; i < o->n; i++) {
        struct train_part *p = &o->parts[i];

        device_free(o->dev, p->exp_avg);
        device_free(o->dev, p->exp_avg_sq);
        device_free(o->dev, p->master);
        free(p->calls);
        shards_close(&p->shards);
    }
    if (o->dev) {
        device_free(o->dev, o->sums);
        device_free(o->dev, o->clip);
    }
    free(o->host);
    *o = (struct optimizer){0};
}

/* ---- weights ---- */

/* The fp32 weights of this rank's share of bucket i. */
static float *own_weights(const struct train_part *p, int i)
{
    return p->master ? p->master + shards_here(&p->shards, i) : p->model->weights + shards_from(&p->shards, i);
}

/* Of bucket i, what the model computes with goes from the rank that keeps it to all. */
static int gather(struct optimizer *o, struct train_part *p, int i, struct err *e)
{
    const struct shards *s = &p->shards;
    const struct model *m = p->model;
    void *slab = m->low ? (void *)m->low : m->weights;
    size_t size = dtype_size(m->dt);
    struct comm_call call = {
        .kind = COMM_ALL_GATHER, .send = (char *)slab + shards_from(s, i) * size, .recv = (char *)slab + s->at[i] * size,
        .n = shards_share(s, i), .type = exchange_type(m->dt),
    };

    return exchange_start(&p->calls[i], o->dev, o->layout->replicas, &call, e);
}

/* Buckets that begin before element `at` have come, and the next ones are under way. */
static int gather_until(struct optimizer *o, struct train_part *p, size_t at, struct err *e)
{
    const struct shards *s = &p->shards;

    for (;;) {
        for (; p->asked < s->n && p->asked < p->gathered + UNDER_WAY; p->asked++)
            TRY(gather(o, p, p->asked, e));
        if (p->gathered == s->n || s->at[p->gathered] >= at)
            return 0;
        TRY(exchange_wait(&p->calls[p->gathered++], e));
    }
}

int optimizer_settle(struct optimizer *o, struct err *e)
{
    for (int k = 0; k < o->n; k++)
        TRY(gather_until(o, &o->parts[k], SIZE_MAX, e));
    return 0;
}

/* The share has new weights, which all are to have. */
static int gather_again(struct optimizer *o, struct train_part *p, bool later, struct err *e)
{
    if (p->shards.ranks == 1)
        return 0;
    p->asked = p->gathered = 0;
    return gather_until(o, p, later ? 0 : SIZE_MAX, e);
}

/* Whatever wrote the weights of this rank's share: all models have them. */
static int weights_changed(struct optimizer *o, struct err *e)
{
    for (int k = 0; k < o->n; k++) {
        struct train_part *p = &o->parts[k];
        struct model *m = p->model;

        for (int i = 0; i < p->shards.n && m->low; i++)
            TRY(o->dev->ops->vec_cast(o->dev, m->low + shards_from(&p->shards, i), DTYPE_BF16, own_weights(p, i), DTYPE_F32,
                                      (int64_t)shards_share(&p->shards, i), e));
        TRY(gather_again(o, p, false, e));
    }
    return 0;
}

/* Bucket i of a part, in place or by way of the host's memory. */
static int fill(struct optimizer *o, const struct train_part *p, int i, uint64_t seed, struct err *e)
{
    size_t first = shards_from(&p->shards, i), n = shards_share(&p->shards, i);
    float *to = own_weights(p, i);
    void *host = to;
    int rc = 0;

    if (o->dev->kind != DEVICE_CPU)
        TRY(device_alloc_host(o->dev, &host, n * sizeof *to, e));
    params_fill_range(&p->model->params, seed, first, n, host);
    if (host != to) {
        rc = device_put(o->dev, to, host, n * sizeof *to, e);
        device_free_host(o->dev, host);
    }
    return rc;
}

int optimizer_fill(struct optimizer *o, uint64_t seed, struct err *e)
{
    for (int k = 0; k < o->n; k++)
        for (int i = 0; i < o->parts[k].shards.n; i++)
            TRY(fill(o, &o->parts[k], i, seed, e));
    return weights_changed(o, e);
}

/* ---- checkpoints ---- */

static int pieces_max(const struct optimizer *o)
{
    int n = 0;

    for (int i = 0; i < o->n; i++)
        n += shards_pieces_max(&o->parts[i].shards, &o->parts[i].model->params);
    return n;
}

/* Of one kind of state, of all parts. */
static int pieces_of(const struct optimizer *o, enum checkpoint_part part, struct piece *v)
{
    int n = 0;

    for (int i = 0; i < o->n; i++) {
        const struct train_part *p = &o->parts[i];
        bool in_slab = part == CHECKPOINT_WEIGHTS && !p->master;
        float *data[CHECKPOINT_PARTS] = {in_slab ? p->model->weights : p->master, p->exp_avg, p->exp_avg_sq};

        n += shards_pieces(&p->shards, &p->model->params, part, data[part], in_slab, v + n);
    }
    return n;
}

int optimizer_pieces(const struct optimizer *o, struct piece **v, int *n, struct err *e)
{
    *n = 0;
    *v = malloc((size_t)(pieces_max(o) * CHECKPOINT_PARTS) * sizeof **v);
    if (!*v)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int k = 0; k < CHECKPOINT_PARTS; k++)
        *n += pieces_of(o, (enum checkpoint_part)k, *v + *n);
    return 0;
}

int optimizer_load(struct optimizer *o, const struct checkpoint *ck, bool moments, struct err *e)
{
    struct piece *v = malloc((size_t)pieces_max(o) * sizeof *v);
    int rc = v ? optimizer_settle(o, e) : err_set(e, ERR_NOMEM, "out of memory");

    for (int k = 0; rc == 0 && k < (moments ? CHECKPOINT_PARTS : 1); k++)
        rc = checkpoint_load(ck, o->dev, v, pieces_of(o, (enum checkpoint_part)k, v), e);
    free(v);
    return rc < 0 ? rc : weights_changed(o, e);
}

/* ---- gradients ---- */

static int reduce(struct optimizer *o, struct train_part *p, int i, int64_t micro_batches, struct err *e)
{
    const struct shards *s = &p->shards;
    float *grads = p->model->grads;
    size_t n = s->at[i + 1] - s->at[i];
    struct comm_call call = {
        .kind = COMM_ALL_REDUCE, .send = grads + s->at[i], .recv = grads + s->at[i], .n = n, .type = COMM_F32, .op = COMM_SUM,
    };

    TRY(data_parallel_add(&p->ranks, grads, s->at[i], n, micro_batches - 1, micro_batches, e));
    if (o->layout->replicas->size == 1)
        return device_sync(o->dev, e);
    if (s->ranks > 1) {
        call.kind = COMM_REDUCE_SCATTER;
        call.recv = grads + shards_from(s, i);
        call.n = shards_share(s, i);
    }
    return exchange_start(&p->calls[i], o->dev, o->layout->replicas, &call, e);
}

/* Begins with the buckets all of whose gradients are at element `at` or behind it. */
static int reduce_from(struct optimizer *o, struct train_part *p, size_t at, int64_t micro_batches, struct err *e)
{
    int n = p->shards.n;

    for (; p->reduced < n && p->shards.at[n - 1 - p->reduced] >= at; p->reduced++) {
        int i = n - 1 - p->reduced;

        if (i + UNDER_WAY < n)
            TRY(exchange_wait(&p->calls[i + UNDER_WAY], e));
        TRY(reduce(o, p, i, micro_batches, e));
    }
    return 0;
}

/* Gets on whatever is under way: one call gets all on. */
static int poke(struct optimizer *o, struct err *e)
{
    for (int k = 0; k < o->n; k++)
        for (int i = 0; i < o->parts[k].shards.n; i++)
            if (o->parts[k].calls[i].running && !o->parts[k].calls[i].arrived)
                return exchange_poke(&o->parts[k].calls[i], e);
    return 0;
}

static int on_point(void *arg, enum model_point point, size_t at, struct err *e)
{
    struct train_part *p = arg;
    struct optimizer *o = p->optimizer;

    if (point == MODEL_READS)
        TRY(gather_until(o, p, at, e));
    if (point == MODEL_WROTE && o->overlap_reduce && p->micro_batches)
        TRY(reduce_from(o, p, at, p->micro_batches, e));
    return poke(o, e);
}

void optimizer_overlap(struct optimizer *o, bool reduce, bool gather)
{
    o->overlap_reduce = reduce;
    o->overlap_gather = gather;
    for (int k = 0; k < o->n && (reduce || gather); k++)
        o->parts[k].model->watch = (struct model_watch){on_point, &o->parts[k]};
}

/* Of what this rank keeps, gradients of which each tensor rank has a share: packed, added up, put back. */
static int sum_shared(struct optimizer *o, const struct train_part *p, struct err *e)
{
    struct model *m = p->model;
    size_t n = 0;

    for (int pass = 0; pass < 2 && m->shared; pass++) {
        struct shard_range r = {0};
        size_t at = 0;

        for (; shards_next(&p->shards, &m->params, &r); at += r.n) {
            float *g = m->grads + r.at;

            if (!r.param->summed)
                r.n = 0;
            else
                TRY(device_copy(o->dev, pass ? g : m->shared + at, pass ? m->shared + at : g, r.n * sizeof *g, e));
        }
        n = at;
        if (pass == 0)
            TRY(exchange_sum(o->dev, m->part.tensor, m->shared, n, COMM_F32, e));
    }
    return 0;
}

/* The embedding that the first stage looks up and the last one multiplies by: a bucket of its own in both. */
static int sum_tied(struct optimizer *o, const struct train_part *p, struct err *e)
{
    const struct shards *s = &p->shards;
    const struct params *params = &p->model->params;
    int i = params->word >= 0 ? 0 : s->n - 1;

    if (!o->layout->tied || params_apart(params) < 0)
        return 0;
    return exchange_sum(o->dev, o->layout->tied, p->model->grads + shards_from(s, i), shards_share(s, i), COMM_F32, e);
}

int optimizer_reduce(struct optimizer *o, int64_t micro_batches, struct err *e)
{
    for (int k = 0; k < o->n; k++) {
        struct train_part *p = &o->parts[k];

        TRY(reduce_from(o, p, 0, micro_batches, e));
        for (int i = p->shards.n - 1; i >= 0; i--)
            TRY(exchange_wait(&p->calls[i], e));
        p->reduced = 0;
        p->micro_batches = 0;
        TRY(sum_shared(o, p, e));
        TRY(sum_tied(o, p, e));
    }
    return 0;
}

/* ---- norm ---- */

/* The squares of elements lo .. hi - 1 of a part, to its blocks. */
static int add_squares(struct optimizer *o, const struct train_part *p, double *sums, size_t lo, size_t hi, struct err *e)
{
    size_t unit = p->shards.unit;

    while (lo < hi) {
        size_t n = lo % unit && unit - lo % unit < hi - lo ? unit - lo % unit : hi - lo;

        TRY(o->dev->ops->vec_sumsq(o->dev, DTYPE_F32, sums + lo / unit, (int64_t)unit, p->model->grads + lo, (int64_t)n, e));
        lo += n;
    }
    return 0;
}

/* What this rank keeps of a part and no other rank of the model counts. */
static int part_squares(struct optimizer *o, const struct train_part *p, double *sums, struct err *e)
{
    struct shard_range r = {0};

    while (shards_next(&p->shards, &p->model->params, &r))
        if (!r.param->repeated)
            TRY(add_squares(o, p, sums, r.at, r.at + r.n, e));
    return 0;
}

int optimizer_norm(struct optimizer *o, double max_norm, double *norm, struct err *e)
{
    size_t bytes = (size_t)o->blocks * sizeof *o->sums;
    double sum = 0, *at = o->sums;

    TRY(device_zero(o->dev, o->sums, bytes, e));
    for (int i = 0; i < o->n; i++) {
        TRY(part_squares(o, &o->parts[i], at, e));
        at += blocks_of(o->parts[i].model->params.elements, o->parts[i].shards.unit);
    }
    TRY(device_get(o->dev, o->host, o->sums, bytes, e));
    if (o->n && o->parts->shards.ranks > 1) /* each block is one rank's, and 0 elsewhere */
        TRY(comm_all_reduce(o->layout->replicas, o->host, (size_t)o->blocks, COMM_F64, COMM_SUM, e));
    for (int64_t i = 0; i < o->blocks; i++)
        sum += o->host[i];
    TRY(comm_all_reduce(o->layout->model, &sum, 1, COMM_F64, COMM_SUM, e));
    TRY(device_put(o->dev, o->sums, &sum, sizeof sum, e));
    TRY(o->dev->ops->clip_scale(o->dev, o->clip, o->sums, (float)max_norm, e));
    *norm = sqrt(sum);
    return 0;
}

/* ---- update ---- */

int optimizer_update(struct optimizer *o, const struct adamw *settings, double weight_decay, struct err *e)
{
    struct adamw a = *settings;

    a.grad_scale = o->clip;
    for (int k = 0; k < o->n; k++) {
        struct train_part *p = &o->parts[k];
        struct model *m = p->model;
        struct shard_range r = {0};

        while (shards_next(&p->shards, &m->params, &r)) { /* weight decay differs by tensor, so each has a call of its own */
            a.weight_decay = param_decays(r.param) ? weight_decay : 0;
            TRY(o->dev->ops->adamw(o->dev, &a, p->master ? p->master + r.here : m->weights + r.at, p->exp_avg + r.here,
                                   p->exp_avg_sq + r.here, m->grads + r.at, m->low ? m->low + r.at : NULL, (int64_t)r.n, e));
        }
        TRY(gather_again(o, p, o->overlap_gather, e));
    }
    return 0;
}
