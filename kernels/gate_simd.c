#include "kernels/gate_simd.h"

#include <math.h>

#include "kernels/simd.h"

INLINE float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

INLINE void add_rows(enum dtype dt, void *y, const void *x, const float *gate, int64_t c, int64_t lo, int64_t hi)
{
    for (int64_t t = lo; t < hi; t++) {
        vf w = vf_set(sigmoid(gate[t]));

        for (int64_t i = t * c; i < (t + 1) * c; i += VW) {
            int64_t left = (t + 1) * c - i;

            vf_put(dt, y, i, left, vf_fma(w, vf_get(dt, x, i, left), vf_get(dt, y, i, left)));
        }
    }
}

void ISA_FN(gate_add_loop)(struct device *dev, enum dtype dt, void *y, const void *x, const float *gate, int64_t t, int64_t c)
{
#pragma omp parallel num_threads(cpu_team(dev, t * c))
    {
        int64_t lo, hi;

        cpu_share(t, 1, &lo, &hi);
        BY_DTYPE(dt, add_rows(DT, y, x, gate, c, lo, hi));
    }
}

INLINE void back_rows(enum dtype dt, void *dx, void *dgate, const void *dy, const void *x, const float *gate, int64_t c,
                      int64_t lo, int64_t hi)
{
    for (int64_t t = lo; t < hi; t++) {
        float s = sigmoid(gate[t]);
        vf w = vf_set(s), sum = vf_set(0);

        for (int64_t i = t * c; i < (t + 1) * c; i += VW) {
            int64_t left = (t + 1) * c - i;
            vf d = vf_get(dt, dy, i, left);

            sum = vf_fma(d, vf_get(dt, x, i, left), sum);
            vf_put(dt, dx, i, left, w * d);
        }
        vf_put(dt, dgate, t, 1, vf_set(s * (1 - s) * vf_sum(sum)));
    }
}

void ISA_FN(gate_back_loop)(struct device *dev, enum dtype dt, void *dx, void *dgate, const void *dy, const void *x,
                            const float *gate, int64_t t, int64_t c)
{
#pragma omp parallel num_threads(cpu_team(dev, t * c))
    {
        int64_t lo, hi;

        cpu_share(t, 1, &lo, &hi);
        BY_DTYPE(dt, back_rows(DT, dx, dgate, dy, x, gate, c, lo, hi));
    }
}

/* ---- a gate for each element ---- */

/* sigmoid(x), or 1 - sigmoid(x) as that of -x: nothing cancels. */
INLINE vf sigmoid_of(vf x)
{
    vf one = vf_set(1);

    return one / (one + vf_exp(vf_set(0) - x));
}

INLINE void mul_rows(enum dtype dt, void *y, const void *x, const struct gate_rows *g, int64_t lo, int64_t hi)
{
    for (int64_t t = lo; t < hi; t++)
        for (int64_t i = 0; i < g->c; i += VW) {
            int64_t left = g->c - i;

            vf_put(dt, y, t * g->c + i, left,
                   sigmoid_of(vf_get(dt, g->gate, t * g->ld + i, left)) * vf_get(dt, x, t * g->c + i, left));
        }
}

void ISA_FN(gate_mul_loop)(struct device *dev, enum dtype dt, void *y, const void *x, const struct gate_rows *g)
{
#pragma omp parallel num_threads(cpu_team(dev, g->t * g->c))
    {
        int64_t lo, hi;

        cpu_share(g->t, 1, &lo, &hi);
        BY_DTYPE(dt, mul_rows(DT, y, x, g, lo, hi));
    }
}

INLINE void slope_rows(enum dtype dt, void *dgate, const void *dx, const void *x, const struct gate_rows *g, int64_t lo,
                       int64_t hi)
{
    for (int64_t t = lo; t < hi; t++)
        for (int64_t i = 0; i < g->c; i += VW) {
            int64_t left = g->c - i, at = t * g->c + i;
            vf other = sigmoid_of(vf_set(0) - vf_get(dt, g->gate, t * g->ld + i, left));

            vf_put(dt, dgate, t * g->ld + i, left, vf_get(dt, dx, at, left) * vf_get(dt, x, at, left) * other);
        }
}

void ISA_FN(gate_slope_loop)(struct device *dev, enum dtype dt, void *dgate, const void *dx, const void *x,
                             const struct gate_rows *g)
{
#pragma omp parallel num_threads(cpu_team(dev, g->t * g->c))
    {
        int64_t lo, hi;

        cpu_share(g->t, 1, &lo, &hi);
        BY_DTYPE(dt, slope_rows(DT, dgate, dx, x, g, lo, hi));
    }
}
