#include "kernels/vec_simd.h"

#include "kernels/simd.h"

INLINE void cast_range(void *y, enum dtype dy, const void *x, enum dtype dx, int64_t lo, int64_t hi)
{
    for (int64_t i = lo; i < hi; i += VW)
        vf_put(dy, y, i, hi - i, vf_get(dx, x, i, hi - i));
}

void ISA_FN(vec_cast_loop)(struct device *dev, void *y, enum dtype dy, const void *x, enum dtype dx,
                           int64_t n)
{
#pragma omp parallel num_threads(cpu_team(dev, n))
    {
        int64_t lo, hi;

        cpu_share(n, 64, &lo, &hi);
        if (dy == DTYPE_BF16)
            BY_DTYPE(dx, cast_range(y, DTYPE_BF16, x, DT, lo, hi));
        else
            BY_DTYPE(dx, cast_range(y, DTYPE_F32, x, DT, lo, hi));
    }
}

INLINE void axpby_range(enum dtype dt, void *y, float a, const void *x, float b, int64_t lo,
                        int64_t hi)
{
    vf va = vf_set(a), vb = vf_set(b);

    for (int64_t i = lo; i < hi; i += VW) {
        vf v = vf_get(dt, y, i, hi - i) * vb;

        if (x)
            v = vf_fma(va, vf_get(dt, x, i, hi - i), v);
        vf_put(dt, y, i, hi - i, v);
    }
}

void ISA_FN(vec_axpby_loop)(struct device *dev, enum dtype dt, void *y, float a, const void *x,
                            float b, int64_t n)
{
#pragma omp parallel num_threads(cpu_team(dev, n))
    {
        int64_t lo, hi;

        cpu_share(n, 64, &lo, &hi);
        BY_DTYPE(dt, axpby_range(DT, y, a, x, b, lo, hi));
    }
}

INLINE void add_range(enum dtype dt, void *y, const void *a, const void *b, int64_t lo, int64_t hi)
{
    for (int64_t i = lo; i < hi; i += VW)
        vf_put(dt, y, i, hi - i, vf_get(dt, a, i, hi - i) + vf_get(dt, b, i, hi - i));
}

void ISA_FN(vec_add_loop)(struct device *dev, enum dtype dt, void *y, const void *a, const void *b,
                          int64_t n)
{
#pragma omp parallel num_threads(cpu_team(dev, n))
    {
        int64_t lo, hi;

        cpu_share(n, 64, &lo, &hi);
        BY_DTYPE(dt, add_range(DT, y, a, b, lo, hi));
    }
}

INLINE void dropout_rows(enum dtype dt, void *y, const void *x, int64_t lo, int64_t hi, int64_t c,
                         const struct dropout *drop)
{
    for (int64_t t = lo; t < hi; t++) {
        struct drop_row d = drop_row_of(drop, t, c);

        for (int64_t i = 0; i < c; i += 4 * VW) {
            vf f[4];

            drop_factors(&d, i / 4, f);
            for (int64_t q = 0, j = i; q < 4 && j < c; q++, j += VW)
                vf_put(dt, y, t * c + j, c - j, vf_get(dt, x, t * c + j, c - j) * f[q]);
        }
    }
}

void ISA_FN(vec_dropout_loop)(struct device *dev, enum dtype dt, void *y, const void *x, int64_t t,
                              int64_t c, const struct dropout *drop)
{
#pragma omp parallel num_threads(cpu_team(dev, t * c))
    {
        int64_t lo, hi;

        cpu_share(t, 1, &lo, &hi);
        BY_DTYPE(dt, dropout_rows(DT, y, x, lo, hi, c, drop));
    }
}

INLINE void colsum_rows(enum dtype dt, float *part, const void *x, int64_t lo, int64_t hi,
                        int64_t c, int64_t ldx)
{
    memset(part, 0, (size_t)c * sizeof *part);
    for (int64_t t = lo; t < hi; t++)
        for (int64_t i = 0; i < c; i += VW) {
            int64_t left = c - i;
            vf v = vf_get(dt, x, t * ldx + i, left);
            vf_put(DTYPE_F32, part, i, left, vf_get(DTYPE_F32, part, i, left) + v);
        }
}

void ISA_FN(vec_colsum_loop)(struct device *dev, enum dtype dt, float *sum, float *part,
                             const void *x, int64_t t, int64_t c, int64_t ldx)
{
#pragma omp parallel num_threads(cpu_team(dev, t * c))
    {
        int64_t lo, hi;

#pragma omp for schedule(static)
        for (int64_t g = 0; g < CPU_GROUPS; g++)
            BY_DTYPE(dt, colsum_rows(DT, part + g * c, x, cpu_group_begin(g, t),
                                     cpu_group_begin(g + 1, t), c, ldx));
        cpu_share(c, 16, &lo, &hi);
        for (int64_t i = lo; i < hi; i++) {
            float s = 0;

            for (int64_t g = 0; g < CPU_GROUPS; g++)
                s += part[g * c + i];
            sum[i] += s;
        }
    }
}

INLINE double sumsq_block(enum dtype dt, const void *x, int64_t lo, int64_t hi)
{
    double s = 0;

    /* Stretches of 2048 in fp32 lanes, whose sums are added in double. */
    for (int64_t j = lo; j < hi; j += 2048) {
        int64_t end = j + 2048 < hi ? j + 2048 : hi, i = j;
        vf a = vf_set(0), b = vf_set(0);

        for (; i + 2 * VW <= end; i += 2 * VW) {
            vf u = vf_get(dt, x, i, VW), v = vf_get(dt, x, i + VW, VW);
            a = vf_fma(u, u, a);
            b = vf_fma(v, v, b);
        }
        for (; i < end; i += VW) {
            vf u = vf_get(dt, x, i, end - i);
            a = vf_fma(u, u, a);
        }
        s += (double)vf_sum(a + b);
    }
    return s;
}

void ISA_FN(vec_sumsq_loop)(struct device *dev, enum dtype dt, double *sum, int64_t block, const void *x,
                            int64_t n)
{
    int64_t blocks = (n + block - 1) / block;

#pragma omp parallel for num_threads(cpu_team(dev, n)) schedule(static)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t lo = b * block, hi = block < n - lo ? lo + block : n;
        BY_DTYPE(dt, sum[b] += sumsq_block(DT, x, lo, hi));
    }
}
