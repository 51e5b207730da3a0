#include "train/optimizer.h"

#include <math.h>

#include "train/exchange.h"

int optimizer_open(struct optimizer *o, struct device *dev, const struct layout *l, struct train_part *parts, int n,
                   struct err *e)
{
    *o = (struct optimizer){.dev = dev, .layout = l, .parts = parts, .n = n};
    for (int i = 0; i < n; i++) {
        float **moment[] = {&parts[i].exp_avg, &parts[i].exp_avg_sq};
        size_t bytes = parts[i].model->memory.weights;

        for (int k = 0; k < 2; k++) {
            TRY(device_alloc(dev, (void **)moment[k], bytes, e));
            TRY(device_zero(dev, *moment[k], bytes, e));
        }
    }
    TRY(device_alloc(dev, (void **)&o->sumsq, sizeof *o->sumsq, e));
    return device_alloc(dev, (void **)&o->clip, sizeof *o->clip, e);
}

void optimizer_close(struct optimizer *o)
{
    for (int i = 0; i < o->n; i++) {
        device_free(o->dev, o->parts[i].exp_avg);
        device_free(o->dev, o->parts[i].exp_avg_sq);
    }
    if (o->dev) {
        device_free(o->dev, o->sumsq);
        device_free(o->dev, o->clip);
    }
    *o = (struct optimizer){0};
}

/* The embedding that the first stage looks up and the last one multiplies by. */
static int sum_tied(struct optimizer *o, struct model *m, struct err *e)
{
    int i = m->part.embeds ? m->params.word : m->part.heads ? m->params.output : -1;

    if (!o->layout->tied || m->whole.untie || i < 0)
        return 0;
    return exchange_sum(o->dev, o->layout->tied, m->grads + m->params.v[i].at, m->params.v[i].n, COMM_F32, e);
}

int optimizer_reduce(struct optimizer *o, struct err *e)
{
    for (int i = 0; i < o->n; i++) {
        struct model *m = o->parts[i].model;

        TRY(model_sum_grads(m, e));
        TRY(sum_tied(o, m, e));
        TRY(data_parallel_reduce(&o->parts[i].ranks, m->grads, e));
    }
    return 0;
}

/* Adds to o->sumsq what the part has of the model's gradient and no other rank counts. */
static int add_squares(struct optimizer *o, const struct model *m, struct err *e)
{
    vec_sumsq_fn *sumsq = o->dev->ops->vec_sumsq;

    if (o->layout->model->size == 1)
        return sumsq(o->dev, DTYPE_F32, o->sumsq, m->grads, (int64_t)m->params.elements, e);
    for (int i = 0; i < m->params.n; i++) {
        const struct param *p = &m->params.v[i];

        if (!p->repeated)
            TRY(sumsq(o->dev, DTYPE_F32, o->sumsq, m->grads + p->at, (int64_t)p->n, e));
    }
    return 0;
}

int optimizer_norm(struct optimizer *o, double max_norm, double *norm, struct err *e)
{
    double sum;

    TRY(device_zero(o->dev, o->sumsq, sizeof *o->sumsq, e));
    for (int i = 0; i < o->n; i++)
        TRY(add_squares(o, o->parts[i].model, e));
    if (o->layout->model->size > 1)
        TRY(exchange_sum(o->dev, o->layout->model, o->sumsq, 1, COMM_F64, e));
    TRY(o->dev->ops->clip_scale(o->dev, o->clip, o->sumsq, (float)max_norm, e));
    TRY(device_get(o->dev, &sum, o->sumsq, sizeof sum, e));
    *norm = sqrt(sum);
    return 0;
}

int optimizer_update(struct optimizer *o, const struct adamw *settings, double weight_decay, struct err *e)
{
    struct adamw a = *settings;

    a.grad_scale = o->clip;
    for (int k = 0; k < o->n; k++) {
        const struct train_part *part = &o->parts[k];
        struct model *m = part->model;

        for (int i = 0; i < m->params.n; i++) { /* weight decay differs by tensor, so each has a call of its own */
            const struct param *p = &m->params.v[i];

            a.weight_decay = param_decays(p) ? weight_decay : 0;
            TRY(o->dev->ops->adamw(o->dev, &a, m->weights + p->at, part->exp_avg + p->at, part->exp_avg_sq + p->at,
                                   m->grads + p->at, m->low ? m->low + p->at : NULL, (int64_t)p->n, e));
        }
    }
    return 0;
}
