#include "kernels/act.h"

#include "kernels/act_simd.h"
#include "kernels/check.h"

int act_fwd_cpu(struct device *dev, enum dtype dt, enum act act, void *y, const void *x, int64_t n,
                struct err *e)
{
    TRY(check_act(dt, act, n, 1, "act_fwd", e));
    ISA_PICK(act_fwd_loop)(dev, dt, act, y, x, n);
    return 0;
}

int act_bwd_cpu(struct device *dev, enum dtype dt, enum act act, void *dx, const void *dy,
                const void *x, int64_t n, struct err *e)
{
    TRY(check_act(dt, act, n, 1, "act_bwd", e));
    ISA_PICK(act_bwd_loop)(dev, dt, act, dx, dy, x, n);
    return 0;
}

int glu_fwd_cpu(struct device *dev, enum dtype dt, enum act act, void *y, const void *x, int64_t t,
                int64_t f, struct err *e)
{
    TRY(check_act(dt, act, t, f, "glu_fwd", e));
    ISA_PICK(glu_fwd_loop)(dev, dt, act, y, x, t, f);
    return 0;
}

int glu_bwd_cpu(struct device *dev, enum dtype dt, enum act act, void *dx, const void *dy,
                const void *x, int64_t t, int64_t f, struct err *e)
{
    TRY(check_act(dt, act, t, f, "glu_bwd", e));
    ISA_PICK(glu_bwd_loop)(dev, dt, act, dx, dy, x, t, f);
    return 0;
}
