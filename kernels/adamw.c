#include "kernels/adamw.h"

#include "kernels/adamw_simd.h"
#include "kernels/check.h"

int adamw_cpu(struct device *dev, const struct adamw *p, float *w, float *m, float *v,
              const float *grad, uint16_t *low, int64_t n, struct err *e)
{
    struct adamw_constants k;

    TRY(check_adamw(p, w, low, n, e));
    k = adamw_constants_of(p);
    k.scale = p->grad_scale ? *p->grad_scale : 1.0f;
    ISA_PICK(adamw_loop)(dev, &k, w, m, v, grad, low, n);
    return 0;
}
