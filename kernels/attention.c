#include "kernels/attention.h"

#include "kernels/attention_simd.h"

static int check(enum dtype dt, const struct attention *p, const char *op, struct err *e)
{
    TRY(cpu_check_dtype(dt, op, e));
    TRY(cpu_check_dropout(p->drop, op, e));
    if (p->b < 0 || p->t < 0 || p->t_kv < p->t || p->d < 1 || p->d > 256 || p->heads < 1 ||
        p->kv_heads < 1 || p->heads % p->kv_heads)
        return err_set(e, ERR_ARG,
                       "%s: %lld x %lld queries, %lld keys, %lld heads on %lld of %lld elements",
                       op, (long long)p->b, (long long)p->t, (long long)p->t_kv,
                       (long long)p->heads, (long long)p->kv_heads, (long long)p->d);
    return 0;
}

int attention_fwd_cpu(struct device *dev, enum dtype dt, const struct attention *p, struct err *e)
{
    void *scratch;

    TRY(check(dt, p, "attention_fwd", e));
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

    TRY(check(dt, p, "attention_bwd", e));
    if (!p->lse)
        return err_set(e, ERR_ARG, "attention_bwd: forward's log-sum-exp is missing");
    TRY(cpu_scratch(dev, &scratch,
                    (size_t)(dev->threads * attention_bwd_scratch(p)) * sizeof(float), e));
    ISA_PICK(attention_bwd_loop)(dev, dt, p, &dout, grad, scratch);
    return 0;
}
