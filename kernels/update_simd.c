#include "kernels/update_simd.h"

#include "base/rng.h"
#include "kernels/eight_bit.h"
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

/* New moments in *m and, of AdamW, *v; the new weights from w, g being gradients. */
INLINE vf formula(enum update_kind kind, const struct update_constants *k, vf w, vf g, vf *m, vf *v)
{
    if (kind == UPDATE_LION) {
        vf c = vf_fma(vf_set(k->one_b1), g, vf_set(k->b1) * *m), zero = vf_set(0);
        vf sign = vf_if_lt(zero, c, vf_set(1), vf_if_lt(c, zero, vf_set(-1), zero));

        *m = vf_fma(vf_set(k->one_b2), g, vf_set(k->b2) * *m);
        return w * vf_set(k->decay) - vf_set(k->lr) * sign;
    }
    if (kind == UPDATE_SGD) {
        *m = vf_fma(vf_set(k->b1), *m, vf_fma(vf_set(k->wd), w, g));
        return w - vf_set(k->lr) * *m;
    }
    *m = vf_fma(vf_set(k->one_b1), g, vf_set(k->b1) * *m);
    *v = vf_fma(vf_set(k->one_b2) * g, g, vf_set(k->b2) * *v);
    return w * vf_set(k->decay) - vf_set(k->rate) * *m / vf_fma(vf_sqrt(*v), vf_set(k->root), vf_set(k->eps));
}

/* The same of moments where they are stored. */
INLINE vf updated(enum update_kind kind, const struct update_constants *k, vf w, const struct update_moments *o,
                  const float *grad, int64_t i, int64_t left)
{
    vf raw = vf_get(DTYPE_F32, grad, i, left), m = vf_get(o->m_type, o->m, i, left);
    vf v = kind == UPDATE_ADAMW ? vf_get(o->v_type, o->v, i, left) : vf_set(0);
    vf w1 = formula(kind, k, w, raw * vf_set(k->scale), &m, &v);

    put_moments(kind, k, o, raw, w, m, v, i, left);
    return w1;
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
    range(name, k, w, &(struct update_moments){o->m, o->v, m_type, v_type, NULL, NULL}, grad, low, lo, hi)
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

/* A moment of a block, from where it is stored, and back. */
INLINE const float *block_get(enum dtype dt, bool is_signed, const void *from, const float *scale, int64_t at, int64_t n,
                              float *x)
{
    if (dt == DTYPE_F32)
        return (const float *)from + at;
    eight_bit_decode(eight_bit_levels(is_signed), (const uint8_t *)from + at, scale[at / EIGHT_BIT_BLOCK], n, x);
    return x;
}
INLINE void block_put(enum dtype dt, bool is_signed, void *to, float *scale, int64_t at, int64_t n, const float *x)
{
    if (dt == DTYPE_F32)
        memcpy((float *)to + at, x, (size_t)n * sizeof *x);
    else
        eight_bit_encode(eight_bit_levels(is_signed), is_signed, x, n, false, (uint8_t *)to + at, &scale[at / EIGHT_BIT_BLOCK]);
}

INLINE void block(enum update_kind kind, const struct update_constants *k, float *w, const struct update_moments *o,
                  const float *grad, uint16_t *low, int64_t at, int64_t n)
{
    float m1[EIGHT_BIT_BLOCK], v1[EIGHT_BIT_BLOCK];
    const float *m0 = block_get(o->m_type, true, o->m, o->m_scale, at, n, m1), *v0 = v1;

    if (kind == UPDATE_ADAMW)
        v0 = block_get(o->v_type, false, o->v, o->v_scale, at, n, v1);
    for (int64_t i = 0; i < n; i += VW) {
        int64_t left = n - i;
        vf m = vf_get(DTYPE_F32, m0, i, left), v = kind == UPDATE_ADAMW ? vf_get(DTYPE_F32, v0, i, left) : vf_set(0);
        vf w1 = formula(kind, k, vf_get(DTYPE_F32, w + at, i, left), vf_get(DTYPE_F32, grad + at, i, left) * vf_set(k->scale),
                        &m, &v);

        vf_put(DTYPE_F32, w + at, i, left, w1);
        if (low)
            vf_put(DTYPE_BF16, low + at, i, left, w1);
        vf_put(DTYPE_F32, m1, i, left, m);
        if (kind == UPDATE_ADAMW)
            vf_put(DTYPE_F32, v1, i, left, v);
    }
    block_put(o->m_type, true, o->m, o->m_scale, at, n, m1);
    if (kind == UPDATE_ADAMW)
        block_put(o->v_type, false, o->v, o->v_scale, at, n, v1);
}

void ISA_FN(update_blocks_loop)(struct device *dev, enum update_kind kind, const struct update_constants *k, float *w,
                                const struct update_moments *o, const float *grad, uint16_t *low, int64_t n)
{
#define UPDATE_BLOCK(name, ...) \
    case name: \
        for (int64_t i = lo; i < hi; i += EIGHT_BIT_BLOCK) \
            block(name, k, w, o, grad, low, i, hi - i < EIGHT_BIT_BLOCK ? hi - i : EIGHT_BIT_BLOCK); \
        break;
#pragma omp parallel num_threads(cpu_team(dev, n))
    {
        int64_t lo, hi;

        cpu_share(n, EIGHT_BIT_BLOCK, &lo, &hi);
        switch (kind) {
            UPDATES(UPDATE_BLOCK)
        default: break;
        }
    }
}
