#include "train/zero_shard.h"

#include <string.h>

#include "base/hash.h"
#include "train/zero_codes.h"
#include "train/zero_host.h"

/* ---- memory ---- */

static size_t blocks_of(size_t elements, size_t align)
{
    return align ? (elements + align - 1) / align : 1;
}

/* Whether the fp32 weights of the shard stand apart from the buffer. */
static bool has_main(const struct param_buffer_memory *m, const struct param_buffer_conf *c)
{
    return (m->weights == 0 || c->offload) && !c->bf16_alone;
}

/* Bytes of the weights of the shard as they are sent, where they cannot be made from the fp32 ones. */
static size_t sent_bytes(const struct param_buffer_memory *m, const struct param_buffer_conf *c, enum dtype dt)
{
    return (c->offload || c->bf16_alone) && param_buffer_shares(c, SHARD_OPTIM_GRADS_PARAMS) ?
           m->elements / (size_t)param_buffer_ranks(c) * dtype_size(dt) : 0;
}

/* Bytes of the scales of the i-th state. */
static size_t scale_bytes(const struct param_buffer_memory *m, const struct param_buffer_conf *c, int i)
{
    return c->state[i] == DTYPE_8BIT ? (size_t)eight_bit_blocks((int64_t)m->state[i]) * sizeof(float) : 0;
}

struct zero_memory zero_plan(const struct param_buffer_memory *m, const struct param_buffer_conf *c, enum dtype dt)
{
    size_t shard = m->elements / (size_t)param_buffer_ranks(c) * sizeof(float), state = 0;
    struct zero_memory z = {
        .weights = sent_bytes(m, c, dt), .optimizer = m->trained ? 2 * blocks_of(m->elements, c->align) * sizeof(double) : 0,
    };

    for (int k = 0; k < PARAM_STATES; k++)
        state += m->state[k] * dtype_size(c->state[k]) + scale_bytes(m, c, k);
    if (c->offload)
        z.host = shard + state + zero_host_stage_bytes();
    else
        z.optimizer += shard * has_main(m, c) + state;
    return z;
}

static int alloc_zeroed(struct device *dev, enum memory_kind kind, void **p, size_t bytes, struct err *e)
{
    TRY(device_alloc_as(dev, kind, p, bytes, e));
    return device_zero(dev, *p, bytes, e);
}

int zero_open(struct zero_shard *z, struct param_buffer *b, struct device *host, struct err *e)
{
    size_t bytes = bucketing_own(&b->buckets) * sizeof(float), sent = sent_bytes(&b->memory, &b->conf, b->dt);

    *z = (struct zero_shard){.buffer = b, .dev = b->conf.offload ? host : b->dev, .packed = !bucketing_all_have(&b->params, 1)};
    for (int i = 0; i < PARAM_STATES; i++) {
        size_t scales = scale_bytes(&b->memory, &b->conf, i);

        if (b->memory.state[i])
            TRY(device_alloc_as(z->dev, MEMORY_OPTIMIZER, &z->state[i], b->memory.state[i] * dtype_size(b->conf.state[i]), e));
        if (scales)
            TRY(device_alloc_as(z->dev, MEMORY_OPTIMIZER, (void **)&z->scale[i], scales, e));
    }
    TRY(zero_forget(z, e));
    if (has_main(&b->memory, &b->conf))
        TRY(alloc_zeroed(z->dev, MEMORY_OPTIMIZER, (void **)&z->main, bytes, e));
    if (sent)
        TRY(alloc_zeroed(b->dev, MEMORY_WEIGHTS, &z->sent, sent, e));
    b->shard_main = z->main;
    b->shard_sent = z->sent;
    return b->conf.offload ? zero_host_open(z, e) : 0;
}

int zero_forget(struct zero_shard *z, struct err *e)
{
    const struct param_buffer *b = z->buffer;

    for (int i = 0; i < PARAM_STATES; i++) {
        if (z->state[i])
            TRY(device_zero(z->dev, z->state[i], b->memory.state[i] * dtype_size(b->conf.state[i]), e));
        if (z->scale[i])
            TRY(device_zero(z->dev, z->scale[i], scale_bytes(&b->memory, &b->conf, i), e));
    }
    return 0;
}

void zero_close(struct zero_shard *z)
{
    if (!z->buffer)
        return;
    for (int i = 0; i < PARAM_STATES; i++) {
        device_free(z->dev, z->state[i]);
        device_free(z->dev, z->scale[i]);
    }
    device_free(z->dev, z->main);
    device_free(z->buffer->dev, z->sent);
    if (z->buffer->conf.offload)
        zero_host_close(z);
    *z = (struct zero_shard){0};
}

/* ---- weights ---- */

/* The weights of the shard of bucket i. */
static void *weights_of(const struct zero_shard *z, int i)
{
    const struct bucketing *s = &z->buffer->buckets;

    return zero_weights(z, bucketing_here(s, i), bucketing_from(s, i));
}

int zero_weights_changed(struct zero_shard *z, struct err *e)
{
    struct param_buffer *b = z->buffer;
    const struct bucketing *s = &b->buckets;

    if (b->conf.offload)
        TRY(zero_host_weights_changed(z, e));
    for (int i = 0; i < s->n && b->low && !b->conf.offload && !b->conf.bf16_alone; i++)
        TRY(b->dev->ops->vec_cast(b->dev, b->low + bucketing_from(s, i), DTYPE_BF16, weights_of(z, i), DTYPE_F32,
                                  (int64_t)bucketing_share(s, i), e));
    return param_gather_again(b, false, e);
}

/* Bucket i, in place or by way of the host's memory. */
static int fill(struct zero_shard *z, int i, uint64_t seed, struct err *e)
{
    const struct param_buffer *b = z->buffer;
    size_t first = bucketing_from(&b->buckets, i), n = bucketing_share(&b->buckets, i), size = sizeof(float);
    bool low = b->conf.bf16_alone;
    void *to = weights_of(z, i), *host = to;
    int rc = 0;

    if (low || z->dev->kind != DEVICE_CPU)
        TRY(device_alloc_host(b->dev, &host, n * size, e));
    params_fill_range(&b->params, seed, first, n, host);
    for (size_t k = 0; low && k < n; k++)
        ((uint16_t *)host)[k] = bf16_of(((const float *)host)[k]);
    size = low ? sizeof(uint16_t) : size;
    if (host != to) {
        rc = device_put(b->dev, to, host, n * size, e);
        device_free_host(b->dev, host);
    }
    return rc;
}

int zero_fill(struct zero_shard *z, uint64_t seed, struct err *e)
{
    for (int i = 0; i < z->buffer->buckets.n; i++)
        TRY(fill(z, i, seed, e));
    return 0;
}

int zero_scale_rows(struct zero_shard *z, int i, int64_t row, int64_t rows, double by, struct err *e)
{
    const struct param_buffer *b = z->buffer;
    const struct param *p = i < 0 ? NULL : &b->params.v[i];
    size_t cols = p && p->dims == 2 ? (size_t)p->shape[1] : 1, first = p ? p->at + (size_t)row * cols : 0;
    struct shard_range r = {0};

    while (p && !p->frozen && bucketing_next(&b->buckets, &b->params, &r)) {
        size_t lo = first > r.at ? first : r.at, hi = first + (size_t)rows * cols, here = r.here + (lo - r.at);

        hi = hi < r.at + r.n ? hi : r.at + r.n;
        if (r.param == p && lo < hi)
            TRY(z->dev->ops->vec_scale(z->dev, zero_weights_type(z), zero_weights(z, here, lo), (float)by, (int64_t)(hi - lo),
                                       e));
    }
    return 0;
}

/* ---- checkpoints ---- */

int zero_pieces_max(const struct zero_shard *z)
{
    return bucketing_pieces_max(&z->buffer->buckets, &z->buffer->params);
}

static int state_pieces(const struct zero_shard *z, enum checkpoint_part part, struct piece *v)
{
    const struct param_buffer *b = z->buffer;
    size_t all[] = {0, b->params.elements};
    const struct bucketing whole = {.ranks = 1, .n = 1, .at = all}, *s = b->buckets.ranks == 1 ? &whole : &b->buckets;
    struct shard_range r = {0};
    bool scales = zero_scaled(part) != CHECKPOINT_WEIGHTS;
    int n = 0, i;

    while (bucketing_next(s, &b->params, &r)) {
        int k = n;

        i = optim_state(&r.param->rule, scales ? zero_scaled(part) : part);
        if (i >= 0 && scales && z->scale[i])
            n += zero_scale_pieces(z, i, part, &r, v + n);
        if (i >= 0 && !scales)
            n += bucketing_range_pieces(&r, part, zero_state(z, i, &r, 0), b->conf.state[i], v + n);
        for (; k < n && !scales && z->scale[i]; k++) {
            v[k].codes = z->state[i];
            v[k].scale = z->scale[i];
        }
    }
    return n;
}

int zero_pieces(const struct zero_shard *z, enum checkpoint_part part, struct piece *v)
{
    const struct param_buffer *b = z->buffer;
    bool in_buffer = b->conf.bf16_alone ? !z->sent : !z->main;

    if (part != CHECKPOINT_WEIGHTS)
        return b->trained ? state_pieces(z, part, v) : 0;
    return bucketing_pieces(&b->buckets, &b->params, part, zero_weights(z, 0, 0), zero_weights_type(z), in_buffer, v);
}

/* ---- norm ---- */

int64_t zero_blocks(const struct zero_shard *z)
{
    return z->buffer->trained ? (int64_t)blocks_of(z->buffer->params.elements, z->buffer->buckets.align) : 0;
}

int zero_squares(const struct zero_shard *z, double *sums, struct err *e)
{
    const struct param_buffer *b = z->buffer;
    struct shard_range r = {0};
    size_t align = b->buckets.align;

    while (b->trained && bucketing_next(&b->buckets, &b->params, &r)) {
        const float *grad = param_reduced(b, &r);
        size_t lo = r.at, end = r.at + r.n;

        while (lo < end && !r.param->repeated && !r.param->frozen) {
            size_t n = lo % align && align - lo % align < end - lo ? align - lo % align : end - lo;

            TRY(b->dev->ops->vec_sumsq(b->dev, DTYPE_F32, sums + lo / align, (int64_t)align, grad + (lo - r.at), (int64_t)n, e));
            lo += n;
        }
    }
    return 0;
}

/* ---- update ---- */

int zero_take_up(struct device *dev, const struct optim_momentum *p, double grad_scale, float *m, float *grad, size_t n,
                 struct err *e)
{
    const struct device_ops *ops = dev->ops;
    float fresh = (float)((1 - p->b) * grad_scale), b = (float)p->b;

    TRY(ops->vec_scale(dev, DTYPE_F32, m, b, (int64_t)n, e));
    TRY(ops->vec_axpy(dev, DTYPE_F32, m, fresh, grad, (int64_t)n, e));
    if (!p->nesterov)
        return device_copy(dev, grad, m, n * sizeof *m, e);
    TRY(ops->vec_scale(dev, DTYPE_F32, grad, fresh, (int64_t)n, e));
    return ops->vec_axpy(dev, DTYPE_F32, grad, b, m, (int64_t)n, e);
}

int zero_momentum(struct zero_shard *z, const struct optim_momentum *m, double grad_scale, struct err *e)
{
    const struct param_buffer *b = z->buffer;
    struct shard_range r = {0};

    if (b->trained && b->conf.offload)
        return zero_host_momentum(z, m, grad_scale, e);
    while (b->trained && bucketing_next(&b->buckets, &b->params, &r))
        if (r.param->rule.whole && !r.param->frozen)
            TRY(zero_take_up(z->dev, m, grad_scale, zero_state(z, 0, &r, 0), param_reduced(b, &r), r.n, e));
    return 0;
}

/* The state that an update takes: where whole matrices have made it, that has been seen to, and the gradient's place is free. */
static void *first_state(const struct zero_shard *z, const struct shard_range *r, size_t n)
{
    return r->param->rule.whole ? param_reduced(z->buffer, r) + n : zero_state(z, 0, r, n);
}

/* Of bf16 weights, by rectangles of the logical tensor: each element is rounded as in every layout. */
static int update_low(struct zero_shard *z, const struct update *settings, const struct shard_range *r, struct err *e)
{
    struct update u = *settings;
    struct piece v[3 * PIECES_PER_PARAM];
    size_t at = 0;

    u.round.key = hash_xxh3_64_seed(span_of(r->param->name), u.round.key);
    for (int i = 0, n = bucketing_rectangles(r, CHECKPOINT_WEIGHTS, v); i < n; i++) {
        size_t all = (size_t)(v[i].rows * v[i].cols);

        u.round.first = v[i].row * piece_width(&v[i]) + v[i].col;
        u.round.cols = v[i].cols;
        u.round.width = piece_width(&v[i]);
        TRY(z->dev->ops->update(z->dev, &u, NULL, first_state(z, r, at), zero_state(z, 1, r, at),
                                param_reduced(z->buffer, r) + at, zero_weights(z, r->here + at, r->at + at), (int64_t)all, e));
        at += all;
    }
    return 0;
}

static int update(struct zero_shard *z, const struct optim_step *s, struct err *e)
{
    const struct param_buffer *b = z->buffer;
    struct shard_range r = {0};

    while (bucketing_next(&b->buckets, &b->params, &r)) { /* tensors differ in their rules, so each has a call of its own */
        const struct update u = zero_update_of(z, s, &r, 0);

        if (r.param->frozen)
            continue;
        if (b->conf.bf16_alone) {
            TRY(update_low(z, &u, &r, e));
            continue;
        }
        TRY(z->dev->ops->update(z->dev, &u, zero_weights(z, r.here, r.at), first_state(z, &r, 0),
                                zero_state(z, 1, &r, 0), param_reduced(b, &r), b->low ? b->low + r.at : NULL, (int64_t)r.n, e));
    }
    return 0;
}

int zero_update(struct zero_shard *z, const struct optim_step *s, struct err *e)
{
    struct param_buffer *b = z->buffer;

    if (!b->trained)
        return 0;
    TRY(b->conf.offload ? zero_host_update(z, s, e) : update(z, s, e));
    return param_gather_again(b, b->conf.overlap_gather, e);
}
