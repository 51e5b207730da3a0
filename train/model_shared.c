/* The expert that all tokens of a layer meet beside those that the router chooses (arXiv:2401.06066): an MLP, cut among tensor
 * ranks as a dense one.  Its output may be gated, times the sigmoid of a product of its input with a row of weights, as
 * Qwen2-MoE's. */
#include "train/model.h"
#include "train/model_pass.h"

static struct linear gate_of(const struct model *m, int64_t layer, int64_t rows)
{
    return (struct linear){
        .buffer = &m->dense, .w = pass_param(m, layer, SHARED_GATE_W), .b = -1, .rows = rows, .wide = true, .adds = true,
    };
}

int pass_shared_expert(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    struct layer_acts *a = &m->acts->layers[layer];
    const void *x = m->part.sequence ? m->full : a->ln2; /* pass_experts() has gathered it */
    const struct linear gate = gate_of(m, layer, rows);

    TRY(pass_mlp(m, layer, x, rows, e));
    if (!m->config.shared_gate)
        return 0;
    TRY(linear_forward(m, &gate, a->gate, x, e));
    return pass_mlp_end(m, layer, a->gated, rows, e);
}

int pass_shared_expert_end(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    struct layer_acts *a = &m->acts->layers[layer];

    if (m->config.shared_gate)
        return ops->gate_add(m->dev, m->dt, m->out, a->gated, a->gate, rows, m->config.hidden, e);
    TRY(pass_mlp_end(m, layer, m->beside, rows, e));
    return ops->vec_add(m->dev, m->dt, m->out, m->out, m->beside, rows * m->config.hidden, e);
}

int pass_shared_expert_back(struct model *m, int64_t layer, const void *dy, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    struct layer_acts *a = &m->acts->layers[layer];
    int64_t rows = m->b * m->t, h = m->config.hidden;
    bool gated = m->config.shared_gate;
    const struct linear gate = gate_of(m, layer, rows);

    TRY(pass_gather(m, &dy, dy, rows, e));
    if (gated)
        TRY(ops->gate_back(m->dev, m->dt, m->beside, m->dgate, dy, a->gated, a->gate, rows, h, e));
    TRY(pass_mlp_back(m, layer, m->beside, gated ? m->beside : dy, e));
    TRY(ops->vec_add(m->dev, m->dt, m->dln, m->dln, m->beside, rows * h, e));
    if (!gated)
        return 0;
    return linear_backward(m, &gate, m->dln, m->dgate, m->part.sequence ? m->full : a->ln2, e); /* gathered there */
}
