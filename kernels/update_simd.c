#include "kernels/update_simd.h"

#include "base/rng.h"
#include "kernels/simd.h"

/* A moment as it is stored; add: random bits above the lowest `shift`. */
INLINE void put_moment(enum dtype dt, void *to, int64_t i, int64_t left, vf x, const uint32_t add[VW], int shift)
{
    uint32_t bits[VW];

    if (dt == DTYPE_F32) {
        vf_put(DTYPE_F32, to, i, left, x);
        return;
    }
    vf_store((float *)(void *)bits, x);
    for (int64_t j = 0; j < VW && j < left; j++)
        ((uint16_t *)to)[i + j] = (uint16_t)(update_cut(bits[j], add[j] >> shift & 0xffff) >> 16);
}

/* New moments m1 and v1 of gradients g and weights w. */
INLINE void put_moments(enum update_kind kind, const struct update_constants *k, const struct update_moments *o, vf g, vf w,
                        vf m1, vf v1, int64_t i, int64_t left)
{
    uint32_t add[VW] = {0}, grad[VW], weight[VW];

    if (o->m_type == DTYPE_BF16 || o->v_type == DTYPE_BF16) {
        vf_store((float *)(void *)grad, g);
        vf_store((float *)(void *)weight, w);
        for (int j = 0; j < VW; j++)
            add[j] = update_random(grad[j], weight[j], k->step);
    }
    put_moment(o->m_type, o->m, i, left, m1, add, 0);
    if (kind == UPDATE_ADAMW)
        put_moment(o->v_type, o->v, i, left, v1, add, 16);
}

/* New moments; the new weights from w. */
INLINE vf updated(enum update_kind kind, const struct update_constants *k, vf w, const struct update_moments *o,
                  const float *grad, int64_t i, int64_t left)
{
    vf raw = vf_get(DTYPE_F32, grad, i, left), g = raw * vf_set(k->scale), m0 = vf_get(o->m_type, o->m, i, left), m1, v1, d;
    vf zero = vf_set(0);

    if (kind == UPDATE_LION) {
        vf c = vf_fma(vf_set(k->one_b1), g, vf_set(k->b1) * m0);
        vf sign = vf_if_lt(zero, c, vf_set(1), vf_if_lt(c, zero, vf_set(-1), zero));

        put_moments(kind, k, o, raw, w, vf_fma(vf_set(k->one_b2), g, vf_set(k->b2) * m0), zero, i, left);
        return w * vf_set(k->decay) - vf_set(k->lr) * sign;
    }
    if (kind == UPDATE_SGD) {
        m1 = vf_fma(vf_set(k->b1), m0, vf_fma(vf_set(k->wd), w, g));
        put_moments(kind, k, o, raw, w, m1, zero, i, left);
        return w - vf_set(k->lr) * m1;
    }
    m1 = vf_fma(vf_set(k->one_b1), g, vf_set(k->b1) * m0);
    v1 = vf_fma(vf_set(k->one_b2) * g, g, vf_set(k->b2) * vf_get(o->v_type, o->v, i, left));
    d = vf_fma(vf_sqrt(v1), vf_set(k->root), vf_set(k->eps));
    put_moments(kind, k, o, raw, w, m1, v1, i, left);
    return w * vf_set(k->decay) - vf_set(k->rate) * m1 / d;
}

INLINE void update(enum update_kind kind, const struct update_constants *k, float *w, const struct update_moments *o,
                   const float *grad, uint16_t *low, int64_t i, int64_t left)
{
    vf w1 = updated(kind, k, vf_get(DTYPE_F32, w, i, left), o, grad, i, left);

    vf_put(DTYPE_F32, w, i, left, w1);
    if (low)
        vf_put(DTYPE_BF16, low, i, left, w1);
}

/* Of bf16 weights.  block: of element 8 *at and those behind it. */
INLINE void update_low(enum update_kind kind, const struct update_constants *k, uint16_t *low, const struct update_moments *o,
                       const float *grad, uint64_t *at, uint32_t block[4], int64_t i, int64_t left)
{
    int64_t row = i / k->round.cols, col = i % k->round.cols;
    uint32_t x[VW];

    vf_store((float *)(void *)x, updated(kind, k, vf_get(DTYPE_BF16, low, i, left), o, grad, i, left));
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

INLINE void range(enum update_kind kind, const struct update_constants *k, float *w, const struct update_moments *o,
                  const float *grad, uint16_t *low, int64_t lo, int64_t hi)
{
    uint64_t at = UINT64_MAX;
    uint32_t block[4];

    for (int64_t i = lo; i < hi && w; i += VW)
        update(kind, k, w, o, grad, low, i, hi - i);
    for (int64_t i = lo; i < hi && !w; i += VW)
        update_low(kind, k, low, o, grad, &at, block, i, hi - i);
}

void ISA_FN(update_loop)(struct device *dev, enum update_kind kind, const struct update_constants *k, float *w,
                         const struct update_moments *o, const float *grad, uint16_t *low, int64_t n)
{
#define UPDATE_TYPED(name, m_type, v_type) \
    range(name, k, w, &(struct update_moments){o->m, o->v, m_type, v_type}, grad, low, lo, hi)
#define UPDATE_CASE(name, ...) \
    case name: \
        if (name == UPDATE_ADAMW && o->v_type == DTYPE_BF16 && o->m_type == DTYPE_BF16) \
            UPDATE_TYPED(name, DTYPE_BF16, DTYPE_BF16); \
        else if (name == UPDATE_ADAMW && o->v_type == DTYPE_BF16) \
            UPDATE_TYPED(name, DTYPE_F32, DTYPE_BF16); \
        else if (o->m_type == DTYPE_BF16) \
            UPDATE_TYPED(name, DTYPE_BF16, DTYPE_F32); \
        else \
            UPDATE_TYPED(name, DTYPE_F32, DTYPE_F32); \
        break;
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
