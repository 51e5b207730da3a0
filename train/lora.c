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

void lora_attach(const struct model *m, struct linear *l, int64_t layer, enum layer_param w, const struct lora_work *room)
{
    const struct param_buffer *b = l->experts ? &m->expert_adapters : &m->adapters;
    enum layer_param a = lora_param(w);

    l->a = b->params.n && a < LAYER_PARAMS ? params_layer(&b->params, layer, a) : -1;
    l->adapters = l->a < 0 ? NULL : b;
    l->lora = room;
}

/* A as a linear layer of its own, or B. */
static struct linear half(const struct linear *l, bool b)
{
    struct linear own = *l;

    own.buffer = l->adapters;
    own.w = l->a + b;
    own.b = -1;
    return own;
}

/* y (beta y +) = x W^T of one of the two. */
static int forward(struct model *m, const struct linear *l, void *y, float beta, const void *x, struct err *e)
{
    const struct param *p = &l->buffer->params.v[l->w];
    const struct matmul mm = {
        .m = l->rows, .n = p->shape[0], .k = p->shape[1], .trans_b = true, .dt = m->dt, .dt_c = m->dt, .a = x,
        .b = param_weight(l->buffer, l->w), .c = y, .beta = beta,
    };

    return linear_product(m, l, &mm, e);
}

/* dx (beta dx +) = dy W of one of the two. */
static int input_gradient(struct model *m, const struct linear *l, void *dx, float beta, const void *dy, struct err *e)
{
    const struct param *p = &l->buffer->params.v[l->w];
    const struct matmul mm = {
        .m = l->rows, .n = p->shape[1], .k = p->shape[0], .dt = m->dt, .dt_c = m->dt, .a = dy,
        .b = param_weight(l->buffer, l->w), .c = dx, .beta = beta,
    };

    return linear_product(m, l, &mm, e);
}

/* The gradient of one of the two, dy^T x over the rows. */
static int weight_gradient(struct model *m, const struct linear *l, const void *dy, const void *x, struct err *e)
{
    const struct param *p = &l->buffer->params.v[l->w];
    const struct matmul mm = {
        .m = p->shape[0], .n = p->shape[1], .k = l->rows, .trans_a = true, .dt = m->dt, .dt_c = DTYPE_F32, .a = dy, .b = x,
        .c = param_grad_copy(l->buffer, l->w, l->copy), .beta = l->buffer->overwrite ? 0 : 1,
    };

    return linear_product(m, l, &mm, e);
}

static int scale(struct model *m, const struct linear *l, void *x, struct err *e)
{
    return m->dev->ops->vec_scale(m->dev, m->dt, x, (float)lora_scale(&m->config), l->rows * m->config.lora_rank, e);
}

/* l->lora->down (rows, rank) = s x A^T. */
static int down(struct model *m, const struct linear *l, const void *x, struct err *e)
{
    const struct linear a = half(l, false);

    TRY(forward(m, &a, l->lora->down, 0, x, e));
    return scale(m, l, l->lora->down, e);
}

int lora_forward(struct model *m, const struct linear *l, void *y, const void *x, struct err *e)
{
    const struct linear b = half(l, true);

    TRY(down(m, l, x, e));
    return forward(m, &b, y, 1, l->lora->down, e);
}

int lora_backward(struct model *m, const struct linear *l, const void *dy, const void *x, struct err *e)
{
    const struct linear a = half(l, false), b = half(l, true);

    TRY(down(m, l, x, e));
    TRY(weight_gradient(m, &b, dy, l->lora->down, e));
    TRY(input_gradient(m, &b, l->lora->up, 0, dy, e)); /* (rows, rank): s dy B */
    TRY(scale(m, l, l->lora->up, e));
    return weight_gradient(m, &a, l->lora->up, x, e);
}

int lora_backward_input(struct model *m, const struct linear *l, void *dx, struct err *e)
{
    const struct linear a = half(l, false);

    return input_gradient(m, &a, dx, 1, l->lora->up, e);
}
