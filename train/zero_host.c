#include "train/zero_host.h"

enum { STAGED = 1 << 21 }; /* elements on their way at once */

/* A part of the shard.  Zeroed: before the first. */
struct staged {
    struct shard_range range;
    size_t off, n; /* elements off .. off + n - 1 of the range */
};

static bool next_staged(const struct zero_shard *z, struct staged *p)
{
    p->off += p->n;
    if (p->off == p->range.n) {
        if (!bucketing_next(&z->buffer->buckets, &z->buffer->params, &p->range))
            return false;
        p->off = 0;
    }
    p->n = p->range.n - p->off < STAGED ? p->range.n - p->off : STAGED;
    return true;
}

/* The same of parameters that are trained. */
static bool next_trained(const struct zero_shard *z, struct staged *p)
{
    bool more;

    do
        more = next_staged(z, p);
    while (more && p->range.param->frozen);
    return more;
}

size_t zero_host_stage_bytes(void)
{
    return 3 * STAGED * sizeof(float);
}

int zero_host_open(struct zero_shard *z, struct err *e)
{
    struct device *model = z->buffer->dev;

    for (int i = 0; i < 2; i++)
        TRY(device_alloc_host(model, (void **)&z->stage_grad[i], STAGED * sizeof(float), e));
    return device_alloc_host(model, &z->stage_weight, STAGED * sizeof(float), e);
}

void zero_host_close(struct zero_shard *z)
{
    for (int i = 0; i < 2; i++)
        device_free_host(z->buffer->dev, z->stage_grad[i]);
    device_free_host(z->buffer->dev, z->stage_weight);
}

/* The weights in z->stage_weight set out for the model's device. */
static int put_weights(struct zero_shard *z, const struct staged *p, struct err *e)
{
    const struct param_buffer *b = z->buffer;
    size_t size = dtype_size(b->dt), at = (z->sent ? p->range.here : p->range.at) + p->off;
    char *to = z->sent ? z->sent : b->low ? (void *)b->low : (void *)b->weights;

    return device_put_later(b->dev, to + at * size, z->stage_weight, p->n * size, e);
}

int zero_host_weights_changed(struct zero_shard *z, struct err *e)
{
    struct param_buffer *b = z->buffer;
    struct staged p = {0};

    while (next_staged(z, &p)) {
        TRY(device_sync(b->dev, e));
        TRY(z->dev->ops->vec_cast(z->dev, z->stage_weight, b->dt, z->main + p.range.here + p.off, DTYPE_F32, (int64_t)p.n, e));
        TRY(put_weights(z, &p, e));
    }
    return device_sync(b->dev, e);
}

static int get_grads(struct zero_shard *z, const struct staged *p, float *to, struct err *e)
{
    return device_get_later(z->buffer->dev, to, param_reduced(z->buffer, &p->range) + p->off, p->n * sizeof *to, e);
}

int zero_host_momentum(struct zero_shard *z, const struct optim_momentum *m, double grad_scale, struct err *e)
{
    struct staged p = {0};

    for (int k = 0; next_trained(z, &p); k = !k) {
        float *grad = z->stage_grad[k], *state = zero_state(z, 0, &p.range, p.off);

        if (!p.range.param->rule.whole)
            continue;
        TRY(get_grads(z, &p, grad, e));
        TRY(device_sync(z->buffer->dev, e));
        TRY(zero_take_up(z->dev, m, grad_scale, state, grad, p.n, e));
        TRY(device_put_later(z->buffer->dev, param_reduced(z->buffer, &p.range) + p.off, grad, p.n * sizeof *grad, e));
    }
    return device_sync(z->buffer->dev, e);
}

/* State and main weights of a part, and z->stage_weight.  What whole matrices have made stands in the gradients' place. */
static int update_staged(struct zero_shard *z, const struct update *u, const struct staged *p, float *grad, struct err *e)
{
    bool low = z->buffer->dt == DTYPE_BF16;
    float *main = z->main + p->range.here + p->off;
    void *first = p->range.param->rule.whole ? grad : zero_state(z, 0, &p->range, p->off);

    TRY(z->dev->ops->update(z->dev, u, main, first, zero_state(z, 1, &p->range, p->off), grad, low ? z->stage_weight : NULL,
                            (int64_t)p->n, e));
    return low ? 0 : device_copy(z->dev, z->stage_weight, main, p->n * sizeof(float), e);
}

int zero_host_update(struct zero_shard *z, const struct optim_step *s, struct err *e)
{
    struct staged now = {0}, next;
    bool more = next_trained(z, &now);

    if (more)
        TRY(get_grads(z, &now, z->stage_grad[0], e));
    for (int k = 0; more; k = !k, now = next) {
        const struct update u = zero_update_of(z, s, &now.range, now.off);

        TRY(device_sync(z->buffer->dev, e)); /* these gradients are here, and the weights before are gone */
        next = now;
        more = next_trained(z, &next);
        if (more)
            TRY(get_grads(z, &next, z->stage_grad[!k], e));
        TRY(update_staged(z, &u, &now, z->stage_grad[k], e));
        TRY(put_weights(z, &now, e));
    }
    return device_sync(z->buffer->dev, e);
}
