#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/zero_codes.h"

size_t optimizer_bytes(void)
{
    return sizeof(float);
}

/* The i-th of all shards: the first of all parts, then the second ones; NULL behind the last. */
static struct zero_shard *shard_of(const struct optimizer *o, int i)
{
    return i < o->n * o->buffers ? &o->parts[i % o->n].shards[i / o->n] : NULL;
}

/* ---- memory ---- */

/* The largest of all that are updated whole. */
static struct matrix_size largest_matrices(const struct optimizer *o)
{
    struct matrix_size most = {0};

    for (int i = 0; i < o->n; i++)
        for (int k = 0; k < o->buffers; k++)
            matrix_size_fit(&most, &o->parts[i].model->buffers[k]->memory.matrix);
    return most;
}

static int open_part(struct optimizer *o, struct train_part *p, struct device *host, struct err *e)
{
    struct model *m = p->model;
    int64_t most = 0;

    p->shards = calloc((size_t)m->n_buffers, sizeof *p->shards);
    if (!p->shards)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int k = 0; k < m->n_buffers; k++) {
        TRY(zero_open(&p->shards[k], m->buffers[k], host, e));
        o->blocks += zero_blocks(&p->shards[k]);
        if (m->buffers[k]->conf.copies > 1)
            most = zero_blocks(&p->shards[k]) * m->buffers[k]->conf.copies;
    }
    if (most > o->spreads) {
        free(o->spread);
        o->spread = malloc((size_t)most * sizeof *o->spread);
        o->spreads = most;
    }
    return o->spread || o->spreads == 0 ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

int optimizer_open(struct optimizer *o, struct device *dev, struct device *host, const struct optim_conf *optim,
                   const struct layout *l, struct train_part *parts, int n, struct err *e)
{
    *o = (struct optimizer){
        .dev = dev, .state = host ? host : dev, .layout = l, .optim = optim, .parts = parts, .n = n,
        .buffers = parts->model->n_buffers,
    };
    const struct matrix_size most = largest_matrices(o);

    for (int i = 0; i < n; i++)
        TRY(open_part(o, &parts[i], host, e));
    TRY(matrices_open(&o->matrices, dev, optim, l, &most, e));
    for (int i = 0; shard_of(o, i); i++)
        TRY(matrices_add(&o->matrices, shard_of(o, i), e));
    TRY(matrices_ready(&o->matrices, e));
    TRY(device_alloc_host(dev, (void **)&o->host, (size_t)o->blocks * sizeof *o->host, e));
    TRY(device_alloc(dev, (void **)&o->sums, (size_t)o->blocks * sizeof *o->sums, e));
    return device_alloc(dev, (void **)&o->clip, sizeof *o->clip, e);
}

void optimizer_close(struct optimizer *o)
{
    for (int i = 0; i < o->n; i++) {
        struct train_part *p = &o->parts[i];

        for (int k = 0; p->shards && k < o->buffers; k++)
            zero_close(&p->shards[k]);
        free(p->shards);
        p->shards = NULL;
    }
    matrices_close(&o->matrices);
    if (o->dev) {
        device_free(o->dev, o->sums);
        device_free(o->dev, o->clip);
        device_free_host(o->dev, o->host);
    }
    free(o->spread);
    *o = (struct optimizer){0};
}

/* ---- weights ---- */

int optimizer_settle(struct optimizer *o, struct err *e)
{
    struct zero_shard *z;

    for (int i = 0; (z = shard_of(o, i)); i++)
        TRY(param_gather_settle(z->buffer, e));
    return 0;
}

static int weights_changed(struct optimizer *o, struct err *e)
{
    struct zero_shard *z;

    for (int i = 0; (z = shard_of(o, i)); i++)
        TRY(zero_weights_changed(z, e));
    return 0;
}

int optimizer_fill(struct optimizer *o, uint64_t seed, struct err *e)
{
    struct zero_shard *z;

    for (int i = 0; (z = shard_of(o, i)); i++)
        TRY(zero_fill(z, seed, e));
    return weights_changed(o, e);
}

/* ---- checkpoints ---- */

static int pieces_max(const struct optimizer *o)
{
    const struct zero_shard *z;
    int n = 0;

    for (int i = 0; (z = shard_of(o, i)); i++)
        n += zero_pieces_max(z);
    return n + matrices_pieces_max(&o->matrices);
}

/* Of one kind of state. */
static int pieces_of(const struct optimizer *o, enum checkpoint_part part, struct piece *v)
{
    const struct zero_shard *z;
    int n = 0;

    for (int i = 0; (z = shard_of(o, i)); i++)
        n += zero_pieces(z, part, v + n);
    return n + matrices_pieces(&o->matrices, part, v + n);
}

/* Whether v is of a tied embedding's copy, divided in other ranges than the embedding, which is saved alone then. */
static bool is_copy(const struct optimizer *o, const struct piece *v)
{
    for (int i = 0; i < o->n; i++) {
        const struct param_buffer *b = &o->parts[i].model->dense;

        if (b->params.tied_apart && b->shard_grads && b->params.output >= 0 && v->name == b->params.v[b->params.output].name)
            return true;
    }
    return false;
}

int optimizer_pieces(const struct optimizer *o, struct piece **v, int *n, struct err *e)
{
    int all = 0;

    *n = 0;
    *v = malloc((size_t)(pieces_max(o) * (1 + 2 * PARAM_STATES)) * sizeof **v);
    if (!*v)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int part = CHECKPOINT_WEIGHTS; part < CHECKPOINT_PARTS; part++)
        all += pieces_of(o, part, *v + all);
    for (int i = 0; i < all; i++)
        if (!is_copy(o, *v + i))
            (*v)[(*n)++] = (*v)[i];
    return 0;
}

/* Whether a checkpoint has another optimizer's state; v: room for pieces. */
static int check_state(const struct optimizer *o, const struct checkpoint *ck, struct piece *v, struct err *e)
{
    for (int part = CHECKPOINT_WEIGHTS + 1; part < CHECKPOINT_PARTS; part++)
        if (pieces_of(o, part, v) && !checkpoint_has(ck, part) && !zero_scaled(part))
            return err_set(e, ERR_ARG, "%s: no state of this --optimizer there (%.*s): --no-load-optim begins without",
                           checkpoint_path(ck), (int)strlen(checkpoint_prefix[part]) - 1, checkpoint_prefix[part]);
    return 0;
}

/* Of n pieces those that are to be filled from their own tensors, in front; how many: adapters' if the checkpoint has some,
 * scales if it has them, no codes. */
static int stored(const struct checkpoint *ck, struct piece *v, int n)
{
    int k = 0;

    for (int i = 0; i < n; i++)
        if ((checkpoint_info(ck)->model.lora_rank || !strstr(v[i].name, ".lora_")) && v[i].dt != DTYPE_8BIT &&
            (!zero_scaled(v[i].part) || checkpoint_has(ck, v[i].part)))
            v[k++] = v[i];
    return k;
}

int optimizer_load(struct optimizer *o, const struct checkpoint *ck, bool state, struct err *e)
{
    struct piece *v = malloc((size_t)pieces_max(o) * sizeof *v);
    int rc = v ? optimizer_settle(o, e) : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0 && state)
        rc = check_state(o, ck, v, e);
    for (int part = CHECKPOINT_WEIGHTS; rc == 0 && part < (state ? CHECKPOINT_PARTS : CHECKPOINT_WEIGHTS + 1); part++)
        rc = checkpoint_load(ck, o->state, v, stored(ck, v, pieces_of(o, part, v)), e);
    for (int i = 0; rc == 0 && shard_of(o, i); i++)
        rc = state ? zero_codes_load(shard_of(o, i), ck, e) : zero_forget(shard_of(o, i), e);
    if (rc == 0 && !state)
        rc = matrices_forget(&o->matrices, e);
    free(v);
    return rc < 0 ? rc : weights_changed(o, e);
}

/* ---- gradients ---- */

/* Of what this rank keeps, gradients of which each tensor rank has a summand: packed, added up, put back. */
static int sum_shared(struct optimizer *o, struct model *m, const struct param_buffer *b, struct err *e)
{
    size_t n = 0;

    for (int pass = 0; pass < 2 && m->shared && b->trained; pass++) {
        struct shard_range r = {0};
        size_t at = 0;

        for (; bucketing_next(&b->buckets, &b->params, &r); at += r.n) {
            float *g = param_reduced(b, &r);

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

/* Whole on each rank, or divided in shards of its own, by the same ranges as its copy. */
static int sum_copies(struct optimizer *o, const struct param_buffer *b, struct err *e)
{
    const struct bucketing *s = &b->buckets;
    int first = 0, last = s->n - 1;
    float *word = b->grads + bucketing_from(s, first), *output = b->grads + bucketing_from(s, last);
    size_t n = bucketing_share(s, b->params.word >= 0 ? first : last);

    if (b->params.word < 0 || b->params.output < 0)
        return exchange_sum(o->dev, o->layout->tied, b->params.word >= 0 ? word : output, n, COMM_F32, e);
    TRY(o->dev->ops->vec_add(o->dev, DTYPE_F32, word, word, output, (int64_t)n, e));
    return device_copy(o->dev, output, word, n * sizeof *word, e);
}

/* Divided with the units that they are in: one of the two becomes whole for a while. */
static int sum_divided_copies(struct optimizer *o, struct param_buffer *b, struct err *e)
{
    int word = b->params.word, output = b->params.output, here = word >= 0 ? word : output;
    float *whole;

    if (word >= 0 && output >= 0) {
        TRY(param_reduce_whole(b, output, &whole, e));
        TRY(param_reduce_keep(b, word, whole, true, e));
        TRY(param_reduce_whole(b, word, &whole, e));
        return param_reduce_keep(b, output, whole, false, e);
    }
    TRY(param_reduce_whole(b, here, &whole, e));
    TRY(exchange_sum(o->dev, o->layout->tied, whole, b->params.v[here].n, COMM_F32, e));
    return param_reduce_keep(b, here, whole, false, e);
}

/* The embedding, and the output layer that is a copy of it: in this part, or in the first and the last stage. */
static int sum_tied(struct optimizer *o, struct param_buffer *b, struct err *e)
{
    if (!b->params.tied_apart || !b->trained)
        return 0;
    return b->shard_grads ? sum_divided_copies(o, b, e) : sum_copies(o, b, e);
}

int optimizer_reduce(struct optimizer *o, struct err *e)
{
    for (int i = 0; i < o->n; i++) {
        struct model *m = o->parts[i].model;

        for (int k = 0; k < o->buffers; k++) {
            TRY(param_reduce_finish(m->buffers[k], e));
            if (params_summed(&m->buffers[k]->params))
                TRY(sum_shared(o, m, m->buffers[k], e));
        }
        TRY(sum_tied(o, &m->dense, e));
    }
    return 0;
}

/* ---- norm ---- */

/* A number from the stage that has the layers before, or to the one that has those after. */
static int hand_on(struct comm *pipe, bool gives, double *x, struct err *e)
{
    int step = gives ? 1 : pipe->size - 1;
    const struct comm_call call = {
        .kind = gives ? COMM_SEND : COMM_RECV, .send = x, .recv = x, .n = 1, .type = COMM_F64,
        .peer = (pipe->rank + step) % pipe->size,
    };

    return comm_run(pipe, &call, e);
}

/* The blocks of a part's experts, on all ranks that share them: by unit, and of a unit by rank, as one rank has them that has
 * all.  *n: how many. */
static int gather_spread(const struct optimizer *o, const struct param_buffer *b, const double *sums, int64_t *n, struct err *e)
{
    struct comm *ranks = o->layout->expert;
    size_t align = b->buckets.align;

    *n = (int64_t)(b->params.elements / align) * ranks->size;
    memset(o->spread, 0, (size_t)*n * sizeof *o->spread);
    for (int u = 0; u < b->params.units; u++) {
        size_t from = b->unit[u].at / align, here = b->unit[u + 1].at / align - from;

        memcpy(o->spread + from * (size_t)ranks->size + here * (size_t)ranks->rank, sums + from, here * sizeof *sums);
    }
    return comm_all_reduce(ranks, o->spread, (size_t)*n, COMM_F64, COMM_SUM, e);
}

/* Adds the blocks of the k-th buffers in the order of the model, whichever stages have it: *sum, begun by those before, goes
 * from part to part.  The last stage has it all, the others 0. */
static int add_stages(const struct optimizer *o, int k, const double *sums, double *sum, struct err *e)
{
    struct comm *pipe = o->layout->pipe;
    bool first = pipe->rank == 0, last = pipe->rank == pipe->size - 1, spread = false;

    for (int i = 0; i < o->n; i++) {
        const struct param_buffer *b = o->parts[i].model->buffers[k];
        const double *one = sums, *end = sums + zero_blocks(&o->parts[i].shards[k]);
        int64_t n = end - one;

        sums = end;
        spread = b->conf.copies > 1 && b->trained;
        if (spread) {
            TRY(gather_spread(o, b, one, &n, e));
            one = o->spread;
        }
        if (pipe->size > 1 && !(first && i == 0))
            TRY(hand_on(pipe, false, sum, e));
        for (int64_t j = 0; j < n; j++)
            *sum += one[j];
        if (pipe->size > 1 && !(last && i == o->n - 1))
            TRY(hand_on(pipe, true, sum, e));
    }
    *sum = last && !(spread && o->layout->expert->rank) ? *sum : 0; /* once of those that have it all */
    return 0;
}

/* *sum: the squares of the k-th buffers of all parts and all ranks, from this rank's blocks at sums. */
static int add_blocks(const struct optimizer *o, int k, double *sums, int64_t *blocks, double *sum, struct err *e)
{
    const struct param_buffer_conf *c = &o->parts->model->buffers[k]->conf;

    *blocks = 0;
    *sum = 0;
    for (int i = 0; i < o->n; i++)
        *blocks += zero_blocks(&o->parts[i].shards[k]);
    if (param_buffer_ranks(c) > 1 && *blocks) /* each block is one rank's, and 0 elsewhere */
        TRY(comm_all_reduce(c->replicas, sums, (size_t)*blocks, COMM_F64, COMM_SUM, e));
    TRY(add_stages(o, k, sums, sum, e));
    return c->model ? comm_all_reduce(c->model, sum, 1, COMM_F64, COMM_SUM, e) : 0;
}

int optimizer_norm(struct optimizer *o, double max_norm, double *norm, struct err *e)
{
    size_t bytes = (size_t)o->blocks * sizeof *o->sums;
    double sum = 0, *at = o->sums, *host = o->host;

    TRY(device_zero(o->dev, o->sums, bytes, e));
    for (int i = 0; i < o->n * o->buffers; i++) {
        struct zero_shard *z = shard_of(o, i);

        TRY(zero_squares(z, at, e));
        at += zero_blocks(z);
    }
    TRY(device_get(o->dev, o->host, o->sums, bytes, e));
    for (int k = 0; k < o->buffers; k++) {
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
    o->clipped = max_norm > 0 ? fmin(1, max_norm / (*norm + 1e-6)) : 1;
    return 0;
}

/* ---- update ---- */

int optimizer_update(struct optimizer *o, const struct optim_step *settings, struct err *e)
{
    struct optim_step s = *settings;
    struct zero_shard *z;
    float clip;

    if (o->state != o->dev)
        TRY(device_get(o->dev, &clip, o->clip, sizeof clip, e));
    s.conf = o->optim;
    s.grad_scale = o->state != o->dev ? &clip : o->clip;
    if (optim_of(o->optim->kind)->momentum) {
        const struct optim_momentum m = optim_of(o->optim->kind)->momentum(o->optim);

        for (int i = 0; (z = shard_of(o, i)); i++)
            TRY(zero_momentum(z, &m, o->clipped, e));
    }
    TRY(matrices_direct(&o->matrices, &s, o->clipped, e));
    for (int i = 0; (z = shard_of(o, i)); i++)
        TRY(zero_update(z, &s, e));
    return 0;
}
