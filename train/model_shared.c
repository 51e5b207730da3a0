/* The expert that all tokens of a layer meet beside those that the router chooses (arXiv:2401.06066): an MLP, cut among tensor
 * ranks as a dense one.  Its output may be gated, times the sigmoid of a product of its input with a row of weights, as
 * Qwen2-MoE's. */
#include "train/model.h"
#include "train/model_pass.h"

int pass_shared_expert(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    struct layer_acts *a = &m->acts->layers[layer];
    const void *x = m->part.sequence ? m->full : a->ln2; /* pass_experts() has gathered it */
    struct matmul gate = {
        .m = rows, .n = 1, .k = m->config.hidden, .trans_b = true, .dt = m->dt, .dt_c = DTYPE_F32, .a = x,
        .b = pass_weight(m, pass_param(m, layer, SHARED_GATE_W)), .c = a->gate,
    };

    TRY(pass_mlp(m, layer, x, rows, e));
    if (!m->config.shared_gate)
        return 0;
    TRY(m->dev->ops->matmul(m->dev, &gate, e));
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

/* From the gradient of the gate's products, m->dgate, to that of its weights, and onto m->dln. */
static int gate_back(struct model *m, int64_t layer, const void *x, struct err *e)
{
    int64_t rows = m->b * m->t, h = m->config.hidden;
    int w = pass_param(m, layer, SHARED_GATE_W);
    struct matmul weight = {
        .m = 1, .n = h, .k = rows, .trans_a = true, .dt = m->dt, .dt_c = DTYPE_F32, .a = m->dgate, .b = x,
        .c = pass_grad(m, w), .beta = m->dense.overwrite ? 0 : 1,
    };
    struct matmul input = {
        .m = rows, .n = h, .k = 1, .dt = m->dt, .dt_c = m->dt, .a = m->dgate, .b = pass_weight(m, w), .c = m->dln, .beta = 1,
    };

    TRY(m->dev->ops->matmul(m->dev, &weight, e));
    return m->dev->ops->matmul(m->dev, &input, e);
}

int pass_shared_expert_back(struct model *m, int64_t layer, const void *dy, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    struct layer_acts *a = &m->acts->layers[layer];
    int64_t rows = m->b * m->t, h = m->config.hidden;
    bool gate = m->config.shared_gate;

    TRY(pass_gather(m, &dy, dy, rows, e));
    if (gate)
        TRY(ops->gate_back(m->dev, m->dt, m->beside, m->dgate, dy, a->gated, a->gate, rows, h, e));
    TRY(pass_mlp_back(m, layer, m->beside, gate ? m->beside : dy, e));
    TRY(ops->vec_add(m->dev, m->dt, m->dln, m->dln, m->beside, rows * h, e));
    return gate ? gate_back(m, layer, m->part.sequence ? m->full : a->ln2, e) : 0; /* gathered there */
}
