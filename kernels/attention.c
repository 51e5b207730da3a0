#include "kernels/attention.h"

#include "kernels/attention_simd.h"
#include "kernels/check.h"

/* p->start is in order, and no query's own place is hidden from it. */
static int check_start(const struct attention *p, struct err *e)
{
    for (int64_t i = 0; p->start && i < p->b * p->t; i++)
        if (p->start[i] < (i % p->t ? p->start[i - 1] : 0) || p->start[i] > p->first_query + i % p->t)
            return err_set(e, ERR_ARG, "attention: the keys of query %lld begin at %d", (long long)i, p->start[i]);
    return 0;
}

int attention_fwd_cpu(struct device *dev, enum dtype dt, const struct attention *p, struct err *e)
{
    void *scratch;

    TRY(check_attention(dt, p, "attention_fwd", e));
    TRY(check_start(p, e));
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
    TRY(check_start(p, e));
    TRY(cpu_scratch(dev, &scratch,
                    (size_t)(dev->threads * attention_bwd_scratch(p)) * sizeof(float), e));
    ISA_PICK(attention_bwd_loop)(dev, dt, p, &dout, grad, scratch);
    if (p->dsink)
        ISA_PICK(attention_sink_loop)(dev, dt, p, &dout);
    return 0;
}
