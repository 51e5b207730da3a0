#include "kernels/adamw_simd.h"

#include "kernels/simd.h"

INLINE void update(const struct adamw_constants *k, float *w, float *m, float *v, const float *grad,
                   uint16_t *low, int64_t i, int64_t left)
{
    vf g = vf_get(DTYPE_F32, grad, i, left) * vf_set(k->scale);
    vf m1 = vf_fma(vf_set(k->one_b1), g, vf_set(k->b1) * vf_get(DTYPE_F32, m, i, left));
    vf v1 = vf_fma(vf_set(k->one_b2) * g, g, vf_set(k->b2) * vf_get(DTYPE_F32, v, i, left));
    vf d = vf_fma(vf_sqrt(v1), vf_set(k->root), vf_set(k->eps));
    vf w1 = vf_get(DTYPE_F32, w, i, left) * vf_set(k->decay) - vf_set(k->rate) * m1 / d;

    vf_put(DTYPE_F32, m, i, left, m1);
    vf_put(DTYPE_F32, v, i, left, v1);
    vf_put(DTYPE_F32, w, i, left, w1);
    if (low)
        vf_put(DTYPE_BF16, low, i, left, w1);
}

void ISA_FN(adamw_loop)(struct device *dev, const struct adamw_constants *k, float *w, float *m,
                        float *v, const float *grad, uint16_t *low, int64_t n)
{
#pragma omp parallel num_threads(cpu_team(dev, n))
    {
        int64_t lo, hi;

        cpu_share(n, 64, &lo, &hi);
        for (int64_t i = lo; i < hi; i += VW)
            update(k, w, m, v, grad, low, i, hi - i);
    }
}
