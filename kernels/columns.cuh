/* kernels/columns.cuh -- inside factored.cu, fp8.cu, norm.cu and vec.cu: sums of columns whose rows were summed in parts. */
#ifndef KERNELS_COLUMNS_CUH
#define KERNELS_COLUMNS_CUH

#include "kernels/lanes.cuh"

enum { COLUMN_RANGES = 32 };

/* A kernel's grid of parts by blocks of so many threads. */
static inline dim3 column_grid(int parts, int64_t cols, unsigned threads)
{
    return dim3((unsigned)parts, (unsigned)((packs_of(cols) + threads - 1) / threads));
}

/* The sums of columns i on of x, or of its squares, over the rows of part blockIdx.x.  So many rows at a time are on their way: a
 * narrow matrix has few warps. */
enum { COLUMN_ROWS = 8 };
template <enum dtype DT, bool SQUARES>
static __device__ __forceinline__ pack column_part(const void *x, int64_t i, int64_t rows, int64_t cols, int64_t ld)
{
    int64_t p = blockIdx.x, parts = gridDim.x, end = (p + 1) * rows / parts;
    bool packed = cols - i >= PACK && ((uintptr_t)x | (uintptr_t)ld * dtype_bytes<DT>()) % 16 == 0;
    pack s = {};

    for (int64_t r = p * rows / parts; r < end; r += COLUMN_ROWS) {
        stored<DT> v[COLUMN_ROWS];
#pragma unroll
        for (int k = 0; k < COLUMN_ROWS; k++)
            v[k] = stored_get<DT>(x, (r + k) * ld + i, r + k < end ? cols - i : 0, packed);
#pragma unroll
        for (int k = 0; k < COLUMN_ROWS; k++) {
            pack add = stored_pack<DT>(v[k]);
#pragma unroll
            for (int j = 0; j < PACK; j++)
                s.v[j] = SQUARES ? fmaf(add.v[j], add.v[j], s.v[j]) : s.v[j] + add.v[j];
        }
    }
    return s;
}

/* a[i] += the sum of column i of part (parts, a_n + b_n); b[i] the same of column a_n + i; NULL: not wanted.
 * A warp has 32 columns and one of 32 ranges of the parts, which are added in order. */
static __global__ void __launch_bounds__(32 * COLUMN_RANGES)
    columns_kernel(float *a, int64_t a_n, float *b, int64_t b_n, const float *part, int parts)
{
    __shared__ float sum[COLUMN_RANGES][32];
    int lane = (int)threadIdx.x % 32, range = (int)threadIdx.x / 32;
    int lo = range * parts / COLUMN_RANGES, hi = (range + 1) * parts / COLUMN_RANGES;
    int64_t row = a_n + b_n, i = (int64_t)blockIdx.x * 32 + lane;
    float s = 0;

    if (i < row)
#pragma unroll 8
        for (int g = lo; g < hi; g++)
            s += part[g * row + i];
    sum[range][lane] = s;
    __syncthreads();
    if (range > 0 || i >= row)
        return;
    for (int r = 1; r < COLUMN_RANGES; r++)
        s += sum[r][lane];
    if (i < a_n && a)
        a[i] += s;
    if (i >= a_n && b)
        b[i - a_n] += s;
}

static inline void columns_add(struct device *dev, float *a, int64_t a_n, float *b, int64_t b_n, const float *part, int parts)
{
    LAUNCH(columns_kernel, dim3((unsigned)((a_n + b_n + 31) / 32)), 32 * COLUMN_RANGES, dev, a, a_n, b, b_n, part, parts);
}

#endif
