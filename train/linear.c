#include "train/linear.h"

#include "train/lora.h"
#include "train/model_pass.h"

struct linear linear_of(const struct model *m, int64_t layer, enum layer_param w, enum layer_param b, int64_t rows)
{
    struct linear l = {.buffer = &m->dense, .w = pass_param(m, layer, w), .b = pass_param(m, layer, b), .rows = rows};

    lora_attach(m, &l, layer, w, &m->lora);
    return l;
}

struct linear linear_output(const struct model *m, int64_t rows)
{
    return (struct linear){.buffer = &m->dense, .w = m->dense.params.output, .b = -1, .rows = rows};
}

/* ---- experts ---- */

/* Elements from an expert's parameter to the next one's. */
static int64_t step_of(const struct params *p, int i)
{
    return i < 0 || p->experts < 2 ? 0 : (int64_t)(p->v[i + p->per_expert].at - p->v[i].at);
}

static struct matmul_grouped grouped(const struct linear *l, const struct matmul *of)
{
    const struct params *p = &l->buffer->params;

    return (struct matmul_grouped){.of = *of, .groups = p->experts, .count = l->count, .known = l->known, .most = l->most,
                                   .step = step_of(p, l->w), .step_bias = step_of(p, l->b)};
}

/* Expert i's part of a product of all, whose rows begin at `first`; all that it is of is dense. */
static struct matmul part_of(const struct linear *l, struct matmul of, int64_t i, int64_t first)
{
    struct matmul_grouped q;

    of.lda = of.trans_a ? of.m : of.k;
    of.ldb = of.trans_b ? of.k : of.n;
    of.ldc = of.n;
    of.ragged = l->count != NULL;
    q = grouped(l, &of);
    of = matmul_group(&q, i, first, l->each[i]);
    of.lda = of.ldb = of.ldc = 0;
    return of;
}

/* ---- products ---- */

int linear_product(struct model *m, const struct linear *l, const struct matmul *of, struct err *e)
{
    struct matmul_grouped q;

    TRY(pass_progress(m, e));
    if (!l->experts)
        return m->dev->ops->matmul(m->dev, of, e);
    q = grouped(l, of);
    q.sums = of->sums;
    q.of.sums = NULL;
    return m->dev->ops->matmul_grouped(m->dev, &q, e);
}

/* ---- in FP8, each expert by itself, for each has scales of its own ---- */

static int groups_of(const struct linear *l)
{
    return l->experts ? (int)l->buffer->params.experts : 1;
}
static int fp8_weight(const struct model *m, const struct linear *l, int group)
{
    return l->wide ? -1 : pass_fp8(m, l->buffer, l->w + group * l->buffer->params.per_expert);
}
static struct matmul of_group(const struct linear *l, const struct matmul *all, int group, int64_t first)
{
    return l->experts ? part_of(l, *all, group, first) : *all;
}
static uint8_t *const *room_of(const struct model *m, const struct linear *l)
{
    return l->experts ? l->room : m->fp8->buf;
}

int linear_forward(struct model *m, const struct linear *l, void *y, const void *x, struct err *e)
{
    const struct param *p = &l->buffer->params.v[l->w];
    bool fp8 = fp8_weight(m, l, 0) >= 0, biased = l->b >= 0 && (p->split != 1 || pass_first(m));
    const struct matmul all = {
        .m = l->rows, .n = p->shape[0], .k = p->shape[1], .trans_b = true, .dt = m->dt, .dt_c = l->wide ? DTYPE_F32 : m->dt,
        .a = x, .b = param_weight(l->buffer, l->w), .c = y, .bias = biased ? param_weight(l->buffer, l->b) : NULL,
        .act = l->act, .aux = l->aux,
    };

    if (!fp8)
        TRY(linear_product(m, l, &all, e));
    for (int64_t i = 0, first = 0; fp8 && i < groups_of(l); first += l->experts ? l->each[i] : 0, i++) {
        struct matmul mm = of_group(l, &all, (int)i, first);

        TRY(pass_progress(m, e));
        TRY(pass_fp8_forward(m, &mm, fp8_weight(m, l, (int)i), room_of(m, l), e));
        TRY(m->dev->ops->matmul(m->dev, &mm, e));
    }
    return !l->adapters ? 0 : lora_forward(m, l, y, x, e);
}

int linear_backward(struct model *m, const struct linear *l, void *dx, const void *dy, const void *x, struct err *e)
{
    const struct param *p = &l->buffer->params.v[l->w];
    int64_t in = p->shape[1], out = p->shape[0];
    bool fp8 = fp8_weight(m, l, 0) >= 0;
    float *bias = param_grad_copy(l->buffer, l->b, l->copy);
    struct matmul weights = {
        .m = out, .n = in, .k = l->rows, .trans_a = true, .dt = m->dt, .dt_c = DTYPE_F32, .a = dy, .b = x,
        .c = param_grad_copy(l->buffer, l->w, l->copy), .beta = l->buffer->overwrite && !l->again ? 0 : 1,
    };
    const struct matmul inputs = {
        .m = l->rows, .n = in, .k = out, .dt = m->dt, .dt_c = m->dt, .a = dy, .b = param_weight(l->buffer, l->w), .c = dx,
        .beta = l->adds, .dact = l->before, .dact_aux = l->before_x,
    };

    if (l->adapters)
        TRY(lora_backward(m, l, dy, x, e));
    if (!fp8) {
        weights.sums = bias;
        if (weights.c)
            TRY(linear_product(m, l, &weights, e));
        TRY(linear_product(m, l, &inputs, e));
    }
    for (int64_t i = 0, first = 0; fp8 && i < groups_of(l); first += l->experts ? l->each[i] : 0, i++) {
        struct matmul weight = weights.c ? of_group(l, &weights, (int)i, first) : weights;
        struct matmul input = of_group(l, &inputs, (int)i, first);
        float *sums = bias ? bias + i * step_of(&l->buffer->params, l->b) : NULL; /* added up as the gradient is converted */

        TRY(pass_progress(m, e));
        TRY(pass_fp8_backward(m, weights.c ? &weight : NULL, &input, fp8_weight(m, l, (int)i), room_of(m, l), sums, e));
        if (weights.c)
            TRY(m->dev->ops->matmul(m->dev, &weight, e));
        TRY(pass_progress(m, e));
        TRY(m->dev->ops->matmul(m->dev, &input, e));
    }
    return !l->adapters ? 0 : lora_backward_input(m, l, dx, e);
}
