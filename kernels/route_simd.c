#include "kernels/route_simd.h"

#include "kernels/simd.h"

INLINE void join_rows(enum dtype dt, int64_t k, void *y, const void *x, const int32_t *place, const float *weight,
                      int64_t c, int64_t lo, int64_t hi)
{
    for (int64_t t = lo; t < hi; t++)
        for (int64_t i = 0; i < c; i += VW) {
            vf sum = vf_set(0);

            for (int64_t j = t * k; j < (t + 1) * k; j++)
                if (place[j] >= 0)
                    sum = vf_fma(vf_set(weight ? weight[j] : 1), vf_get(dt, x, place[j] * c + i, c - i), sum);
            vf_put(dt, y, t * c + i, c - i, sum);
        }
}

void ISA_FN(route_join_loop)(struct device *dev, enum dtype dt, const struct route *p, void *y, const void *x,
                             const int32_t *place, const float *weight, int64_t c)
{
#pragma omp parallel num_threads(cpu_team(dev, p->t * p->k * c))
    {
        int64_t lo, hi;

        cpu_share(p->t, 1, &lo, &hi);
        BY_DTYPE(dt, join_rows(DT, p->k, y, x, place, weight, c, lo, hi));
    }
}

INLINE void join_bwd_rows(enum dtype dt, int64_t k, void *dx, float *dweight, const void *dy, const void *x,
                          const int32_t *place, const float *weight, int64_t c, int64_t lo, int64_t hi)
{
    for (int64_t j = lo * k; j < hi * k; j++) {
        vf sum = vf_set(0), w = vf_set(weight[j]);

        for (int64_t i = 0; i < c && place[j] >= 0; i += VW) {
            int64_t at = place[j] * c + i;
            vf d = vf_get(dt, dy, j / k * c + i, c - i);

            sum = vf_fma(d, vf_get(dt, x, at, c - i), sum);
            vf_put(dt, dx, at, c - i, w * d);
        }
        dweight[j] = vf_sum(sum);
    }
}

void ISA_FN(route_join_bwd_loop)(struct device *dev, enum dtype dt, const struct route *p, void *dx, float *dweight,
                                 const void *dy, const void *x, const int32_t *place, const float *weight, int64_t c)
{
#pragma omp parallel num_threads(cpu_team(dev, p->t * p->k * c))
    {
        int64_t lo, hi;

        cpu_share(p->t, 1, &lo, &hi);
        BY_DTYPE(dt, join_bwd_rows(DT, p->k, dx, dweight, dy, x, place, weight, c, lo, hi));
    }
}
