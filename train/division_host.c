#include "train/division_host.h"

enum { PIECE = 1 << 21 }; /* elements */

/* A piece of what this rank keeps of a parameter.  Zeroed: before the first. */
struct piece_of_share {
    struct shard_range range;
    size_t off, n; /* elements first .. first + n - 1 of the range */
};

static bool next_piece(const struct division *d, struct piece_of_share *p)
{
    p->off += p->n;
    if (p->off == p->range.n) {
        if (!shards_next(&d->store->shards, &d->store->params, &p->range))
            return false;
        p->off = 0;
    }
    p->n = p->range.n - p->off < PIECE ? p->range.n - p->off : PIECE;
    return true;
}

size_t host_stage_bytes(void)
{
    return 3 * PIECE * sizeof(float);
}

int host_open(struct division *d, struct err *e)
{
    for (int i = 0; i < 2; i++)
        TRY(device_alloc_host(d->dev, (void **)&d->stage_grad[i], PIECE * sizeof(float), e));
    return device_alloc_host(d->dev, &d->stage_weight, PIECE * sizeof(float), e);
}

void host_close(struct division *d)
{
    for (int i = 0; i < 2; i++)
        device_free_host(d->dev, d->stage_grad[i]);
    device_free_host(d->dev, d->stage_weight);
}

/* Weights of a piece, in d->stage_weight, set out for the model's device. */
static int put_weights(struct division *d, const struct piece_of_share *p, struct err *e)
{
    const struct store *s = d->store;
    size_t size = dtype_size(s->dt), at = (d->share ? p->range.here : p->range.at) + p->off;
    char *to = d->share ? d->share : s->low ? (void *)s->low : (void *)s->weights;

    return device_put_later(d->dev, to + at * size, d->stage_weight, p->n * size, e);
}

int host_weights_changed(struct division *d, struct err *e)
{
    struct piece_of_share p = {0};

    while (next_piece(d, &p)) {
        TRY(device_sync(d->dev, e));
        TRY(d->host->ops->vec_cast(d->host, d->stage_weight, d->store->dt, d->master + p.range.here + p.off, DTYPE_F32,
                                   (int64_t)p.n, e));
        TRY(put_weights(d, &p, e));
    }
    return device_sync(d->dev, e);
}

static int get_grads(struct division *d, const struct piece_of_share *p, float *to, struct err *e)
{
    return device_get_later(d->dev, to, division_grad(d, &p->range) + p->off, p->n * sizeof *to, e);
}

/* Moments and master weights of a piece, and d->stage_weight. */
static int update_piece(struct division *d, const struct adamw *a, const struct piece_of_share *p, const float *grad,
                        struct err *e)
{
    size_t here = p->range.here + p->off;
    bool low = d->store->dt == DTYPE_BF16;

    TRY(d->host->ops->adamw(d->host, a, d->master + here, d->exp_avg + here, d->exp_avg_sq + here, grad,
                            low ? d->stage_weight : NULL, (int64_t)p->n, e));
    return low ? 0 : device_copy(d->host, d->stage_weight, d->master + here, p->n * sizeof(float), e);
}

int host_update(struct division *d, const struct adamw *settings, double weight_decay, struct err *e)
{
    struct adamw a = *settings;
    struct piece_of_share now = {0}, next;
    bool more = next_piece(d, &now);

    if (more)
        TRY(get_grads(d, &now, d->stage_grad[0], e));
    for (int k = 0; more; k = !k, now = next) {
        TRY(device_sync(d->dev, e)); /* these gradients are here, and the weights before are gone */
        next = now;
        more = next_piece(d, &next);
        if (more)
            TRY(get_grads(d, &next, d->stage_grad[!k], e));
        a.weight_decay = param_decays(now.range.param) ? weight_decay : 0;
        TRY(update_piece(d, &a, &now, d->stage_grad[k], e));
        TRY(put_weights(d, &now, e));
    }
    return device_sync(d->dev, e);
}
