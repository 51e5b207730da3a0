#include "kernels/matmul_simd.h"

#include <omp.h>

#include "kernels/tile_simd.h"

/* rows x cols of op(X), from (i0, j0), fp32 with rows ld apart, zeros to TILE x ld. */
INLINE void pack_operand(enum dtype dt, float *out, int64_t ld, const void *x, int64_t ldx,
                         bool trans, int64_t i0, int64_t j0, int64_t rows, int64_t cols,
                         int64_t height)
{
    if (!trans) {
        const char *at = (const char *)x + (size_t)(i0 * ldx + j0) * dtype_size(dt);
        tile_pack(dt, out, ld, at, ldx, rows, cols, height, 1);
        return;
    }
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < ld; j++) {
            int64_t at = (j0 + j) * ldx + i0 + i;
            float v = 0;

            if (i < rows && j < cols)
                v = dt == DTYPE_BF16 ? bf16_to(((const uint16_t *)x)[at]) : ((const float *)x)[at];
            out[i * ld + j] = v;
        }
}

INLINE void block(enum dtype dt, enum dtype dt_c, const struct matmul *p, int64_t i0, int64_t j0,
                  float *w)
{
    float *a = w, *b = a + TILE * MATMUL_DEPTH, *c = b + TILE * MATMUL_DEPTH;
    int64_t m = p->m - i0 < TILE ? p->m - i0 : TILE, n = p->n - j0 < TILE ? p->n - j0 : TILE;

    memset(c, 0, TILE * TILE * sizeof *c);
    for (int64_t l = 0; l < p->k; l += MATMUL_DEPTH) {
        int64_t k = p->k - l < MATMUL_DEPTH ? p->k - l : MATMUL_DEPTH;

        pack_operand(dt, a, MATMUL_DEPTH, p->a, p->lda, p->trans_a, i0, l, m, k, TILE);
        pack_operand(dt, b, TILE, p->b, p->ldb, p->trans_b, l, j0, k, n, k);
        tile_mm(c, TILE, a, MATMUL_DEPTH, 1, b, TILE, m, n, k, true);
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j += VW) {
            int64_t at = (i0 + i) * p->ldc + j0 + j;
            vf v = vf_load(c + i * TILE + j);

            if (p->bias)
                v = v + vf_get(dt, p->bias, j0 + j, n - j);
            if (p->beta != 0)
                v = v + vf_get(dt_c, p->c, at, n - j);
            vf_put(dt_c, p->c, at, n - j, v);
        }
}

void ISA_FN(matmul_loop)(struct device *dev, const struct matmul *p, float *scratch)
{
    int64_t rows = (p->m + TILE - 1) / TILE, cols = (p->n + TILE - 1) / TILE;

#pragma omp parallel num_threads(cpu_team(dev, p->m * p->n * (p->k / 8 + 1)))
    {
        float *w = scratch + omp_get_thread_num() * MATMUL_SCRATCH;

#pragma omp for schedule(static)
        for (int64_t i = 0; i < rows * cols; i++)
            if (p->dt_c == DTYPE_BF16)
                BY_DTYPE(p->dt, block(DT, DTYPE_BF16, p, i / cols * TILE, i % cols * TILE, w));
            else
                BY_DTYPE(p->dt, block(DT, DTYPE_F32, p, i / cols * TILE, i % cols * TILE, w));
    }
}
