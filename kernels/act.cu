#include "kernels/act.cuh"

template <enum dtype DT, enum act ACT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    fwd_kernel(void *y, const void *x, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x * PACK;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * PACK; i < n; i += step) {
        pack v = pack_get<DT>(x, i, n - i);
        float slope;
#pragma unroll
        for (int j = 0; j < PACK; j++)
            v.v[j] = act_of<ACT, DT == DTYPE_BF16>(v.v[j], &slope);
        pack_put<DT>(y, i, n - i, v);
    }
}

template <enum dtype DT, enum act ACT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    bwd_kernel(void *dx, const void *dy, const void *x, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x * PACK;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * PACK; i < n; i += step) {
        pack v = pack_get<DT>(x, i, n - i), d = pack_get<DT>(dy, i, n - i);
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            float slope;
            act_of<ACT, DT == DTYPE_BF16>(v.v[j], &slope);
            d.v[j] *= slope;
        }
        pack_put<DT>(dx, i, n - i, d);
    }
}

/* A block a row. */
template <enum dtype DT, enum act ACT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    glu_fwd_kernel(void *y, const void *x, int64_t t, int64_t f)
{
    for (int64_t r = blockIdx.x; r < t; r += gridDim.x)
        for (int64_t i = threadIdx.x * PACK; i < f; i += blockDim.x * PACK) {
            pack a = pack_get<DT>(x, r * 2 * f + i, f - i), up = pack_get<DT>(x, r * 2 * f + f + i, f - i);
            float slope;
#pragma unroll
            for (int j = 0; j < PACK; j++)
                a.v[j] = act_of<ACT, DT == DTYPE_BF16>(a.v[j], &slope) * up_of<ACT>(up.v[j], &slope);
            pack_put<DT>(y, r * f + i, f - i, a);
        }
}

template <enum dtype DT, enum act ACT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    glu_bwd_kernel(void *dx, const void *dy, const void *x, int64_t t, int64_t f)
{
    for (int64_t r = blockIdx.x; r < t; r += gridDim.x)
        for (int64_t i = threadIdx.x * PACK; i < f; i += blockDim.x * PACK) {
            int64_t at = r * 2 * f + i;
            pack a = pack_get<DT>(x, at, f - i), up = pack_get<DT>(x, at + f, f - i), d = pack_get<DT>(dy, r * f + i, f - i);
#pragma unroll
            for (int j = 0; j < PACK; j++) {
                float slope, y = act_of<ACT, DT == DTYPE_BF16>(a.v[j], &slope), up_slope, u = up_of<ACT>(up.v[j], &up_slope);
                a.v[j] = d.v[j] * u * slope;
                up.v[j] = d.v[j] * y * up_slope;
            }
            pack_put<DT>(dx, at, f - i, a);
            pack_put<DT>(dx, at + f, f - i, up);
        }
}

/* KERNEL for dt and act. */
#define ACT_CASE(name, KERNEL, ...)       \
    case name: {                          \
        auto *kernel = KERNEL<DT, name>;  \
        LAUNCH(kernel, __VA_ARGS__);      \
        break;                            \
    }
#define BY_ACT(dt, act, ...)              \
    BY_TYPE(dt, switch (act) {            \
        ACTS(ACT_CASE, __VA_ARGS__)       \
    default: break;                       \
    })

extern "C" int act_fwd_cuda(struct device *dev, enum dtype dt, enum act act, void *y, const void *x, int64_t n, struct err *e)
{
    TRY(check_act(dt, act, n, 1, "act_fwd", e));
    if (n == 0)
        return 0;
    BY_ACT(dt, act, fwd_kernel, dim3(cuda_blocks(dev, packs_of(n), CUDA_BLOCK)), CUDA_BLOCK, dev, y, x, n);
    return cuda_launched(dev, "act_fwd", e);
}

extern "C" int act_bwd_cuda(struct device *dev, enum dtype dt, enum act act, void *dx, const void *dy, const void *x,
                            int64_t n, struct err *e)
{
    TRY(check_act(dt, act, n, 1, "act_bwd", e));
    if (n == 0)
        return 0;
    BY_ACT(dt, act, bwd_kernel, dim3(cuda_blocks(dev, packs_of(n), CUDA_BLOCK)), CUDA_BLOCK, dev, dx, dy, x, n);
    return cuda_launched(dev, "act_bwd", e);
}

extern "C" int glu_fwd_cuda(struct device *dev, enum dtype dt, enum act act, void *y, const void *x, int64_t t, int64_t f,
                            struct err *e)
{
    TRY(check_act(dt, act, t, f, "glu_fwd", e));
    if (t == 0 || f == 0)
        return 0;
    BY_ACT(dt, act, glu_fwd_kernel, dim3(cuda_blocks(dev, t, 1)), row_threads(f), dev, y, x, t, f);
    return cuda_launched(dev, "glu_fwd", e);
}

extern "C" int glu_bwd_cuda(struct device *dev, enum dtype dt, enum act act, void *dx, const void *dy, const void *x,
                            int64_t t, int64_t f, struct err *e)
{
    TRY(check_act(dt, act, t, f, "glu_bwd", e));
    if (t == 0 || f == 0)
        return 0;
    BY_ACT(dt, act, glu_bwd_kernel, dim3(cuda_blocks(dev, t, 1)), row_threads(f), dev, dx, dy, x, t, f);
    return cuda_launched(dev, "glu_bwd", e);
}
