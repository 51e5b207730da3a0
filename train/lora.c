#include "train/lora.h"

#include <inttypes.h>
#include <math.h>

#include "train/model_pass.h"

double lora_scale(const struct model_config *c)
{
    double rank = (double)c->lora_rank;

    return c->lora_alpha / (c->lora_rslora ? sqrt(rank) : rank);
}

int lora_same(const struct model_config *a, const struct model_config *b, const char *path, struct err *e)
{
    if (!a->lora_rank)
        return 0;
    if (!b->lora_rank)
        return err_set(e, ERR_ARG, "%s has adapters: --lora-rank %" PRId64 " trains them, quern checkpoint merge adds them to the"
                       " weights", path, a->lora_rank);
    if (a->lora_rank != b->lora_rank || a->lora_targets != b->lora_targets)
        return err_set(e, ERR_ARG, "%s: its adapters are of --lora-rank %" PRId64 " and layers %" PRId64 ", not %" PRId64
                       " and %" PRId64, path, a->lora_rank, a->lora_targets, b->lora_rank, b->lora_targets);
    if (lora_scale(a) != lora_scale(b))
        return err_set(e, ERR_ARG, "%s: its adapters are scaled by %g, not %g (--lora-alpha, --lora-rslora)", path,
                       lora_scale(a), lora_scale(b));
    return 0;
}

const struct param *lora_of(const struct model *m, int64_t layer, enum layer_param w)
{
    const struct params *p = &m->adapters.params;
    enum layer_param a = lora_param(w);
    int i = p->n && a < LAYER_PARAMS ? params_layer(p, layer, a) : -1;

    return i < 0 ? NULL : &p->v[i];
}

static const void *weight_of(const struct model *m, const struct param *p)
{
    return param_weight(&m->adapters, (int)(p - m->adapters.params.v));
}

static int product(struct model *m, const struct matmul *of, struct err *e)
{
    TRY(pass_progress(m, e));
    return m->dev->ops->matmul(m->dev, of, e);
}

/* m->lora.down (rows, rank) = s x A^T. */
static int down(struct model *m, const struct linear *l, const void *x, struct err *e)
{
    const struct param *a = l->adapter;
    const struct matmul mm = {
        .m = l->rows, .n = a->shape[0], .k = a->shape[1], .trans_b = true, .dt = m->dt, .dt_c = m->dt, .a = x,
        .b = weight_of(m, a), .c = m->lora.down,
    };

    TRY(product(m, &mm, e));
    return m->dev->ops->vec_scale(m->dev, m->dt, mm.c, (float)lora_scale(&m->config), mm.m * mm.n, e);
}

int lora_forward(struct model *m, const struct linear *l, void *y, const void *x, struct err *e)
{
    const struct param *b = l->adapter + 1;
    const struct matmul up = {
        .m = l->rows, .n = b->shape[0], .k = b->shape[1], .trans_b = true, .dt = m->dt, .dt_c = m->dt, .a = m->lora.down,
        .b = weight_of(m, b), .c = y, .beta = 1,
    };

    TRY(down(m, l, x, e));
    return product(m, &up, e);
}

/* The gradient of p, dy^T x over the rows. */
static int weight_gradient(struct model *m, const struct linear *l, const struct param *p, const void *dy, const void *x,
                           struct err *e)
{
    const struct matmul mm = {
        .m = p->shape[0], .n = p->shape[1], .k = l->rows, .trans_a = true, .dt = m->dt, .dt_c = DTYPE_F32, .a = dy, .b = x,
        .c = param_grad(&m->adapters, (int)(p - m->adapters.params.v)), .beta = m->adapters.overwrite ? 0 : 1,
    };

    return product(m, &mm, e);
}

int lora_backward(struct model *m, const struct linear *l, const void *dy, const void *x, struct err *e)
{
    const struct param *b = l->adapter + 1;
    const struct matmul back = {
        .m = l->rows, .n = b->shape[1], .k = b->shape[0], .dt = m->dt, .dt_c = m->dt, .a = dy,
        .b = weight_of(m, b), .c = m->lora.up,
    };

    TRY(down(m, l, x, e));
    TRY(weight_gradient(m, l, b, dy, m->lora.down, e));
    TRY(product(m, &back, e)); /* (rows, rank): s dy B */
    TRY(m->dev->ops->vec_scale(m->dev, m->dt, back.c, (float)lora_scale(&m->config), back.m * back.n, e));
    return weight_gradient(m, l, l->adapter, m->lora.up, x, e);
}

int lora_backward_input(struct model *m, const struct linear *l, void *dx, struct err *e)
{
    const struct param *a = l->adapter;
    const struct matmul mm = {
        .m = l->rows, .n = a->shape[1], .k = a->shape[0], .dt = m->dt, .dt_c = m->dt, .a = m->lora.up,
        .b = weight_of(m, a), .c = dx, .beta = 1,
    };

    return product(m, &mm, e);
}
