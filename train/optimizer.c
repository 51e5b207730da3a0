#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t optimizer_bytes(void)
{
    return sizeof(float);
}

/* The i-th of all divisions: the first of all parts, then the second ones; NULL behind the last. */
static struct division *division_of(const struct optimizer *o, int i)
{
    return i < o->n * o->stores ? &o->parts[i % o->n].divisions[i / o->n] : NULL;
}

/* ---- beside the passes ---- */

/* Gets on whatever is under way: one call gets all on. */
static int poke(struct optimizer *o, struct err *e)
{
    struct division *d;
    bool some = false;

    for (int i = 0; !some && (d = division_of(o, i)); i++)
        TRY(division_poke(d, &some, e));
    return 0;
}

static int on_point(void *arg, enum model_point point, int section, struct err *e)
{
    struct train_part *p = arg;
    struct optimizer *o = p->optimizer;

    for (int k = 0; k < o->stores; k++) {
        struct division *d = &p->divisions[k];

        if (point == MODEL_READS || point == MODEL_READS_BACK)
            TRY(division_reads(d, section, point == MODEL_READS_BACK, e));
        if (point == MODEL_LEFT)
            TRY(division_left(d, section, e));
        if (point == MODEL_WRITES)
            TRY(division_writes(d, section, e));
        if (point == MODEL_WROTE)
            TRY(division_wrote(d, section, p->micro, p->micro_batches, e));
    }
    return poke(o, e);
}

/* ---- memory ---- */

static int open_part(struct optimizer *o, struct train_part *p, const struct division_conf *how, struct err *e)
{
    struct model *m = p->model;

    p->optimizer = o;
    p->divisions = calloc((size_t)m->n_stores, sizeof *p->divisions);
    if (!p->divisions)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int k = 0; k < m->n_stores; k++) {
        TRY(division_open(&p->divisions[k], m->stores[k], how, e));
        o->blocks += division_blocks(&p->divisions[k]);
    }
    m->watch = (struct model_watch){on_point, p};
    return 0;
}

int optimizer_open(struct optimizer *o, struct device *dev, const struct layout *l, struct train_part *parts, int n,
                   const struct division_conf *how, struct err *e)
{
    *o = (struct optimizer){
        .dev = dev, .state = how->host ? how->host : dev, .layout = l, .parts = parts, .n = n,
        .stores = parts->model->n_stores,
    };
    for (int i = 0; i < n; i++)
        TRY(open_part(o, &parts[i], how, e));
    TRY(device_alloc_host(dev, (void **)&o->host, (size_t)o->blocks * sizeof *o->host, e));
    TRY(device_alloc(dev, (void **)&o->sums, (size_t)o->blocks * sizeof *o->sums, e));
    return device_alloc(dev, (void **)&o->clip, sizeof *o->clip, e);
}

void optimizer_close(struct optimizer *o)
{
    for (int i = 0; i < o->n; i++) {
        struct train_part *p = &o->parts[i];

        for (int k = 0; p->divisions && k < o->stores; k++)
            division_close(&p->divisions[k]);
        free(p->divisions);
        p->divisions = NULL;
    }
    if (o->dev) {
        device_free(o->dev, o->sums);
        device_free(o->dev, o->clip);
        device_free_host(o->dev, o->host);
    }
    *o = (struct optimizer){0};
}

/* ---- weights ---- */

int optimizer_settle(struct optimizer *o, struct err *e)
{
    struct division *d;

    for (int i = 0; (d = division_of(o, i)); i++)
        TRY(division_settle(d, e));
    return 0;
}

static int weights_changed(struct optimizer *o, struct err *e)
{
    struct division *d;

    for (int i = 0; (d = division_of(o, i)); i++)
        TRY(division_weights_changed(d, e));
    return 0;
}

int optimizer_fill(struct optimizer *o, uint64_t seed, struct err *e)
{
    struct division *d;

    for (int i = 0; (d = division_of(o, i)); i++)
        TRY(division_fill(d, seed, e));
    return weights_changed(o, e);
}

/* ---- checkpoints ---- */

static int pieces_max(const struct optimizer *o)
{
    const struct division *d;
    int n = 0;

    for (int i = 0; (d = division_of(o, i)); i++)
        n += division_pieces_max(d);
    return n;
}

/* Of one kind of state. */
static int pieces_of(const struct optimizer *o, enum checkpoint_part part, struct piece *v)
{
    const struct division *d;
    int n = 0;

    for (int i = 0; (d = division_of(o, i)); i++)
        n += division_pieces(d, part, v + n);
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
        rc = checkpoint_load(ck, o->state, v, pieces_of(o, (enum checkpoint_part)k, v), e);
    free(v);
    return rc < 0 ? rc : weights_changed(o, e);
}

/* ---- gradients ---- */

void optimizer_before(struct train_part *p, int64_t i, int64_t n, bool *first)
{
    p->micro = i;
    p->micro_batches = n;
    *first = data_parallel_first(&p->divisions->sums, i);
}

int optimizer_after(struct train_part *p, struct err *e)
{
    for (int k = 0; k < p->optimizer->stores; k++)
        TRY(division_add(&p->divisions[k], p->micro, p->micro_batches, e));
    return 0;
}

/* Of what this rank keeps, gradients of which each tensor rank has a share: packed, added up, put back. */
static int sum_shared(struct optimizer *o, struct model *m, const struct division *d, struct err *e)
{
    size_t n = 0;

    for (int pass = 0; pass < 2 && m->shared; pass++) {
        struct shard_range r = {0};
        size_t at = 0;

        for (; shards_next(&d->store->shards, &d->store->params, &r); at += r.n) {
            float *g = division_grad(d, &r);

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
static int sum_tied(struct optimizer *o, const struct division *d, struct err *e)
{
    const struct shards *s = &d->store->shards;
    const struct params *params = &d->store->params;
    int i = params->word >= 0 ? 0 : s->n - 1;

    if (!o->layout->tied || params_apart(params) < 0)
        return 0;
    return exchange_sum(o->dev, o->layout->tied, d->store->grads + shards_from(s, i), shards_share(s, i), COMM_F32, e);
}

int optimizer_reduce(struct optimizer *o, int64_t micro_batches, struct err *e)
{
    for (int i = 0; i < o->n; i++) {
        struct train_part *p = &o->parts[i];

        for (int k = 0; k < o->stores; k++)
            TRY(division_reduce(&p->divisions[k], micro_batches, e));
        p->micro = p->micro_batches = 0;
        TRY(sum_shared(o, p->model, p->divisions, e)); /* what is shared is dense */
        TRY(sum_tied(o, p->divisions, e));
    }
    return 0;
}

/* ---- norm ---- */

/* *sum: the squares of the k-th stores of all parts and all ranks, from this rank's blocks at sums. */
static int add_blocks(const struct optimizer *o, int k, double *sums, int64_t *blocks, double *sum, struct err *e)
{
    const struct store_conf *c = &o->parts->divisions[k].store->conf;

    *blocks = 0;
    *sum = 0;
    for (int i = 0; i < o->n; i++)
        *blocks += division_blocks(&o->parts[i].divisions[k]);
    if (store_ranks(c) > 1) /* each block is one rank's, and 0 elsewhere */
        TRY(comm_all_reduce(c->replicas, sums, (size_t)*blocks, COMM_F64, COMM_SUM, e));
    for (int64_t i = 0; i < *blocks; i++)
        *sum += sums[i];
    return c->model ? comm_all_reduce(c->model, sum, 1, COMM_F64, COMM_SUM, e) : 0;
}

int optimizer_norm(struct optimizer *o, double max_norm, double *norm, struct err *e)
{
    size_t bytes = (size_t)o->blocks * sizeof *o->sums;
    double sum = 0, *at = o->sums, *host = o->host;

    TRY(device_zero(o->dev, o->sums, bytes, e));
    for (int i = 0; i < o->n * o->stores; i++) {
        struct division *d = division_of(o, i);

        TRY(division_squares(d, at, e));
        at += division_blocks(d);
    }
    TRY(device_get(o->dev, o->host, o->sums, bytes, e));
    for (int k = 0; k < o->stores; k++) {
        int64_t blocks;
        double one;

        TRY(add_blocks(o, k, host, &blocks, &one, e));
        host += blocks;
        sum += one;
    }
    o->host[0] = sum;
    TRY(device_put_later(o->dev, o->sums, o->host, sizeof sum, e));
    TRY(o->dev->ops->clip_scale(o->dev, o->clip, o->sums, 1, (float)max_norm, e));
    *norm = sqrt(sum);
    return 0;
}

/* ---- update ---- */

int optimizer_update(struct optimizer *o, const struct adamw *settings, double weight_decay, struct err *e)
{
    struct adamw a = *settings;
    struct division *d;
    float clip;

    if (o->state != o->dev)
        TRY(device_get(o->dev, &clip, o->clip, sizeof clip, e));
    a.grad_scale = o->state != o->dev ? &clip : o->clip;
    for (int i = 0; (d = division_of(o, i)); i++)
        TRY(division_update(d, &a, weight_decay, e));
    return 0;
}
