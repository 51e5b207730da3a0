#include "kernels/attention.h"

#include "kernels/attention_simd.h"
#include "kernels/check.h"

int attention_fwd_cpu(struct device *dev, enum dtype dt, const struct attention *p, struct err *e)
{
    void *scratch;

    TRY(check_attention(dt, p, "attention_fwd", e));
    TRY(cpu_scratch(dev, &scratch,
                    (size_t)(dev->threads * attention_fwd_scratch(p)) * sizeof(float), e));
    ISA_PICK(attention_fwd_loop)(dev, dt, p, scratch);
    return 0;
}

int attention_bwd_cpu(struct device *dev, enum dtype dt, const struct attention *p,
                      struct attention_view dout, struct attention_view dq,
                      struct attention_view dk, struct attention_view dv, struct err *e)
{
    const struct attention_view grad[3] = {dq, dk, dv};
    void *scratch;

    TRY(check_attention_bwd(dt, p, e));
    TRY(cpu_scratch(dev, &scratch,
                    (size_t)(dev->threads * attention_bwd_scratch(p)) * sizeof(float), e));
    ISA_PICK(attention_bwd_loop)(dev, dt, p, &dout, grad, scratch);
    return 0;
}
