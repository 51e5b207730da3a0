#include "kernels/attention_mma.cuh"
#include "kernels/attention_plain.cuh"

/* Which way a call of attention takes. */

extern "C" int attention_fwd_cuda(struct device *dev, enum dtype dt, const struct attention *p, struct err *e)
{
    TRY(check_attention(dt, p, "attention_fwd", e));
    if (p->b == 0 || p->t == 0)
        return 0;
    if (attention_mma_fits(dt, p))
        return attention_mma_fwd(dev, p, e);
    return attention_plain_fwd(dev, dt, p, e);
}

extern "C" int attention_bwd_cuda(struct device *dev, enum dtype dt, const struct attention *p, struct attention_view dout,
                                  struct attention_view dq, struct attention_view dk, struct attention_view dv, struct err *e)
{
    TRY(check_attention_bwd(dt, p, e));
    if (p->b == 0 || p->t_kv == 0)
        return 0;
    if (attention_mma_fits(dt, p) && attention_mma_view_fits(&dout) && attention_mma_view_fits(&dq) &&
        attention_mma_view_fits(&dk) && attention_mma_view_fits(&dv))
        return attention_mma_bwd(dev, p, dout, dq, dk, dv, e);
    return attention_plain_bwd(dev, dt, p, dout, dq, dk, dv, e);
}
