#include "kernels/update.h"

#include "kernels/update_simd.h"
#include "kernels/check.h"

int update_cpu(struct device *dev, const struct update *p, float *w, void *m, void *v,
              const float *grad, uint16_t *low, int64_t n, struct err *e)
{
    const struct update_moments moments = {m, v, p->m_type, p->v_type, p->m_scale, p->v_scale};
    struct update_constants k;

    TRY(check_update(p, w, low, n, e));
    k = update_constants_of(p);
    k.scale = p->grad_scale ? *p->grad_scale : 1.0f;
    if (update_is_blocks(p))
        ISA_PICK(update_blocks_loop)(dev, p->kind, &k, w, &moments, grad, low, n);
    else
        ISA_PICK(update_loop)(dev, p->kind, &k, w, &moments, grad, low, n);
    return 0;
}
