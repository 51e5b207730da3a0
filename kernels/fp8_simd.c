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

/* A square of bytes, whose rows are `side` apart, turned: column c to yt + c * ld, with `behind` zeros behind its end. */
INLINE void put_turned(uint8_t *yt, int64_t ld, const uint8_t *square, int64_t side, int64_t rows, int64_t cols, int64_t behind)
{
    for (int64_t c = 0; c < cols; c++, yt += ld) {
        for (int64_t r = 0; r < rows; r++)
            yt[r] = square[r * side + c];
        memset(yt + rows, 0, (size_t)behind);
    }
}

/* Rows r0 .. of a band of SIDE. */
INLINE void quantize_band(enum dtype dt, enum fp8 to, const struct fp8_quantize *p, float scale, int64_t r0)
{
    int64_t rows = p->rows - r0 < SIDE ? p->rows - r0 : SIDE, ld = p->yt_ld ? p->yt_ld : p->rows;
    uint8_t square[SIDE][SIDE];

    for (int64_t c0 = 0; c0 < p->cols; c0 += SIDE) {
        int64_t cols = p->cols - c0 < SIDE ? p->cols - c0 : SIDE;

        for (int64_t r = 0; r < rows; r++) {
            int64_t at = (r0 + r) * p->cols + c0;

            convert(dt, to, square[r], p->x, at, cols, scale);
            if (p->y)
                memcpy(p->y + at, square[r], (size_t)cols);
        }
        if (p->yt)
            put_turned(p->yt + c0 * ld + r0, ld, square[0], SIDE, rows, cols, r0 + rows == p->rows ? ld - p->rows : 0);
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

/* A square of blocks: the bits of the largest |x| of each of its rows and columns. */
struct largest {
    uint32_t row[FP8_BLOCK], col[FP8_BLOCK];
};
INLINE void largest_of(struct largest *most, const uint16_t *x, int64_t ld, int64_t rows, int64_t cols)
{
    memset(most, 0, sizeof *most);
    for (int64_t r = 0; r < rows; r++, x += ld) {
        uint32_t of_row = 0;
        for (int64_t c = 0; c < cols; c++) {
            uint32_t u = (uint32_t)(x[c] & 0x7fff) << 16;
            of_row = u > of_row ? u : of_row;
            most->col[c] = u > most->col[c] ? u : most->col[c];
        }
        most->row[r] = of_row;
    }
}

/* The scales of n rows (or columns) of a square, of squares the same for all. */
INLINE void scales_of(float *scale, const uint32_t *most, int64_t n, enum fp8 to, const struct fp8_blocks *p)
{
    uint32_t all = 0;

    for (int64_t i = 0; p->squares && i < n; i++)
        all = most[i] > all ? most[i] : all;
    for (int64_t i = 0; i < n; i++)
        scale[i] = fp8_block_scale(fp8_max(to), fp8_float(p->squares ? all : most[i]), fp8_block_bits(p->fp32_scales));
}

/* Where a square's 1 / scale go, of a matrix (rows, k) whose rows r0 and on and whose k0 it has; n rows.  What lies behind the
 * end of a line becomes 0. */
INLINE void put_inverses(float *inv, enum fp8_scales by, int64_t rows, int64_t k, int64_t r0, int64_t k0, int64_t n,
                         const float *scale)
{
    int64_t ld = fp8_scales_ld(by, rows, k), at = fp8_scale_at(by, ld, r0, k0);

    for (int64_t i = 0; i < (by == FP8_OF_ROWS ? n : 1); i++)
        inv[at + i] = 1 / scale[i];
    if (by == FP8_OF_ROWS)
        for (int64_t i = rows; r0 + n == rows && i < ld; i++)
            inv[k0 / FP8_BLOCK * ld + i] = 0;
    else
        for (int64_t i = fp8_blocks_of(k); k0 + FP8_BLOCK >= k && i < ld; i++)
            inv[r0 / FP8_BLOCK * ld + i] = 0;
}

INLINE void blocks_square(enum fp8 to, const struct fp8_blocks *p, int64_t r0, int64_t c0)
{
    int64_t rows = p->rows - r0 < FP8_BLOCK ? p->rows - r0 : FP8_BLOCK;
    int64_t cols = p->cols - c0 < FP8_BLOCK ? p->cols - c0 : FP8_BLOCK;
    const uint16_t *x = (const uint16_t *)p->x + r0 * p->cols + c0;
    enum fp8_scales by = p->squares ? FP8_OF_SQUARES : FP8_OF_ROWS;
    float of_row[FP8_BLOCK], of_col[FP8_BLOCK];
    uint8_t square[FP8_BLOCK][FP8_BLOCK];
    struct largest most;

    largest_of(&most, x, p->cols, rows, cols);
    scales_of(of_row, most.row, rows, to, p);
    scales_of(of_col, most.col, cols, to, p);
    for (int64_t r = 0; p->y && r < rows; r++)
        convert(DTYPE_BF16, to, p->y + (r0 + r) * p->cols + c0, x, r * p->cols, cols, of_row[r]);
    if (p->y)
        put_inverses(p->inv, by, p->rows, p->cols, r0, c0, rows, of_row);
    if (!p->yt)
        return;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            square[r][c] = fp8_of(to, bf16_to(x[r * p->cols + c]) * of_col[c]);
    put_turned(p->yt + c0 * p->yt_ld + r0, p->yt_ld, square[0], FP8_BLOCK, rows, cols,
               r0 + rows == p->rows ? p->yt_ld - p->rows : 0);
    put_inverses(p->inv_t, by, p->cols, p->yt_ld, c0, r0, cols, of_col);
}

void ISA_FN(fp8_blocks_loop)(struct device *dev, const struct fp8_blocks *p)
{
#pragma omp parallel for num_threads(cpu_team(dev, p->rows * p->cols)) schedule(static)
    for (int64_t r = 0; r < p->rows; r += FP8_BLOCK)
        for (int64_t c = 0; c < p->cols; c += FP8_BLOCK) {
            if (p->to == FP8_E4M3)
                blocks_square(FP8_E4M3, p, r, c);
            else
                blocks_square(FP8_E5M2, p, r, c);
        }
}

/* n numbers times `times`, which to bf16 is a power of two; to y[first] and on. */
INLINE void decode_range(enum dtype dt, void *y, int64_t first, enum fp8 f, const uint8_t *x, int64_t n, float times)
{
    for (int64_t i = 0; i < n; i++) {
        float v = fp8_to(f, x[i]) * times;
        if (dt == DTYPE_BF16)
            ((uint16_t *)y)[first + i] = (uint16_t)(fp8_bits(v) >> 16);
        else
            ((float *)y)[first + i] = v;
    }
}

/* Row r of columns at .. at + k - 1. */
INLINE void decode_row(enum dtype dt, void *y, enum fp8 f, const struct fp8_matrix *m, int64_t r, int64_t at, int64_t k)
{
    const uint8_t *x = m->x + r * m->ld + at;

    for (int64_t i = 0, n; i < k; i += n) {
        int64_t left = FP8_BLOCK - (at + i) % FP8_BLOCK;
        n = !m->by || k - i < left ? k - i : left;
        decode_range(dt, y, r * k + i, f, x + i, n, m->by ? m->inv[fp8_scale_at(m->by, m->inv_ld, r, at + i)] : 1);
    }
}

void ISA_FN(fp8_decode_loop)(struct device *dev, enum dtype dt, void *y, const struct fp8_matrix *m, int64_t at, int64_t k)
{
#pragma omp parallel for num_threads(cpu_team(dev, m->rows * k)) schedule(static)
    for (int64_t r = 0; r < m->rows; r++) {
        if (m->format == FP8_E4M3)
            BY_DTYPE(dt, decode_row(DT, y, FP8_E4M3, m, r, at, k));
        else
            BY_DTYPE(dt, decode_row(DT, y, FP8_E5M2, m, r, at, k));
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
