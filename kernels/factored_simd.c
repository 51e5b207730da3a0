#include "kernels/factored_simd.h"

#include "kernels/simd.h"

/* Rows lo .. hi - 1: of each its mean, and what they add to the columns' sums. */
INLINE void square_rows(const struct factored *p, float *row, float *part, const float *g, int64_t lo, int64_t hi)
{
    float fresh = (float)p->fresh;

    memset(part, 0, (size_t)p->cols * sizeof *part);
    for (int64_t r = lo; r < hi; r++) {
        const float *x = g + r * p->cols;
        vf sum = vf_set(0);

        for (int64_t i = 0; i < p->cols; i += VW) {
            int64_t left = p->cols - i;
            vf v = vf_get(DTYPE_F32, x, i, left);

            sum = vf_fma(v, v, sum);
            vf_put(DTYPE_F32, part, i, left, vf_fma(v, v, vf_get(DTYPE_F32, part, i, left)));
        }
        row[r] += fresh * (vf_sum(sum) / (float)p->cols - row[r]);
    }
}

void ISA_FN(factored_means_loop)(struct device *dev, const struct factored *p, float *row, float *col, const float *g,
                                 float *part)
{
#pragma omp parallel num_threads(cpu_team(dev, p->rows * p->cols))
    {
        int64_t lo, hi;

#pragma omp for schedule(static)
        for (int64_t k = 0; k < CPU_GROUPS; k++)
            square_rows(p, row, part + k * p->cols, g, cpu_group_begin(k, p->rows), cpu_group_begin(k + 1, p->rows));
        cpu_share(p->cols, 16, &lo, &hi);
        for (int64_t i = lo; i < hi; i++) {
            float s = 0;

            for (int64_t k = 0; k < CPU_GROUPS; k++)
                s += part[k * p->cols + i];
            col[i] += (float)p->fresh * (s / (float)p->rows - col[i]);
        }
    }
}

/* x / sqrt(max(v, least)) */
INLINE vf over_root(vf x, vf v, vf least)
{
    return x / vf_sqrt(vf_max(v, least));
}

void ISA_FN(factored_scale_loop)(struct device *dev, const struct factored *p, float *g, const float *row, const float *col,
                                 float factor)
{
    vf least = vf_set((float)(p->eps * p->eps));

#pragma omp parallel num_threads(cpu_team(dev, p->rows * p->cols))
    {
        int64_t lo, hi;

        cpu_share(p->rows, 1, &lo, &hi);
        for (int64_t r = lo; r < hi; r++) {
            vf of_row = vf_set(row[r] * factor);
            float *x = g + r * p->cols;

            for (int64_t i = 0; i < p->cols; i += VW) {
                int64_t left = p->cols - i;
                vf v = of_row * vf_get(DTYPE_F32, col, i, left);

                vf_put(DTYPE_F32, x, i, left, over_root(vf_get(DTYPE_F32, x, i, left), v, least));
            }
        }
    }
}

void ISA_FN(factored_vector_loop)(struct device *dev, const struct factored *p, float *g, float *row)
{
    vf least = vf_set((float)(p->eps * p->eps)), fresh = vf_set((float)p->fresh);

#pragma omp parallel num_threads(cpu_team(dev, p->rows))
    {
        int64_t lo, hi;

        cpu_share(p->rows, 64, &lo, &hi);
        for (int64_t i = lo; i < hi; i += VW) {
            vf x = vf_get(DTYPE_F32, g, i, hi - i), v = vf_get(DTYPE_F32, row, i, hi - i);

            v = vf_fma(fresh, x * x - v, v);
            vf_put(DTYPE_F32, row, i, hi - i, v);
            vf_put(DTYPE_F32, g, i, hi - i, over_root(x, v, least));
        }
    }
}
