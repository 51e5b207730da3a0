#include "kernels/act_simd.h"

#include "kernels/simd.h"

/* The logistic function and its complement, neither with cancellation. */
INLINE vf logistic(vf x, vf *complement)
{
    vf one = vf_set(1.0f), zero = vf_set(0.0f);
    vf e = vf_exp(vf_if_lt(x, zero, x, zero - x)), r = one / (one + e), q = e * r;

    *complement = vf_if_lt(x, zero, r, q);
    return vf_if_lt(x, zero, q, r);
}

/* act(x), and act'(x) to *slope. */
INLINE vf act_of(enum act act, vf x, vf *slope)
{
    vf one = vf_set(1.0f), s, c;

    if (act == ACT_GELU_TANH) { /* (1 + tanh u) / 2 = logistic(2 u) */
        vf x2 = x * x, k = vf_set(1.59576912f); /* 2 sqrt(2 / pi) */
        vf u = k * x * vf_fma(vf_set(0.044715f), x2, one);
        vf du = k * vf_fma(vf_set(3 * 0.044715f), x2, one);

        s = logistic(u, &c);
        *slope = vf_fma(x * s * c, du, s);
        /* s c is 0 where x^2 overflows to infinity: 0 * inf is no number */
        *slope = vf_if_lt(vf_set(1e6f), x2, vf_if_lt(x, vf_set(0), vf_set(0), one), *slope);
        return x * s;
    }
    if (act == ACT_GELU_ERF) {
        vf pdf = vf_set(0.398942280f) * vf_exp(vf_set(-0.5f) * x * x);

        s = vf_normal_cdf(x);
        *slope = vf_fma(x, pdf, s);
        return x * s;
    }
    if (act == ACT_RELU || act == ACT_RELU2) {
        vf zero = vf_set(0), r = vf_if_lt(x, zero, zero, x); /* NaN stays */

        *slope = r + r;
        if (act == ACT_RELU2)
            return r * r;
        *slope = vf_if_lt(zero, x, one, zero);
        return r;
    }
    if (act == ACT_CLAMPED) {
        vf most = vf_set(ACT_LIMIT), quick = vf_set(ACT_QUICK), g = vf_if_lt(most, x, most, x);

        s = logistic(quick * g, &c);
        *slope = vf_if_lt(most, x, vf_set(0), vf_fma(quick * (g * s), c, s));
        return g * s;
    }
    s = logistic(x, &c);
    *slope = vf_fma(x * s, c, s);
    return x * s;
}

/* What a gate's activation is multiplied with, and the slope of that. */
INLINE vf up_of(enum act act, vf u, vf *slope)
{
    vf one = vf_set(1), zero = vf_set(0), most = vf_set(ACT_LIMIT), least = vf_set(-ACT_LIMIT);

    *slope = one;
    if (act != ACT_CLAMPED)
        return u;
    *slope = vf_if_lt(u, least, zero, vf_if_lt(most, u, zero, one));
    return vf_if_lt(u, least, least, vf_if_lt(most, u, most, u)) + one;
}

/* CALL with the constant ACT for act. */
#define ACT_CASE(name, ...)                                                    \
    case name: {                                                               \
        const enum act ACT = name;                                             \
        __VA_ARGS__;                                                           \
        break;                                                                 \
    }
#define BY_ACT(act, CALL)                                                      \
    switch (act) {                                                             \
        ACTS(ACT_CASE, CALL)                                                   \
    default: break;                                                            \
    }

INLINE void fwd_range(enum dtype dt, enum act act, void *y, const void *x, int64_t lo, int64_t hi)
{
    vf slope;

    for (int64_t i = lo; i < hi; i += VW)
        vf_put(dt, y, i, hi - i, act_of(act, vf_get(dt, x, i, hi - i), &slope));
}

void ISA_FN(act_fwd_loop)(struct device *dev, enum dtype dt, enum act act, void *y, const void *x,
                          int64_t n)
{
#pragma omp parallel num_threads(cpu_team(dev, n))
    {
        int64_t lo, hi;

        cpu_share(n, 64, &lo, &hi);
        BY_ACT(act, BY_DTYPE(dt, fwd_range(DT, ACT, y, x, lo, hi)));
    }
}

INLINE void bwd_range(enum dtype dt, enum act act, void *dx, const void *dy, const void *x,
                      int64_t lo, int64_t hi)
{
    for (int64_t i = lo; i < hi; i += VW) {
        vf slope;

        act_of(act, vf_get(dt, x, i, hi - i), &slope);
        vf_put(dt, dx, i, hi - i, vf_get(dt, dy, i, hi - i) * slope);
    }
}

void ISA_FN(act_bwd_loop)(struct device *dev, enum dtype dt, enum act act, void *dx,
                          const void *dy, const void *x, int64_t n)
{
#pragma omp parallel num_threads(cpu_team(dev, n))
    {
        int64_t lo, hi;

        cpu_share(n, 64, &lo, &hi);
        BY_ACT(act, BY_DTYPE(dt, bwd_range(DT, ACT, dx, dy, x, lo, hi)));
    }
}

INLINE void glu_fwd_rows(enum dtype dt, enum act act, void *y, const void *x, int64_t f,
                         int64_t lo, int64_t hi)
{
    for (int64_t t = lo; t < hi; t++)
        for (int64_t i = 0; i < f; i += VW) {
            int64_t left = f - i, at = t * 2 * f + i;
            vf slope, a = act_of(act, vf_get(dt, x, at, left), &slope);

            vf_put(dt, y, t * f + i, left, a * up_of(act, vf_get(dt, x, at + f, left), &slope));
        }
}

void ISA_FN(glu_fwd_loop)(struct device *dev, enum dtype dt, enum act act, void *y, const void *x,
                          int64_t t, int64_t f)
{
#pragma omp parallel num_threads(cpu_team(dev, t * f))
    {
        int64_t lo, hi;

        cpu_share(t, 1, &lo, &hi);
        BY_ACT(act, BY_DTYPE(dt, glu_fwd_rows(DT, ACT, y, x, f, lo, hi)));
    }
}

INLINE void glu_bwd_rows(enum dtype dt, enum act act, void *dx, const void *dy, const void *x,
                         int64_t f, int64_t lo, int64_t hi)
{
    for (int64_t t = lo; t < hi; t++)
        for (int64_t i = 0; i < f; i += VW) {
            int64_t left = f - i, at = t * 2 * f + i;
            vf slope, a = act_of(act, vf_get(dt, x, at, left), &slope);
            vf up_slope, up = up_of(act, vf_get(dt, x, at + f, left), &up_slope), d = vf_get(dt, dy, t * f + i, left);

            vf_put(dt, dx, at, left, d * up * slope);
            vf_put(dt, dx, at + f, left, d * a * up_slope);
        }
}

void ISA_FN(glu_bwd_loop)(struct device *dev, enum dtype dt, enum act act, void *dx,
                          const void *dy, const void *x, int64_t t, int64_t f)
{
#pragma omp parallel num_threads(cpu_team(dev, t * f))
    {
        int64_t lo, hi;

        cpu_share(t, 1, &lo, &hi);
        BY_ACT(act, BY_DTYPE(dt, glu_bwd_rows(DT, ACT, dx, dy, x, f, lo, hi)));
    }
}

void ISA_FN(act_approx)(int which, float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += VW) {
        vf v = vf_get(DTYPE_F32, x, i, n - i);
        vf_put(DTYPE_F32, y, i, n - i, which == 0 ? vf_exp(v) : vf_normal_cdf(v));
    }
}
