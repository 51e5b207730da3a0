/* A block a row. */
#include "kernels/lanes.cuh"

template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    add_kernel(void *y, const void *x, const float *gate, int64_t t, int64_t c)
{
    for (int64_t r = blockIdx.x; r < t; r += gridDim.x) {
        float w = sigmoid(gate[r]);
        for (int64_t i = threadIdx.x * PACK; i < c; i += blockDim.x * PACK) {
            int64_t at = r * c + i, left = c - i;
            pack v = pack_get<DT>(x, at, left), sum = pack_get<DT>(y, at, left);
#pragma unroll
            for (int l = 0; l < PACK; l++)
                sum.v[l] = fmaf(w, v.v[l], sum.v[l]);
            pack_put<DT>(y, at, left, sum);
        }
    }
}

template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    back_kernel(void *dx, void *dgate, const void *dy, const void *x, const float *gate, int64_t t, int64_t c)
{
    __shared__ float part[32];

    for (int64_t r = blockIdx.x; r < t; r += gridDim.x) {
        float w = sigmoid(gate[r]), sum = 0;
        for (int64_t i = threadIdx.x * PACK; i < c; i += blockDim.x * PACK) {
            int64_t at = r * c + i, left = c - i;
            pack d = pack_get<DT>(dy, at, left), v = pack_get<DT>(x, at, left);
#pragma unroll
            for (int l = 0; l < PACK; l++) {
                sum = fmaf(d.v[l], v.v[l], sum);
                d.v[l] *= w;
            }
            pack_put<DT>(dx, at, left, d);
        }
        sum = block_sum(sum, part);
        if (threadIdx.x == 0) {
            pack g = {};
            g.v[0] = w * (1 - w) * sum;
            pack_put<DT>(dgate, r, 1, g);
        }
        __syncthreads(); /* part is used again */
    }
}

/* For each element, of numbers that are rounded to DT. */
template <enum dtype DT> static __device__ __forceinline__ float opened(float x)
{
    return DT == DTYPE_BF16 ? sigmoid_fast(x) : sigmoid(x);
}

/* A gate for each element: times it, or (dx not NULL) the gate's gradient, whose rows are as the gate's. */
template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK)
    rows_kernel(void *y, const void *dx, const void *x, struct gate_rows g)
{
    for (int64_t r = blockIdx.x; r < g.t; r += gridDim.x)
        for (int64_t i = threadIdx.x * PACK; i < g.c; i += blockDim.x * PACK) {
            int64_t at = r * g.c + i, left = g.c - i;
            pack w = pack_get<DT>(g.gate, r * g.ld + i, left), v = pack_get<DT>(x, at, left), d = {};
            if (dx)
                d = pack_get<DT>(dx, at, left);
#pragma unroll
            for (int l = 0; l < PACK; l++)
                v.v[l] = dx ? d.v[l] * v.v[l] * opened<DT>(-w.v[l]) : opened<DT>(w.v[l]) * v.v[l];
            pack_put<DT>(y, dx ? r * g.ld + i : at, left, v);
        }
}

static int rows(struct device *dev, enum dtype dt, void *y, const void *dx, const void *x, const struct gate_rows *g,
                const char *op, struct err *e)
{
    TRY(check_gate_rows(dt, g, op, e));
    if (g->t == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(rows_kernel<DT>, dim3(cuda_blocks(dev, g->t, 1)), row_threads(g->c), dev, y, dx, x, *g));
    return cuda_launched(dev, op, e);
}

extern "C" int gate_mul_cuda(struct device *dev, enum dtype dt, void *y, const void *x, const struct gate_rows *g, struct err *e)
{
    return rows(dev, dt, y, NULL, x, g, "gate_mul", e);
}

extern "C" int gate_slope_cuda(struct device *dev, enum dtype dt, void *dgate, const void *dx, const void *x,
                               const struct gate_rows *g, struct err *e)
{
    return rows(dev, dt, dgate, dx, x, g, "gate_slope", e);
}

extern "C" int gate_add_cuda(struct device *dev, enum dtype dt, void *y, const void *x, const float *gate, int64_t t, int64_t c,
                             struct err *e)
{
    TRY(check_rows(dt, t, c, "gate_add", e));
    if (t == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(add_kernel<DT>, dim3(cuda_blocks(dev, t, 1)), row_threads(c), dev, y, x, gate, t, c));
    return cuda_launched(dev, "gate_add", e);
}

extern "C" int gate_back_cuda(struct device *dev, enum dtype dt, void *dx, void *dgate, const void *dy, const void *x,
                              const float *gate, int64_t t, int64_t c, struct err *e)
{
    TRY(check_rows(dt, t, c, "gate_back", e));
    if (t == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(back_kernel<DT>, dim3(cuda_blocks(dev, t, 1)), row_threads(c), dev, dx, dgate, dy, x, gate, t, c));
    return cuda_launched(dev, "gate_back", e);
}
