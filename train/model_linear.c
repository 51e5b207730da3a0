/* The linear layers: every product with a weight, forward and backward. */
#include "train/model.h"
#include "train/model_pass.h"

int pass_linear(struct model *m, void *y, const void *x, int w, int b, int64_t rows, enum act act, void *aux, struct err *e)
{
    const struct param *p = &m->dense.params.v[w];
    bool biased = b >= 0 && (p->split != 1 || pass_first(m));
    struct matmul mm = {
        .m = rows, .n = p->shape[0], .k = p->shape[1], .trans_b = true, .dt = m->dt, .dt_c = m->dt,
        .a = x, .b = pass_weight(m, w), .c = y, .bias = biased ? pass_weight(m, b) : NULL,
        .act = act, .aux = aux,
    };
    int fp8 = pass_fp8(m, &m->dense, w);

    TRY(pass_progress(m, e));
    if (fp8 >= 0)
        TRY(pass_fp8_forward(m, &mm, fp8, m->fp8->buf, e));
    return m->dev->ops->matmul(m->dev, &mm, e);
}

int pass_linear_back(struct model *m, void *dx, const void *dy, const void *x, int w, int b, const void *aux, struct err *e)
{
    const struct device_ops *ops = m->dev->ops;
    const struct param *p = &m->dense.params.v[w];
    int64_t rows = m->b * m->t, in = p->shape[1], out = p->shape[0];
    struct matmul weight = {
        .m = out, .n = in, .k = rows, .trans_a = true, .dt = m->dt, .dt_c = DTYPE_F32,
        .a = dy, .b = x, .c = pass_grad(m, w), .beta = m->dense.overwrite ? 0 : 1,
    };
    struct matmul input = {
        .m = rows, .n = in, .k = out, .dt = m->dt, .dt_c = m->dt,
        .a = dy, .b = pass_weight(m, w), .c = dx, .dact = aux ? ACT_GELU_TANH : ACT_NONE, .dact_aux = aux,
    };
    float *bias = b >= 0 ? pass_grad(m, b) : NULL;
    int fp8 = pass_fp8(m, &m->dense, w);

    TRY(pass_progress(m, e));
    if (fp8 >= 0)
        TRY(pass_fp8_backward(m, &weight, &input, fp8, m->fp8->buf, bias, e));
    TRY(ops->matmul(m->dev, &weight, e));
    if (bias && fp8 < 0) /* FP8 has added it up as it converted */
        TRY(ops->vec_colsum(m->dev, m->dt, bias, dy, rows, out, out, e));
    TRY(pass_progress(m, e));
    return ops->matmul(m->dev, &input, e);
}
