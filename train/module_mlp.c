/* The MLP: linear_fc1, the activation, linear_fc2. */
#include "train/module.h"

/* Whether products apply the activation as they write their output. */
static bool is_fused(const struct model *m)
{
    return model_halves(&m->config) == 1 && !m->config.lora_rank; /* an adapter adds to what goes into it */
}

int pass_act(struct model *m, void *y, const void *x, int64_t rows, int64_t f, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    enum act act = model_act(&m->config);

    return model_halves(&m->config) == 2 ? ops->glu_fwd(m->dev, m->dt, act, y, x, rows, f, e)
                                         : ops->act_fwd(m->dev, m->dt, act, y, x, rows * f, e);
}

int pass_act_back(struct model *m, void *dx, const void *dy, const void *x, int64_t rows, int64_t f, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    enum act act = model_act(&m->config);

    return model_halves(&m->config) == 2 ? ops->glu_bwd(m->dev, m->dt, act, dx, dy, x, rows, f, e)
                                         : ops->act_bwd(m->dev, m->dt, act, dx, dy, x, rows * f, e);
}

static int64_t width(const struct model *m, int64_t layer)
{
    return model_layer_ffn(&m->config, pass_moe(m, layer));
}

/* ---- of any input ---- */

int mlp_activate(struct model *m, int64_t layer, int64_t rows, struct err *e)
{
    struct mlp_acts *a = &m->acts->layers[layer].mlp;

    if (model_fp8_made(m, layer, FP8_ACT))
        return pass_fp8_activate(m, layer, rows, e);
    return pass_act(m, a->act, a->fc1, rows, width(m, layer), e);
}

int mlp_begin(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e)
{
    struct mlp_acts *a = &m->acts->layers[layer].mlp;
    struct linear fc1 = linear_of(m, layer, FC1_W, FC1_B, rows);

    if (is_fused(m) && !model_fp8_made(m, layer, FP8_ACT)) {
        fc1.act = model_act(&m->config);
        fc1.aux = a->fc1;
        return linear_forward(m, &fc1, a->act, x, e);
    }
    TRY(linear_forward(m, &fc1, a->fc1, x, e));
    return mlp_activate(m, layer, rows, e);
}

int mlp_end(struct model *m, int64_t layer, void *y, int64_t rows, struct err *e)
{
    const struct linear fc2 = linear_of(m, layer, FC2_W, FC2_B, rows);

    return linear_forward(m, &fc2, y, m->acts->layers[layer].mlp.act, e);
}

int mlp_backward(struct model *m, int64_t layer, void *dx, const void *dy, const void *own, struct err *e)
{
    struct mlp_acts *a = &m->acts->layers[layer].mlp;
    int64_t n = m->b * m->t;
    const struct linear fc1 = linear_of(m, layer, FC1_W, FC1_B, n);
    struct linear fc2 = linear_of(m, layer, FC2_W, FC2_B, n);
    const void *x, *dfc1 = m->back.dwide;

    if (model_fp8_made(m, layer, FP8_ACT)) {
        TRY(linear_backward(m, &fc2, m->back.dwide, dy, NULL, e));
        TRY(pass_fp8_activate_back(m, layer, &dfc1, e));
    } else if (is_fused(m)) {
        fc2.before = model_act(&m->config);
        fc2.before_x = a->fc1;
        TRY(linear_backward(m, &fc2, m->back.dwide, dy, a->act, e));
    } else {
        TRY(linear_backward(m, &fc2, a->act, dy, a->act, e)); /* what act was is needed no more */
        TRY(pass_act_back(m, m->back.dwide, a->act, a->fc1, n, width(m, layer), e));
    }
    TRY(pass_gather(m, &x, own, n, e));
    return linear_backward(m, &fc1, dx, dfc1, x, e);
}

/* ---- as the module of a branch ---- */

static int begin(struct model *m, int64_t layer, const void *y, const struct pass *p, struct err *e)
{
    const void *x;

    TRY(pass_gather(m, &x, y, pass_rows(p), e));
    return mlp_begin(m, layer, x, pass_rows(p), e);
}

static int end(struct model *m, int64_t layer, const struct pass *p, struct err *e)
{
    return mlp_end(m, layer, m->out, pass_rows(p), e);
}

static int again(struct model *m, int64_t layer, const struct pass *p, struct err *e)
{
    return mlp_activate(m, layer, pass_rows(p), e);
}

static int backward(struct model *m, int64_t layer, const void *dy, const void *y, const struct pass *p, struct err *e)
{
    TRY(pass_gather(m, &dy, dy, pass_rows(p), e));
    return mlp_backward(m, layer, m->back.dln, dy, y, e);
}

const struct module module_mlp = {begin, end, again, backward};
