#include "kernels/columns.cuh"

template <enum dtype DY, enum dtype DX> static __global__ void __launch_bounds__(CUDA_BLOCK)
    cast_kernel(void *y, const void *x, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x * PACK;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * PACK; i < n; i += step)
        pack_put<DY>(y, i, n - i, pack_get<DX>(x, i, n - i));
}

/* y = a x + b y, or b y without x. */
template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    axpby_kernel(void *y, float a, const void *x, float b, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x * PACK;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * PACK; i < n; i += step) {
        pack v = pack_get<DT>(y, i, n - i), u = x ? pack_get<DT>(x, i, n - i) : pack();
#pragma unroll
        for (int j = 0; j < PACK; j++)
            v.v[j] = x ? fmaf(a, u.v[j], v.v[j] * b) : v.v[j] * b;
        pack_put<DT>(y, i, n - i, v);
    }
}

template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    add_kernel(void *y, const void *a, const void *b, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x * PACK;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * PACK; i < n; i += step) {
        pack u = pack_get<DT>(a, i, n - i), v = pack_get<DT>(b, i, n - i);
#pragma unroll
        for (int j = 0; j < PACK; j++)
            v.v[j] = u.v[j] + v.v[j];
        pack_put<DT>(y, i, n - i, v);
    }
}

/* A block a row. */
template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    dropout_kernel(void *y, const void *x, int64_t t, int64_t c, struct drop d)
{
    drop_begin(&d);
    for (int64_t r = blockIdx.x; r < t; r += gridDim.x)
        for (int64_t i = threadIdx.x * PACK; i < c; i += blockDim.x * PACK) {
            pack v = pack_get<DT>(x, r * c + i, c - i), f = drop_pack(d, r, i);
#pragma unroll
            for (int j = 0; j < PACK; j++)
                v.v[j] *= f.v[j];
            pack_put<DT>(y, r * c + i, c - i, v);
        }
}

/* Rows of part blockIdx.x, a pack of columns a thread. */
template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    colsum_kernel(float *part, const void *x, int64_t t, int64_t c, int64_t ldx)
{
    int64_t i = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * PACK;

    if (i < c)
        pack_put<DTYPE_F32>(part, blockIdx.x * c + i, c - i, column_part<DT, false>(x, i, t, c, ldx));
}

template <enum dtype DT>
static __global__ void __launch_bounds__(CUDA_BLOCK) sumsq_kernel(double *to, int64_t block, const void *x, int64_t n)
{
    __shared__ double part[CUDA_WARPS];
    int64_t lo = (int64_t)blockIdx.x * block, hi = block < n - lo ? lo + block : n;
    double s = 0;

#pragma unroll 4
    for (int64_t i = lo + threadIdx.x * PACK; i < hi; i += CUDA_BLOCK * PACK) {
        pack v = pack_get<DT>(x, i, hi - i);
        float a = 0;
#pragma unroll
        for (int j = 0; j < PACK; j++)
            a = fmaf(v.v[j], v.v[j], a);
        s += (double)a;
    }
    s = block_sum(s, part);
    if (threadIdx.x == 0)
        to[blockIdx.x] += s;
}

/* One block: the losses of a micro-batch are few. */
static __global__ void __launch_bounds__(CUDA_BLOCK) total_kernel(double *to, const float *x, int64_t n)
{
    __shared__ double part[CUDA_WARPS];
    double s = 0;

#pragma unroll 4
    for (int64_t i = threadIdx.x; i < n; i += CUDA_BLOCK)
        s += (double)x[i];
    s = block_sum(s, part);
    if (threadIdx.x == 0)
        *to = s;
}

/* One block, whose first thread adds what all fetch. */
static __global__ void __launch_bounds__(CUDA_BLOCK) clip_kernel(float *scale, double *sum, int64_t n, float max_norm)
{
    __shared__ double part[CUDA_BLOCK];
    double s = 0, f;

    for (int64_t i = 0; i < n; i += CUDA_BLOCK) {
        int here = n - i < CUDA_BLOCK ? (int)(n - i) : CUDA_BLOCK;
        if ((int)threadIdx.x < here)
            part[threadIdx.x] = sum[i + threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) {
#pragma unroll 8
            for (int j = 0; j < here; j++)
                s = i + j ? s + part[j] : part[j];
        }
        __syncthreads();
    }
    if (threadIdx.x > 0)
        return;
    *sum = s;
    f = (double)max_norm / (sqrt(s) + 1e-6);
    *scale = max_norm <= 0 || f > 1 ? 1.0f : (float)f;
}

/* ---- the ops ---- */

static dim3 grid_of(const struct device *dev, int64_t n)
{
    return dim3(cuda_blocks(dev, packs_of(n), CUDA_BLOCK));
}

extern "C" int vec_cast_cuda(struct device *dev, void *y, enum dtype dy, const void *x, enum dtype dx, int64_t n,
                             struct err *e)
{
    TRY(check_n(dy, n, "vec_cast", e));
    TRY(check_n(dx, n, "vec_cast", e));
    if (n == 0)
        return 0;
    BY_TYPE(dx, {
        auto *kernel = dy == DTYPE_BF16 ? cast_kernel<DTYPE_BF16, DT> : cast_kernel<DTYPE_F32, DT>;
        LAUNCH(kernel, grid_of(dev, n), CUDA_BLOCK, dev, y, x, n);
    });
    return cuda_launched(dev, "vec_cast", e);
}

static int axpby(struct device *dev, enum dtype dt, void *y, float a, const void *x, float b, int64_t n, const char *op,
                 struct err *e)
{
    TRY(check_n(dt, n, op, e));
    if (n == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(axpby_kernel<DT>, grid_of(dev, n), CUDA_BLOCK, dev, y, a, x, b, n));
    return cuda_launched(dev, op, e);
}

extern "C" int vec_scale_cuda(struct device *dev, enum dtype dt, void *y, float a, int64_t n, struct err *e)
{
    return axpby(dev, dt, y, 0, NULL, a, n, "vec_scale", e);
}

extern "C" int vec_axpy_cuda(struct device *dev, enum dtype dt, void *y, float a, const void *x, int64_t n, struct err *e)
{
    return axpby(dev, dt, y, a, x, 1, n, "vec_axpy", e);
}

extern "C" int vec_add_cuda(struct device *dev, enum dtype dt, void *y, const void *a, const void *b, int64_t n,
                            struct err *e)
{
    TRY(check_n(dt, n, "vec_add", e));
    if (n == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(add_kernel<DT>, grid_of(dev, n), CUDA_BLOCK, dev, y, a, b, n));
    return cuda_launched(dev, "vec_add", e);
}

extern "C" int vec_dropout_cuda(struct device *dev, enum dtype dt, void *y, const void *x, int64_t t, int64_t c,
                                const struct dropout *drop, struct err *e)
{
    struct drop d = drop_of(drop, c);

    TRY(check_n(dt, t, "vec_dropout", e));
    TRY(check_n(dt, c, "vec_dropout", e));
    TRY(check_dropout(drop, "vec_dropout", e));
    if (t == 0 || c == 0)
        return 0;
    for (int64_t r = 0, n; drop && drop->cut; r += n) {
        struct dropout one;
        size_t at = (size_t)(r * c) * dtype_size(dt);
        if (r == t)
            return 0;
        n = drop_stretch(drop, r, t, &one);
        TRY(vec_dropout_cuda(dev, dt, (char *)y + at, (const char *)x + at, n, c, &one, e));
    }
    if (d.keep == 0)
        d.keep = 1; /* with a threshold of 0 */
    BY_TYPE(dt, LAUNCH(dropout_kernel<DT>, dim3(cuda_blocks(dev, t, 1)), row_threads(c), dev, y, x, t, c, d));
    return cuda_launched(dev, "vec_dropout", e);
}

extern "C" int vec_colsum_cuda(struct device *dev, enum dtype dt, float *sum, const void *x, int64_t t, int64_t c, int64_t ldx,
                               struct err *e)
{
    int parts = column_parts(t);
    unsigned threads = row_threads(c);
    void *part;

    TRY(check_colsum(dt, t, c, ldx, e));
    if (t == 0 || c == 0)
        return 0;
    TRY(cuda_scratch(dev, &part, (size_t)parts * (size_t)c * sizeof(float), e));
    BY_TYPE(dt, LAUNCH(colsum_kernel<DT>, column_grid(parts, c, threads), threads, dev, (float *)part, x, t, c, ldx));
    columns_add(dev, sum, c, NULL, 0, (const float *)part, parts);
    return cuda_launched(dev, "vec_colsum", e);
}

extern "C" int vec_sumsq_cuda(struct device *dev, enum dtype dt, double *sum, int64_t block, const void *x, int64_t n,
                              struct err *e)
{
    TRY(check_n(dt, n, "vec_sumsq", e));
    TRY(check_n(dt, block, "vec_sumsq", e));
    if (n == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(sumsq_kernel<DT>, dim3((unsigned)((n + block - 1) / block)), CUDA_BLOCK, dev, sum, block, x, n));
    return cuda_launched(dev, "vec_sumsq", e);
}

extern "C" int vec_total_cuda(struct device *dev, double *sum, const float *x, int64_t n, struct err *e)
{
    TRY(check_n(DTYPE_F32, n, "vec_total", e));
    LAUNCH(total_kernel, 1, CUDA_BLOCK, dev, sum, x, n);
    return cuda_launched(dev, "vec_total", e);
}

extern "C" int clip_scale_cuda(struct device *dev, float *scale, double *sum, int64_t n, float max_norm, struct err *e)
{
    LAUNCH(clip_kernel, 1, CUDA_BLOCK, dev, scale, sum, n, max_norm);
    return cuda_launched(dev, "clip_scale", e);
}
