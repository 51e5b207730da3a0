#include "kernels/matmul_plain.cuh"

#include "kernels/fp8_convert.h"

/* Matrix products without a library: 64 by 64 of C a block, 4 by 4 a thread, 16 of k at a time through shared memory.  For
 * where cuBLASLt is missing or does not know a product, and to check what is around it. */
enum { TILE = 64, STEP = 16 };

/* A number of either matrix: of DT, or of an FP8 format. */
template <enum dtype DT, bool FP8> static __device__ __forceinline__ float number(const void *p, enum fp8 format, int64_t i)
{
    return FP8 ? fp8_to(format, ((const uint8_t *)p)[i]) : one_get<DT>(p, i);
}

template <enum dtype DT, bool FP8> static __device__ __forceinline__ void load(float (*to)[TILE + 1], const void *p,
                                                                               enum fp8 format, int64_t ld, bool k_inner,
                                                                               int64_t row0, int64_t rows, int64_t k0, int64_t ks)
{
    for (int x = (int)threadIdx.x; x < TILE * STEP; x += CUDA_BLOCK) {
        int i = k_inner ? x / STEP : x % TILE, k = k_inner ? x % STEP : x / TILE; /* neighbours lie side by side */
        int64_t at = k_inner ? (row0 + i) * ld + k0 + k : (k0 + k) * ld + row0 + i;
        to[k][i] = row0 + i < rows && k0 + k < ks ? number<DT, FP8>(p, format, at) : 0.0f;
    }
}

template <enum dtype DT, enum dtype DC, bool FP8>
static __global__ void __launch_bounds__(CUDA_BLOCK) product_kernel(struct matmul p)
{
    __shared__ float a[STEP][TILE + 1], b[STEP][TILE + 1];
    int64_t row0 = (int64_t)blockIdx.y * TILE, col0 = (int64_t)blockIdx.x * TILE;
    int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
    float c[4][4] = {}, scale = FP8 ? *p.inv_a * *p.inv_b : 1;

    for (int64_t k0 = 0; k0 < p.k; k0 += STEP) {
        load<DT, FP8>(a, p.a, p.fp8_a, p.lda, !p.trans_a, row0, p.m, k0, p.k);
        load<DT, FP8>(b, p.b, p.fp8_b, p.ldb, p.trans_b, col0, p.n, k0, p.k);
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

/* c (m, n) += bias. */
template <enum dtype DT, enum dtype DC> static __global__ void __launch_bounds__(CUDA_BLOCK)
    bias_kernel(void *c, const void *bias, int64_t m, int64_t n, int64_t ldc)
{
    for (int64_t r = blockIdx.x; r < m; r += gridDim.x)
        for (int64_t i = threadIdx.x * PACK; i < n; i += blockDim.x * PACK) {
            pack v = pack_get<DC>(c, r * ldc + i, n - i), b = pack_get<DT>(bias, i, n - i);
#pragma unroll
            for (int j = 0; j < PACK; j++)
                v.v[j] += b.v[j];
            pack_put<DC>(c, r * ldc + i, n - i, v);
        }
}

int matmul_add_bias(struct device *dev, const struct matmul *p, struct err *e)
{
    BY_TYPE(p->dt, {
        auto *kernel = p->dt_c == DTYPE_BF16 ? bias_kernel<DT, DTYPE_BF16> : bias_kernel<DT, DTYPE_F32>;
        LAUNCH(kernel, dim3(cuda_blocks(dev, p->m, 1)), row_threads(p->n), dev, p->c, p->bias, p->m, p->n, p->ldc);
    });
    return cuda_launched(dev, "matmul", e);
}

int matmul_product(struct device *dev, const struct matmul *p, struct err *e)
{
    dim3 grid((unsigned)((p->n + TILE - 1) / TILE), (unsigned)((p->m + TILE - 1) / TILE));

    if (grid.y > 65535)
        return err_set(e, ERR_UNSUPPORTED, "matmul: %lld rows", (long long)p->m);
    if (p->fp8_a) {
        auto *kernel = p->dt_c == DTYPE_BF16 ? product_kernel<DTYPE_BF16, DTYPE_BF16, true>
                                             : product_kernel<DTYPE_BF16, DTYPE_F32, true>;
        LAUNCH(kernel, grid, CUDA_BLOCK, dev, *p);
        return cuda_launched(dev, "matmul", e);
    }
    BY_TYPE(p->dt, {
        auto *kernel = p->dt_c == DTYPE_BF16 ? product_kernel<DT, DTYPE_BF16, false> : product_kernel<DT, DTYPE_F32, false>;
        LAUNCH(kernel, grid, CUDA_BLOCK, dev, *p);
    });
    return cuda_launched(dev, "matmul", e);
}

int matmul_through(struct device *dev, const struct matmul *q, matmul_way *way, struct err *e)
{
    struct matmul p;
    unsigned did = 0;

    TRY(check_matmul(q, &p, e));
    if (p.m == 0 || p.n == 0)
        return 0;
    TRY(way(dev, &p, &did, e));
    if (!(did & MATMUL_DID_PRODUCT)) {
        if (p.act != ACT_NONE)
            p.c = p.aux;
        TRY(matmul_product(dev, &p, e));
        did = MATMUL_DID_PRODUCT | MATMUL_DID_BIAS;
    }
    if (p.bias && !(did & MATMUL_DID_BIAS))
        TRY(matmul_add_bias(dev, &p, e));
    if (did & MATMUL_DID_ACT)
        return 0;
    if (p.act != ACT_NONE)
        return act_fwd_cuda(dev, p.dt, p.act, q->c, p.aux, p.m * p.n, e);
    return p.dact == ACT_NONE ? 0 : act_bwd_cuda(dev, p.dt, p.dact, p.c, p.c, p.dact_aux, p.m * p.n, e);
}

static int no_way(struct device *dev, struct matmul *p, unsigned *did, struct err *e)
{
    (void)dev, (void)p, (void)did, (void)e;
    return 0;
}

extern "C" int matmul_plain_cuda(struct device *dev, const struct matmul *p, struct err *e)
{
    return matmul_through(dev, p, no_way, e);
}
