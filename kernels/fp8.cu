#include "kernels/columns.cuh"
#include "kernels/fp8_convert.h"
#include "kernels/lanes.cuh"

/* Two numbers as FP8, a in the low byte.  Chips before 8.9 have no instruction for it. */
template <enum fp8 TO> static __device__ __forceinline__ uint32_t fp8_pair(float a, float b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t r;
    if (TO == FP8_E4M3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(b), "f"(a));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(b), "f"(a));
    return r;
#else
    return (uint32_t)fp8_of(TO, a) | (uint32_t)fp8_of(TO, b) << 8;
#endif
}

/* The largest of the bits of |x| so far. */
static __device__ __forceinline__ uint32_t larger(uint32_t most, const pack &x)
{
#pragma unroll
    for (int j = 0; j < PACK; j++) {
        uint32_t u = __float_as_uint(x.v[j]) & 0x7fffffffu;
        most = u > most ? u : most;
    }
    return most;
}

/* The block's largest to *amax; a maximum has no order.  part: CUDA_WARPS words. */
static __device__ __forceinline__ void add_amax(float *amax, uint32_t most, uint32_t *part)
{
#pragma unroll
    for (int o = 16; o; o /= 2) {
        uint32_t other = __shfl_xor_sync(~0u, most, o);
        most = other > most ? other : most;
    }
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = most;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int i = 1; i < CUDA_WARPS; i++)
        most = part[i] > most ? part[i] : most;
    if (most)
        atomicMax((uint32_t *)amax, most);
}

template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK) amax_kernel(float *amax, const void *x, int64_t n)
{
    __shared__ uint32_t part[CUDA_WARPS];
    int64_t step = (int64_t)gridDim.x * blockDim.x * PACK;
    uint32_t most = 0;

#pragma unroll 4
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * PACK; i < n; i += step)
        most = larger(most, pack_get<DT>(x, i, n - i));
    add_amax(amax, most, part);
}

enum { SIDE = 128, UNITS = SIDE / 8 }; /* a square of bytes, in units of 8 */

/* 8 bytes to p[i]; those from `left` on stay. */
static __device__ __forceinline__ void put_eight(uint8_t *p, int64_t i, int64_t left, uint64_t v)
{
    if (left < 8 || (uintptr_t)(p + i) % 8) {
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (j < left)
                p[i + j] = (uint8_t)(v >> 8 * j);
    } else {
        *(uint64_t *)(p + i) = v;
    }
}

/* Byte j of v, and then of each of the seven others behind it: a column of eight rows. */
static __device__ __forceinline__ uint64_t column_of(const uint64_t *v, int j)
{
    uint64_t r = 0;

#pragma unroll
    for (int i = 0; i < 8; i++)
        r |= (v[i] >> 8 * j & 0xff) << 8 * i;
    return r;
}

/* A block has a square of 128 by 128, a thread 8 by 8 of it, which it turns in its registers.  Columns go through shared memory
 * so that a row of the transposed is written at once; unit i of column 8 j + k lies at (i + j) % 16, where neighbours meet
 * no common bank.  sums (NULL: not wanted): those of the columns of each 128 rows, in the order of the rows. */
template <enum dtype DT, enum fp8 TO> static __global__ void __launch_bounds__(CUDA_BLOCK)
    quantize_kernel(struct fp8_quantize p, float *sums)
{
    __shared__ uint64_t turned[SIDE * UNITS];
    __shared__ uint32_t part[CUDA_WARPS];
    int64_t squares = (p.cols + SIDE - 1) / SIDE, r0 = blockIdx.x / squares * SIDE, c0 = blockIdx.x % squares * SIDE;
    int j = (int)threadIdx.x % UNITS, i = (int)threadIdx.x / UNITS;
    int64_t col = c0 + 8 * j, left = p.cols - col, ld = p.yt_ld ? p.yt_ld : p.rows;
    float scale = *p.scale;
    uint32_t most = 0;
    uint64_t row[8];
    pack sum = {};

#pragma unroll
    for (int k = 0; k < 8; k++) {
        int64_t r = r0 + 8 * i + k;
        pack x = pack_get<DT>(p.x, r * p.cols + col, r < p.rows ? left : 0);
        most = larger(most, x);
        row[k] = 0;
#pragma unroll
        for (int q = 0; q < PACK; q++)
            sum.v[q] += x.v[q];
#pragma unroll
        for (int q = 0; q < PACK; q += 2)
            row[k] |= (uint64_t)fp8_pair<TO>(x.v[q] * scale, x.v[q + 1] * scale) << 8 * q;
        if (p.y && r < p.rows)
            put_eight(p.y, r * p.cols + col, left, row[k]);
    }
    if (sums) {
        float *of = (float *)turned, s = 0;
        int c = (int)threadIdx.x;
        pack_put<DTYPE_F32>(of, i * SIDE + 8 * j, PACK, sum);
        __syncthreads();
        for (int u = 0; u < UNITS && c < SIDE; u++)
            s += of[u * SIDE + c];
        if (c < SIDE && c0 + c < p.cols)
            sums[blockIdx.x / squares * p.cols + c0 + c] = s;
        __syncthreads();
    }
    if (p.yt) {
#pragma unroll
        for (int k = 0; k < 8; k++)
            turned[(8 * j + k) * UNITS + (i + j) % UNITS] = column_of(row, k);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) {
            int c = 16 * k + i, unit = j;
            int64_t r = r0 + 8 * unit;
            if (c0 + c < p.cols && r < ld)
                put_eight(p.yt, (c0 + c) * ld + r, ld - r, turned[c * UNITS + (unit + c / 8) % UNITS]);
        }
    }
    if (p.amax)
        add_amax(p.amax, most, part);
}

/* A thread a tensor: there are few, and their histories short. */
static __global__ void __launch_bounds__(CUDA_BLOCK) update_kernel(struct fp8_update p)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < p.n)
        fp8_update_row(&p, p.rows + i * p.ld);
}

/* ---- the ops ---- */

extern "C" int fp8_amax_cuda(struct device *dev, enum dtype dt, float *amax, const void *x, int64_t n, struct err *e)
{
    TRY(check_n(dt, n, "fp8_amax", e));
    TRY(cuda_fill(dev, amax, 0, sizeof *amax, e));
    if (n == 0)
        return 0;
    BY_TYPE(dt, LAUNCH(amax_kernel<DT>, dim3(cuda_blocks(dev, packs_of(n), CUDA_BLOCK * 4)), CUDA_BLOCK, dev, amax, x, n));
    return cuda_launched(dev, "fp8_amax", e);
}

extern "C" int fp8_quantize_cuda(struct device *dev, const struct fp8_quantize *p, struct err *e)
{
    int64_t bands = (p->rows + SIDE - 1) / SIDE, squares = bands * ((p->cols + SIDE - 1) / SIDE);
    void *sums = NULL;

    TRY(check_fp8_quantize(p, e));
    if (p->rows == 0 || p->cols == 0)
        return 0;
    if (squares > INT32_MAX)
        return err_set(e, ERR_UNSUPPORTED, "fp8_quantize: %lld x %lld", (long long)p->rows, (long long)p->cols);
    if (p->colsum)
        TRY(cuda_scratch(dev, &sums, (size_t)(bands * p->cols) * sizeof(float), e));
    BY_TYPE(p->dt, {
        auto *kernel = p->to == FP8_E4M3 ? quantize_kernel<DT, FP8_E4M3> : quantize_kernel<DT, FP8_E5M2>;
        LAUNCH(kernel, dim3((unsigned)squares), CUDA_BLOCK, dev, *p, (float *)sums);
    });
    if (p->colsum)
        columns_add(dev, p->colsum, p->cols, NULL, 0, (const float *)sums, (int)bands);
    return cuda_launched(dev, "fp8_quantize", e);
}

extern "C" int fp8_update_cuda(struct device *dev, const struct fp8_update *p, struct err *e)
{
    TRY(check_fp8_update(p, e));
    if (p->n == 0)
        return 0;
    LAUNCH(update_kernel, dim3((unsigned)((p->n + CUDA_BLOCK - 1) / CUDA_BLOCK)), CUDA_BLOCK, dev, *p);
    return cuda_launched(dev, "fp8_update", e);
}
