/* kernels/product_tile.cuh -- inside matmul_plain.cu and matmul_grouped.cu: a product in plain steps. */
#ifndef KERNELS_PRODUCT_TILE_CUH
#define KERNELS_PRODUCT_TILE_CUH

#include "kernels/fp8_convert.h"
#include "kernels/lanes.cuh"

/* Matrix products without a library: 64 by 64 of C a block, 4 by 4 a thread, 16 of k at a time through shared memory.  For
 * where cuBLASLt is missing or does not know a product, and to check what is around it. */
enum { TILE = 64, STEP = 16 };

/* A number of either matrix: of DT, or of an FP8 format. */
template <enum dtype DT, bool FP8> static __device__ __forceinline__ float number(const void *p, enum fp8 format, int64_t i)
{
    return FP8 ? fp8_to(format, ((const uint8_t *)p)[i]) : one_get<DT>(p, i);
}

/* inv: of blocks, what each number is multiplied by. */
template <enum dtype DT, bool FP8>
static __device__ __forceinline__ void load(float (*to)[TILE + 1], const void *p, enum fp8 format, enum fp8_scales by,
                                            const float *inv, int64_t ld, bool k_inner, int64_t row0, int64_t rows, int64_t k0,
                                            int64_t ks)
{
    int64_t inv_ld = FP8 && by ? fp8_scales_ld(by, rows, ks) : 0;

    for (int x = (int)threadIdx.x; x < TILE * STEP; x += CUDA_BLOCK) {
        int i = k_inner ? x / STEP : x % TILE, k = k_inner ? x % STEP : x / TILE; /* neighbours lie side by side */
        int64_t at = k_inner ? (row0 + i) * ld + k0 + k : (k0 + k) * ld + row0 + i;
        bool there = row0 + i < rows && k0 + k < ks;
        float v = there ? number<DT, FP8>(p, format, at) : 0.0f;
        to[k][i] = FP8 && by && there ? v * inv[fp8_scale_at(by, inv_ld, row0 + i, k0 + k)] : v;
    }
}

/* One tile, by a block of CUDA_BLOCK threads. */
template <enum dtype DT, enum dtype DC, bool FP8>
static __device__ __forceinline__ void product_tile(const struct matmul &p, int64_t row0, int64_t col0)
{
    __shared__ float a[STEP][TILE + 1], b[STEP][TILE + 1];
    int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
    float c[4][4] = {}, scale = FP8 && !p.by_a ? *p.inv_a * *p.inv_b : 1;

    for (int64_t k0 = 0; k0 < p.k; k0 += STEP) {
        load<DT, FP8>(a, p.a, p.fp8_a, p.by_a, p.inv_a, p.lda, !p.trans_a, row0, p.m, k0, p.k);
        load<DT, FP8>(b, p.b, p.fp8_b, p.by_b, p.inv_b, p.ldb, p.trans_b, col0, p.n, k0, p.k);
        __syncthreads();
        for (int k = 0; k < STEP; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    c[i][j] = fmaf(a[k][ty + 16 * i], b[k][tx + 16 * j], c[i][j]);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int64_t row = row0 + ty + 16 * i, col = col0 + tx + 16 * j, at = row * p.ldc + col;
            if (row >= p.m || col >= p.n)
                continue;
            if (FP8)
                c[i][j] *= scale;
            if (p.bias)
                c[i][j] += one_get<DT>(p.bias, col);
            if (p.beta == 1)
                c[i][j] += one_get<DC>(p.c, at);
            one_put<DC>(p.c, at, c[i][j]);
        }
}

#endif
