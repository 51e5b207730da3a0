#include "train/zero_codes.h"

#include <stdlib.h>

enum { CHUNK = 1 << 18 }; /* elements that are loaded at a time */

static const enum checkpoint_part scales[][2] = {
    {CHECKPOINT_EXP_AVG, CHECKPOINT_EXP_AVG_SCALE},
    {CHECKPOINT_EXP_AVG_SQ, CHECKPOINT_EXP_AVG_SQ_SCALE},
    {CHECKPOINT_MOMENTUM, CHECKPOINT_MOMENTUM_SCALE},
};
enum { SCALED = sizeof scales / sizeof *scales };

enum checkpoint_part zero_scaled(enum checkpoint_part part)
{
    for (int i = 0; i < SCALED; i++)
        if (scales[i][1] == part)
            return scales[i][0];
    return CHECKPOINT_WEIGHTS;
}

/* A parameter's scales, as a parameter. */
static struct param scales_param(const struct param *p)
{
    struct param q = *p;
    int64_t elements = p->whole[0] * param_columns(p), cols = p->dims > 1 ? p->shape[1] : 1;

    q.n = (size_t)eight_bit_blocks((int64_t)p->n);
    if (p->dims > 1 && p->whole[1] % EIGHT_BIT_BLOCK == 0) {
        q.whole[1] /= EIGHT_BIT_BLOCK;
        q.shape[1] /= EIGHT_BIT_BLOCK;
        q.column /= EIGHT_BIT_BLOCK;
        return q;
    }
    q.dims = 1;
    q.whole[0] = eight_bit_blocks(elements);
    q.whole[1] = q.shape[1] = 0;
    if ((int64_t)p->n == elements) {
        q.parts = 1;
        q.part[0] = q.whole[0];
    }
    for (int i = 0; i < q.parts && (int64_t)p->n < elements; i++) {
        q.part[i] = p->part[i] * cols / EIGHT_BIT_BLOCK;
        q.first[i] = p->first[i] * cols / EIGHT_BIT_BLOCK;
    }
    q.shape[0] = (int64_t)q.n;
    return q;
}

int zero_scale_pieces(const struct zero_shard *z, int i, enum checkpoint_part part, const struct shard_range *r, struct piece *v)
{
    const struct param q = scales_param(r->param);
    struct shard_range s = *r;
    int n;

    s.param = &q;
    s.at = q.at + (r->at - r->param->at) / EIGHT_BIT_BLOCK;
    s.n = (size_t)eight_bit_blocks((int64_t)r->n);
    n = bucketing_range_pieces(&s, part, zero_scale(z, i, r, 0), DTYPE_F32, v);
    for (int k = 0; k < n; k++)
        v[k].name = r->param->name;
    return n;
}

/* Buffers on the host for a chunk. */
struct chunk {
    float x[CHUNK], scale[CHUNK / EIGHT_BIT_BLOCK];
    uint8_t code[CHUNK];
};

/* n elements from `off` on of a range, which begin a block; known: their scales are there. */
static int load(struct zero_shard *z, const struct checkpoint *ck, int i, enum checkpoint_part part, bool known,
                const struct shard_range *r, size_t off, size_t n, struct chunk *c, struct err *e)
{
    struct piece v[3 * PIECES_PER_PARAM];
    struct shard_range s = *r;
    size_t bytes = (size_t)eight_bit_blocks((int64_t)n) * sizeof *c->scale;

    s.at += off;
    s.n = n;
    TRY(checkpoint_load(ck, NULL, v, bucketing_range_pieces(&s, part, c->x, DTYPE_F32, v), e));
    TRY(device_get(z->dev, c->scale, zero_scale(z, i, r, off), bytes, e));
    for (size_t k = 0; k < n; k += EIGHT_BIT_BLOCK)
        eight_bit_encode(eight_bit_levels(i == 0), i == 0, c->x + k, n - k < EIGHT_BIT_BLOCK ? (int64_t)(n - k) : EIGHT_BIT_BLOCK,
                         known, c->code + k, &c->scale[k / EIGHT_BIT_BLOCK]);
    TRY(device_put(z->dev, zero_scale(z, i, r, off), c->scale, bytes, e));
    return device_put(z->dev, zero_state(z, i, r, off), c->code, n, e);
}

int zero_codes_load(struct zero_shard *z, const struct checkpoint *ck, struct err *e)
{
    struct chunk *c = malloc(sizeof *c);
    struct shard_range r = {0};
    int rc = c ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    while (rc == 0 && z->buffer->trained && bucketing_next(&z->buffer->buckets, &z->buffer->params, &r))
        for (int k = 0, i; k < SCALED; k++) {
            if ((i = optim_state(&r.param->rule, scales[k][0])) < 0 || !z->scale[i])
                continue;
            for (size_t off = 0, n; rc == 0 && off < r.n; off += n) {
                n = r.n - off < CHUNK ? r.n - off : CHUNK;
                rc = load(z, ck, i, scales[k][0], checkpoint_has(ck, scales[k][1]), &r, off, n, c, e);
            }
        }
    free(c);
    return rc;
}
