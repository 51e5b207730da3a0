/* A block a row; a pack of eight elements a thread. */
#include "kernels/lanes.cuh"

static __device__ __forceinline__ int64_t head_packs(const heads_part &p)
{
    return (p.c + PACK - 1) / PACK;
}

template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK) move_kernel(void *y, const void *x, heads_part p)
{
    int64_t packs = head_packs(p);

    for (int64_t t = blockIdx.x; t < p.t; t += gridDim.x)
        for (int64_t k = threadIdx.x; k < p.heads * packs; k += blockDim.x) {
            int64_t h = k / packs, i = k % packs * PACK, left = p.c - i;
            pack v = {};
            if (x)
                v = pack_get<DT>(x, t * p.x.row + h * p.x.head + i, left);
            pack_put<DT>(y, t * p.y.row + h * p.y.head + i, left, v);
        }
}

template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK) sum_kernel(void *y, const void *x, heads_part p)
{
    for (int64_t t = blockIdx.x; t < p.t; t += gridDim.x)
        for (int64_t i = threadIdx.x; i < p.c; i += blockDim.x) {
            float sum = 0;
            for (int64_t h = 0; h < p.heads; h++)
                sum += one_get<DT>(x, t * p.x.row + h * p.x.head + i);
            one_put<DT>(y, t * p.y.row + i, sum);
        }
}

extern "C" int heads_move_cuda(struct device *dev, enum dtype dt, void *y, const void *x, const struct heads_part *p,
                               struct err *e)
{
    TRY(check_heads(dt, p, "heads_move", e));
    if (p->t == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(move_kernel<DT>, dim3(cuda_blocks(dev, p->t, 1)), row_threads(p->heads * p->c), dev, y, x, *p));
    return cuda_launched(dev, "heads_move", e);
}

extern "C" int heads_sum_cuda(struct device *dev, enum dtype dt, void *y, const void *x, const struct heads_part *p,
                              struct err *e)
{
    TRY(check_heads(dt, p, "heads_sum", e));
    if (p->t == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(sum_kernel<DT>, dim3(cuda_blocks(dev, p->t, 1)), row_threads(p->c * PACK), dev, y, x, *p));
    return cuda_launched(dev, "heads_sum", e);
}
