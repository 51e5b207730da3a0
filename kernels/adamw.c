#include "kernels/adamw.h"

#include <math.h>

#include "kernels/adamw_simd.h"

int adamw_cpu(struct device *dev, const struct adamw *p, float *w, float *m, float *v,
              const float *grad, uint16_t *low, int64_t n, struct err *e)
{
    struct adamw_constants k;

    if (n < 0 || p->step < 1 || !(p->beta1 >= 0 && p->beta1 < 1) ||
        !(p->beta2 >= 0 && p->beta2 < 1) || !(p->eps > 0))
        return err_set(e, ERR_ARG, "adamw: %lld elements, step %lld, betas %g and %g, eps %g",
                       (long long)n, (long long)p->step, p->beta1, p->beta2, p->eps);
    k.scale = p->grad_scale ? *p->grad_scale : 1.0f;
    k.b1 = (float)p->beta1;
    k.b2 = (float)p->beta2;
    k.one_b1 = (float)(1 - p->beta1);
    k.one_b2 = (float)(1 - p->beta2);
    k.decay = (float)(1 - p->lr * p->weight_decay);
    k.rate = (float)(p->lr / (1 - pow(p->beta1, (double)p->step)));
    k.root = (float)(1 / sqrt(1 - pow(p->beta2, (double)p->step)));
    k.eps = (float)p->eps;
    ISA_PICK(adamw_loop)(dev, &k, w, m, v, grad, low, n);
    return 0;
}
