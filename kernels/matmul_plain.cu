#include "kernels/matmul_plain.cuh"

#include "kernels/product_tile.cuh"

template <enum dtype DT, enum dtype DC, bool FP8>
static __global__ void __launch_bounds__(CUDA_BLOCK) product_kernel(struct matmul p)
{
    product_tile<DT, DC, FP8>(p, (int64_t)blockIdx.y * TILE, (int64_t)blockIdx.x * TILE);
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
        return p.sums ? vec_colsum_cuda(dev, p.dt, p.sums, p.a, p.k, p.m, p.lda, e) : 0;
    TRY(way(dev, &p, &did, e));
    if (!(did & MATMUL_DID_PRODUCT)) {
        if (p.act != ACT_NONE)
            p.c = p.aux;
        TRY(matmul_product(dev, &p, e));
        cuda_took(dev, "a kernel of our own");
        did = MATMUL_DID_PRODUCT | MATMUL_DID_BIAS;
    }
    if (p.sums && !(did & MATMUL_DID_SUMS))
        TRY(vec_colsum_cuda(dev, p.dt, p.sums, p.a, p.k, p.m, p.lda, e));
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
