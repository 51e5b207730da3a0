#include "kernels/xent_simd.h"

#include <math.h>

#include "kernels/simd.h"

/* Logits as they count. */
INLINE vf capped(const struct xent *p, bool cap, vf x)
{
    vf one = vf_set(1);

    if (cap)
        return vf_set(p->cap) * (one - vf_set(2) / (one + vf_exp(vf_set(2 / p->cap) * x)));
    return x;
}
INLINE float capped_one(const struct xent *p, bool cap, float x)
{
    float v[VW];

    vf_store(v, capped(p, cap, vf_set(x)));
    return v[0];
}
/* The derivatives of what counts, y. */
INLINE vf slope(const struct xent *p, bool cap, vf y)
{
    if (cap)
        return vf_set(1) - y * y * vf_set(1 / p->cap / p->cap);
    return vf_set(1);
}

INLINE float row_max(enum dtype dt, bool cap, const struct xent *p, int64_t t)
{
    vf m = vf_set(-__builtin_inff());
    int64_t at = t * p->ld, i = 0;
    float r;

    for (; i + VW <= p->v; i += VW)
        m = vf_max(m, vf_get(dt, p->logits, at + i, VW));
    r = vf_maximum(m);
    for (; i < p->v; i++) {
        float x = dt == DTYPE_BF16 ? bf16_to(((const uint16_t *)p->logits)[at + i])
                                   : ((const float *)p->logits)[at + i];
        r = x > r ? x : r;
    }
    return cap ? capped_one(p, cap, r) : r;
}

INLINE float row_sum(enum dtype dt, bool cap, const struct xent *p, int64_t t, float max)
{
    vf m = vf_set(max);
    int64_t at = t * p->ld, i = 0;
    double s = 0;

    /* Stretches of 4096 in fp32 lanes, whose sums are added in double. */
    while (i + VW <= p->v) {
        int64_t end = i + 4096 < p->v ? i + 4096 : p->v;
        vf a = vf_set(0);

        for (; i + VW <= end; i += VW)
            a = a + vf_exp(capped(p, cap, vf_get(dt, p->logits, at + i, VW)) - m);
        s += (double)vf_sum(a);
    }
    if (i < p->v) {
        float last[VW];

        vf_store(last, vf_exp(capped(p, cap, vf_get(dt, p->logits, at + i, p->v - i)) - m));
        for (int64_t j = 0; j < p->v - i; j++)
            s += (double)last[j];
    }
    return (float)s;
}

/* The target's logit - max if it is among the local columns, else 0. */
INLINE float row_at(enum dtype dt, bool cap, const struct xent *p, int64_t t, float max)
{
    int64_t j = p->target[t] - p->first;
    float x;

    if (p->target[t] < 0 || j < 0 || j >= p->v)
        return 0;
    j += t * p->ld;
    x = dt == DTYPE_BF16 ? bf16_to(((const uint16_t *)p->logits)[j]) : ((const float *)p->logits)[j];
    return (cap ? capped_one(p, cap, x) : x) - max;
}

INLINE void row_gradient(enum dtype dt, bool cap, const struct xent *p, int64_t t, float max, float sum)
{
    int64_t at = t * p->ld, j = p->target[t] - p->first, n = p->v;
    float scale = p->target[t] < 0 ? 0 : p->scale[t], k = xent_softmax_scale(p, scale, max, sum), x = 0;
    vf m = vf_set(max), f = vf_set(k);
    bool here = j >= 0 && j < n;

    if (scale == 0) {
        memset((char *)p->logits + (size_t)at * dtype_size(dt), 0,
               (size_t)p->ld * dtype_size(dt));
        return;
    }
    if (here) /* by itself: softmax - 1 before it is rounded to dt */
        x = dt == DTYPE_BF16 ? bf16_to(((uint16_t *)p->logits)[at + j])
                             : ((float *)p->logits)[at + j];
    for (int64_t i = 0; i < n; i += VW) {
        vf y = capped(p, cap, vf_get(dt, p->logits, at + i, n - i)), g = vf_exp(y - m) * f;

        vf_put(dt, p->logits, at + i, n - i, g * slope(p, cap, y));
    }
    if (here) {
        vf y = capped(p, cap, vf_set(x));
        float one[VW], by[VW];

        vf_store(one, vf_exp(y - m));
        vf_store(by, slope(p, cap, y));
        x = (one[0] * k - scale) * by[0];
        if (dt == DTYPE_BF16)
            ((uint16_t *)p->logits)[at + j] = bf16_of(x);
        else
            ((float *)p->logits)[at + j] = x;
    }
    memset((char *)p->logits + (size_t)(at + n) * dtype_size(dt), 0,
           (size_t)(p->ld - n) * dtype_size(dt));
}

INLINE void rows(enum dtype dt, bool cap, const struct xent *p, float *loss, int64_t lo, int64_t hi)
{
    for (int64_t t = lo; t < hi; t++) {
        float max = row_max(dt, cap, p, t), sum = row_sum(dt, cap, p, t, max);

        if (loss)
            loss[t] = p->target[t] < 0 ? 0 : logf(sum) - row_at(dt, cap, p, t, max);
        if (p->scale)
            row_gradient(dt, cap, p, t, max, sum);
    }
}

/* Runs CALL with the constants DT and CAP: one loop compiled for each. */
#define BY_KIND(dt, p, CALL) \
    BY_DTYPE(dt, { \
        if ((p)->cap > 0) { \
            const bool CAP = true; \
            CALL; \
        } else { \
            const bool CAP = false; \
            CALL; \
        } \
    })

void ISA_FN(xent_loop)(struct device *dev, enum dtype dt, const struct xent *p, float *loss)
{
#pragma omp parallel num_threads(cpu_team(dev, p->t * p->v))
    {
        int64_t lo, hi;

        cpu_share(p->t, 1, &lo, &hi);
        BY_KIND(dt, p, rows(DT, CAP, p, loss, lo, hi));
    }
}

void ISA_FN(xent_max_loop)(struct device *dev, enum dtype dt, const struct xent *p, float *max)
{
#pragma omp parallel for num_threads(cpu_team(dev, p->t * p->v)) schedule(static)
    for (int64_t t = 0; t < p->t; t++)
        BY_KIND(dt, p, max[t] = row_max(DT, CAP, p, t));
}

void ISA_FN(xent_sum_loop)(struct device *dev, enum dtype dt, const struct xent *p,
                           const float *max, float *sum, float *at)
{
#pragma omp parallel for num_threads(cpu_team(dev, p->t * p->v)) schedule(static)
    for (int64_t t = 0; t < p->t; t++)
        BY_KIND(dt, p, {
            sum[t] = row_sum(DT, CAP, p, t, max[t]);
            at[t] = row_at(DT, CAP, p, t, max[t]);
        });
}

void ISA_FN(xent_finish_loop)(struct device *dev, enum dtype dt, const struct xent *p,
                              const float *max, const float *sum, const float *at, float *loss)
{
#pragma omp parallel for num_threads(cpu_team(dev, p->t * p->v)) schedule(static)
    for (int64_t t = 0; t < p->t; t++) {
        if (loss)
            loss[t] = p->target[t] < 0 ? 0 : logf(sum[t]) - at[t];
        if (p->scale)
            BY_KIND(dt, p, row_gradient(DT, CAP, p, t, max[t], sum[t]));
    }
}
