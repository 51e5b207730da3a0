#include "kernels/norm.h"

#include "kernels/check.h"
#include "kernels/norm_simd.h"

static int fwd(struct device *dev, enum dtype dt, const struct norm_fwd *p, bool rms,
               const char *op, struct err *e)
{
    struct norm_fwd wide = *p;

    TRY(check_norm_fwd(dt, p, op, e));
    if (p->fp8) {
        struct fp8_quantize q = *p->fp8;

        TRY(cpu_decoded(dev, &wide.y, (size_t)(p->t * p->c) * sizeof(uint16_t), e));
        ISA_PICK(norm_fwd_loop)(dev, dt, &wide, rms);
        q.x = wide.y;
        return fp8_quantize_cpu(dev, &q, e);
    }
    ISA_PICK(norm_fwd_loop)(dev, dt, p, rms);
    return 0;
}

static int bwd(struct device *dev, enum dtype dt, const struct norm_bwd *p, bool rms,
               const char *op, struct err *e)
{
    void *part;

    TRY(check_norm_bwd(dt, p, op, e));
    TRY(cpu_scratch(dev, &part, (size_t)(CPU_GROUPS * 2 * p->c) * sizeof(float), e));
    ISA_PICK(norm_bwd_loop)(dev, dt, p, rms, part);
    return 0;
}

int layernorm_fwd_cpu(struct device *dev, enum dtype dt, const struct norm_fwd *p, struct err *e)
{
    return fwd(dev, dt, p, false, "layernorm_fwd", e);
}

int layernorm_bwd_cpu(struct device *dev, enum dtype dt, const struct norm_bwd *p, struct err *e)
{
    return bwd(dev, dt, p, false, "layernorm_bwd", e);
}

int rmsnorm_fwd_cpu(struct device *dev, enum dtype dt, const struct norm_fwd *p, struct err *e)
{
    return fwd(dev, dt, p, true, "rmsnorm_fwd", e);
}

int rmsnorm_bwd_cpu(struct device *dev, enum dtype dt, const struct norm_bwd *p, struct err *e)
{
    return bwd(dev, dt, p, true, "rmsnorm_bwd", e);
}
