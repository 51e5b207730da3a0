#include "kernels/update_simd.h"

#include "base/rng.h"
#include "kernels/simd.h"

/* New moments; the new weights from w. */
INLINE vf updated(enum update_kind kind, const struct update_constants *k, vf w, float *m, float *v, const float *grad, int64_t i,
                  int64_t left)
{
    vf g = vf_get(DTYPE_F32, grad, i, left) * vf_set(k->scale), m0 = vf_get(DTYPE_F32, m, i, left), m1, v1, d, zero = vf_set(0);

    if (kind == UPDATE_LION) {
        vf c = vf_fma(vf_set(k->one_b1), g, vf_set(k->b1) * m0);
        vf sign = vf_if_lt(zero, c, vf_set(1), vf_if_lt(c, zero, vf_set(-1), zero));

        vf_put(DTYPE_F32, m, i, left, vf_fma(vf_set(k->one_b2), g, vf_set(k->b2) * m0));
        return w * vf_set(k->decay) - vf_set(k->lr) * sign;
    }
    if (kind == UPDATE_SGD) {
        m1 = vf_fma(vf_set(k->b1), m0, vf_fma(vf_set(k->wd), w, g));
        vf_put(DTYPE_F32, m, i, left, m1);
        return w - vf_set(k->lr) * m1;
    }
    m1 = vf_fma(vf_set(k->one_b1), g, vf_set(k->b1) * m0);
    v1 = vf_fma(vf_set(k->one_b2) * g, g, vf_set(k->b2) * vf_get(DTYPE_F32, v, i, left));
    d = vf_fma(vf_sqrt(v1), vf_set(k->root), vf_set(k->eps));
    vf_put(DTYPE_F32, m, i, left, m1);
    vf_put(DTYPE_F32, v, i, left, v1);
    return w * vf_set(k->decay) - vf_set(k->rate) * m1 / d;
}

INLINE void update(enum update_kind kind, const struct update_constants *k, float *w, float *m, float *v, const float *grad,
                   uint16_t *low, int64_t i, int64_t left)
{
    vf w1 = updated(kind, k, vf_get(DTYPE_F32, w, i, left), m, v, grad, i, left);

    vf_put(DTYPE_F32, w, i, left, w1);
    if (low)
        vf_put(DTYPE_BF16, low, i, left, w1);
}

/* Of bf16 weights.  block: of element 8 *at and those behind it. */
INLINE void update_low(enum update_kind kind, const struct update_constants *k, uint16_t *low, float *m, float *v,
                       const float *grad, uint64_t *at, uint32_t block[4], int64_t i, int64_t left)
{
    int64_t row = i / k->round.cols, col = i % k->round.cols;
    uint32_t x[VW];

    vf_store((float *)(void *)x, updated(kind, k, vf_get(DTYPE_BF16, low, i, left), m, v, grad, i, left));
    for (int64_t j = 0; j < VW && j < left; j++) {
        uint64_t e = (uint64_t)(k->round.first + row * k->round.width + col);

        if (e / 8 != *at) {
            *at = e / 8;
            rng_philox(k->round.key, *at, k->step, block);
        }
        low[i + j] = (uint16_t)(update_rounded(x[j], block, e) >> 16);
        if (++col == k->round.cols) {
            col = 0;
            row++;
        }
    }
}

INLINE void range(enum update_kind kind, const struct update_constants *k, float *w, float *m, float *v, const float *grad,
                  uint16_t *low, int64_t lo, int64_t hi)
{
    uint64_t at = UINT64_MAX;
    uint32_t block[4];

    for (int64_t i = lo; i < hi && w; i += VW)
        update(kind, k, w, m, v, grad, low, i, hi - i);
    for (int64_t i = lo; i < hi && !w; i += VW)
        update_low(kind, k, low, m, v, grad, &at, block, i, hi - i);
}

void ISA_FN(update_loop)(struct device *dev, enum update_kind kind, const struct update_constants *k, float *w, float *m,
                         float *v, const float *grad, uint16_t *low, int64_t n)
{
#define UPDATE_CASE(name, ...) \
    case name: range(name, k, w, m, v, grad, low, lo, hi); break;
#pragma omp parallel num_threads(cpu_team(dev, n))
    {
        int64_t lo, hi;

        cpu_share(n, 64, &lo, &hi);
        switch (kind) {
            UPDATES(UPDATE_CASE)
        default: break;
        }
    }
}
