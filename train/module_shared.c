/* The expert that all tokens of a layer meet beside those that the router chooses (arXiv:2401.06066): an MLP, cut among tensor
 * ranks as a dense one.  Its output may be gated, times the sigmoid of a product of its input with a row of weights, as
 * Qwen2-MoE's. */
#include "train/module.h"

static struct linear gate_of(const struct model *m, int64_t layer, int64_t rows)
{
    return (struct linear){
        .buffer = &m->dense, .w = pass_param(m, layer, SHARED_GATE_W), .b = -1, .rows = rows, .wide = true, .adds = true,
    };
}

int shared_expert(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e)
{
    struct experts_acts *a = &m->acts->layers[layer].experts;
    const struct linear gate = gate_of(m, layer, rows);

    TRY(mlp_begin(m, layer, x, rows, e));
    if (!m->config.shared_gate)
        return 0;
    TRY(linear_forward(m, &gate, a->gate, x, e));
    return mlp_end(m, layer, a->gated, rows, e);
}

int shared_expert_end(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    struct experts_acts *a = &m->acts->layers[layer].experts;

    if (m->config.shared_gate)
        return ops->gate_add(m->dev, m->dt, m->out, a->gated, a->gate, rows, m->config.hidden, e);
    TRY(mlp_end(m, layer, m->moe.beside, rows, e));
    return ops->vec_add(m->dev, m->dt, m->out, m->out, m->moe.beside, rows * m->config.hidden, e);
}

int shared_expert_backward(struct model *m, int64_t layer, const void *dy, const void *own, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    struct experts_acts *a = &m->acts->layers[layer].experts;
    int64_t rows = m->b * m->t, h = m->config.hidden;
    bool gated = m->config.shared_gate;
    const struct linear gate = gate_of(m, layer, rows);

    TRY(pass_gather(m, &dy, dy, rows, e));
    if (gated)
        TRY(ops->gate_back(m->dev, m->dt, m->moe.beside, m->moe.dgate, dy, a->gated, a->gate, rows, h, e));
    TRY(mlp_backward(m, layer, m->moe.beside, gated ? m->moe.beside : dy, own, e));
    TRY(ops->vec_add(m->dev, m->dt, m->back.dln, m->back.dln, m->moe.beside, rows * h, e));
    if (!gated)
        return 0;
    return linear_backward(m, &gate, m->back.dln, m->moe.dgate, m->part.sequence ? m->full : own, e); /* gathered there */
}
