#include "kernels/fp8_simd.h"

#include <omp.h>

#include "kernels/fp8_convert.h"
#include "kernels/simd.h"

enum { SIDE = 64 }; /* a square that is transposed in the cache */

INLINE float get(enum dtype dt, const void *x, int64_t i)
{
    return dt == DTYPE_BF16 ? bf16_to(((const uint16_t *)x)[i]) : ((const float *)x)[i];
}

/* NaN is the largest of all as bits. */
INLINE uint32_t amax_range(enum dtype dt, const void *x, int64_t lo, int64_t hi)
{
    uint32_t most = 0;

    for (int64_t i = lo; i < hi; i++) {
        uint32_t u = fp8_bits(get(dt, x, i)) & 0x7fffffffu;
        most = u > most ? u : most;
    }
    return most;
}

void ISA_FN(fp8_amax_loop)(struct device *dev, enum dtype dt, uint32_t *amax, const void *x, int64_t n)
{
    uint32_t most = 0;

#pragma omp parallel num_threads(cpu_team(dev, n)) reduction(max : most)
    {
        int64_t lo, hi;

        cpu_share(n, 64, &lo, &hi);
        BY_DTYPE(dt, most = amax_range(DT, x, lo, hi));
    }
    *amax = most;
}

INLINE void convert(enum dtype dt, enum fp8 to, uint8_t *y, const void *x, int64_t at, int64_t n, float scale)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = fp8_of(to, get(dt, x, at + i) * scale);
}

/* Rows r0 .. of a band of SIDE. */
INLINE void quantize_band(enum dtype dt, enum fp8 to, const struct fp8_quantize *p, float scale, int64_t r0)
{
    int64_t rows = p->rows - r0 < SIDE ? p->rows - r0 : SIDE, ld = p->yt_ld ? p->yt_ld : p->rows;
    size_t behind = r0 + rows == p->rows ? (size_t)(ld - p->rows) : 0;
    uint8_t square[SIDE][SIDE];

    for (int64_t c0 = 0; c0 < p->cols; c0 += SIDE) {
        int64_t cols = p->cols - c0 < SIDE ? p->cols - c0 : SIDE;

        for (int64_t r = 0; r < rows; r++) {
            int64_t at = (r0 + r) * p->cols + c0;

            convert(dt, to, square[r], p->x, at, cols, scale);
            if (p->y)
                memcpy(p->y + at, square[r], (size_t)cols);
        }
        for (int64_t c = 0; p->yt && c < cols; c++) {
            uint8_t *column = p->yt + (c0 + c) * ld + r0;

            for (int64_t r = 0; r < rows; r++)
                column[r] = square[r][c];
            memset(column + rows, 0, behind);
        }
    }
}

void ISA_FN(fp8_quantize_loop)(struct device *dev, const struct fp8_quantize *p, float scale)
{
#pragma omp parallel for num_threads(cpu_team(dev, p->rows * p->cols)) schedule(static)
    for (int64_t r = 0; r < p->rows; r += SIDE) {
        if (p->to == FP8_E4M3)
            BY_DTYPE(p->dt, quantize_band(DT, FP8_E4M3, p, scale, r));
        else
            BY_DTYPE(p->dt, quantize_band(DT, FP8_E5M2, p, scale, r));
    }
}

INLINE void decode_range(uint16_t *y, enum fp8 f, const uint8_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint16_t)(fp8_bits(fp8_to(f, x[i])) >> 16);
}

void ISA_FN(fp8_decode_loop)(struct device *dev, uint16_t *y, enum fp8 f, const uint8_t *x, int64_t rows, int64_t cols,
                             int64_t ld)
{
#pragma omp parallel for num_threads(cpu_team(dev, rows * cols)) schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        if (f == FP8_E4M3)
            decode_range(y + r * cols, FP8_E4M3, x + r * ld, cols);
        else
            decode_range(y + r * cols, FP8_E5M2, x + r * ld, cols);
    }
}

INLINE void finish_row(enum dtype dc, const struct matmul *p, const float *product, float scale, int64_t r)
{
    for (int64_t j = 0; j < p->n; j += VW) {
        int64_t left = p->n - j, at = r * p->ldc + j;
        vf v = vf_get(DTYPE_F32, product, r * p->n + j, left) * vf_set(scale);

        if (p->bias)
            v = v + vf_get(DTYPE_BF16, p->bias, j, left);
        if (p->beta != 0)
            v = v + vf_get(dc, p->c, at, left);
        vf_put(dc, p->c, at, left, v);
    }
}

void ISA_FN(fp8_finish_loop)(struct device *dev, const struct matmul *p, const float *product, float scale)
{
#pragma omp parallel for num_threads(cpu_team(dev, p->m * p->n)) schedule(static)
    for (int64_t r = 0; r < p->m; r++)
        BY_DTYPE(p->dt_c, finish_row(DT, p, product, scale, r));
}
