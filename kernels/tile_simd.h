/* kernels/tile_simd.h -- a small matrix product in registers, for attention_simd.c and
 * matmul_simd.c. */
#ifndef KERNELS_TILE_SIMD_H
#define KERNELS_TILE_SIMD_H

#include "kernels/simd.h"

/* Tiles are TILE x TILE; rows are worked on four at a time and columns TILE_NR vectors, so
 * that 4 * TILE_NR sums live in registers: enough to hide the latency of an fma. */
enum { TILE = 64, TILE_MR = 4, TILE_NR = VW == 16 ? 4 : 2 };

INLINE void tile_block(bool pairs, float *c, int64_t ldc, const float *a, int64_t ai, int64_t ak,
                       const float *b, int64_t ldb, int64_t k, bool add, float scale, int nr)
{
    vf s[TILE_MR][TILE_NR];

    for (int i = 0; i < TILE_MR; i++)
        for (int j = 0; j < nr; j++)
            s[i][j] = add ? vf_load(c + i * ldc + j * VW) : vf_set(0);
    for (int64_t l = 0; l < k; l++) {
        vf r[TILE_NR];

        for (int j = 0; j < nr; j++)
            r[j] = vf_load(b + l * ldb + j * VW);
        for (int i = 0; i < TILE_MR; i++) {
            vf x = vf_set(a[i * ai + l * ak]);

            for (int j = 0; j < nr; j++)
                s[i][j] = pairs ? vf_dot_bf16(vf_as_i(x), vf_as_i(r[j]), s[i][j]) : vf_fma(x, r[j], s[i][j]);
        }
    }
    for (int i = 0; i < TILE_MR; i++)
        for (int j = 0; j < nr; j++) {
            if (pairs && !add)
                s[i][j] = s[i][j] * vf_set(scale);
            vf_store(c + i * ldc + j * VW, s[i][j]);
        }
}

INLINE void tile_blocks(bool pairs, float *c, int64_t ldc, const float *a, int64_t ai, int64_t ak,
                        const float *b, int64_t ldb, int64_t m, int64_t n, int64_t k, bool add, float scale)
{
    for (int64_t j = 0; j < n; j += TILE_NR * VW)
        for (int64_t i = 0; i < m; i += TILE_MR) {
            float *cc = c + i * ldc + j;
            const float *aa = a + i * ai, *bb = b + j;

            if (n - j > (TILE_NR - 1) * VW) {
                tile_block(pairs, cc, ldc, aa, ai, ak, bb, ldb, k, add, scale, TILE_NR);
            } else {
                for (int64_t r = 0; r < n - j; r += VW)
                    tile_block(pairs, cc + r, ldc, aa, ai, ak, bb + r, ldb, k, add, scale, 1);
            }
        }
}

/* C (m, n) = A B, or += with add: element (i, l) of A is a[i * ai + l * ak], B is (k, n) with
 * rows ldb apart.  n is rounded up to VW and m to TILE_MR: the buffers must have that. */
NOINLINE void tile_mm(float *c, int64_t ldc, const float *a, int64_t ai, int64_t ak,
                      const float *b, int64_t ldb, int64_t m, int64_t n, int64_t k, bool add)
{
    tile_blocks(false, c, ldc, a, ai, ak, b, ldb, m, n, k, add, 1);
}

/* The same of pairs: an element of A and of B is two of bf16, neighbours along the inner dimension, of which k counts pairs.
 * C = scale A B, or C += A B.  For processors that multiply bf16. */
NOINLINE void tile_mm_pairs(float *c, int64_t ldc, const float *a, int64_t ai, int64_t ak, const float *b, int64_t ldb,
                            int64_t m, int64_t n, int64_t k, bool add, float scale)
{
    tile_blocks(true, c, ldc, a, ai, ak, b, ldb, m, n, k, add, scale);
}

/* n numbers, a multiple of 2 VW, rounded to bf16 one behind the other: pairs of neighbours in a row.  out may be x. */
INLINE void tile_narrow(float *out, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 2 * VW)
        vf_store(out + i / 2, vi_as_f(vf_narrow(vf_load(x + i), vf_load(x + i + VW))));
}

/* out (rows / 2, ld) = pairs of x's rows (rows, ld), which are even; ld a multiple of VW.  out may be x. */
INLINE void tile_pair(float *out, const float *x, int64_t rows, int64_t ld)
{
    for (int64_t i = 0; i < rows; i += 2)
        for (int64_t j = 0; j < ld; j += VW)
            vf_store(out + i / 2 * ld + j, vi_as_f(vf_pair(vf_load(x + i * ld + j), vf_load(x + (i + 1) * ld + j))));
}

/* out (rows, ldo) fp32 = rows x cols of x (rows ldx apart), times scale; zeros to the right up
 * to ldo and below up to `height` rows. */
INLINE void tile_pack(enum dtype dt, float *out, int64_t ldo, const void *x, int64_t ldx,
                      int64_t rows, int64_t cols, int64_t height, float scale)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t j = 0;

        for (; j < cols; j += VW)
            vf_store(out + i * ldo + j, vf_get(dt, x, i * ldx + j, cols - j) * vf_set(scale));
        for (; j < ldo; j += VW)
            vf_store(out + i * ldo + j, vf_set(0));
    }
    if (height > rows)
        memset(out + rows * ldo, 0, (size_t)((height - rows) * ldo) * sizeof *out);
}

/* out (cols, TILE) = the transpose of a packed tile x (TILE rows, ldx); cols a multiple of 16. */
INLINE void tile_transpose(float *out, const float *x, int64_t ldx, int64_t cols)
{
    for (int64_t j = 0; j < cols; j += VW)
        for (int64_t i = 0; i < TILE; i += 4) {
            const float *at = x + i * ldx + j;
            float lane[VW];
            vi t[4];

            vi_transpose4(vf_as_i(vf_load(at)), vf_as_i(vf_load(at + ldx)),
                          vf_as_i(vf_load(at + 2 * ldx)), vf_as_i(vf_load(at + 3 * ldx)), t);
            for (int q = 0; q < 4; q++) {
                vf_store(lane, vi_as_f(t[q]));
                for (int l = 0; l < VW / 4; l++)
                    memcpy(out + (j + 4 * l + q) * TILE + i, lane + 4 * l, 4 * sizeof *lane);
            }
        }
}

#endif
