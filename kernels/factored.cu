#include "kernels/columns.cuh"

/* A block a row: its mean. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    rows_kernel(float *row, const float *g, int64_t rows, int64_t cols, float fresh)
{
    __shared__ float part[CUDA_WARPS];

    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        float s = 0;

        for (int64_t i = threadIdx.x * PACK; i < cols; i += blockDim.x * PACK) {
            pack v = pack_get<DTYPE_F32>(g, r * cols + i, cols - i);
#pragma unroll
            for (int j = 0; j < PACK; j++)
                s = fmaf(v.v[j], v.v[j], s);
        }
        s = block_sum(s, part);
        if (threadIdx.x == 0)
            row[r] += fresh * (s / (float)cols - row[r]);
        __syncthreads();
    }
}

/* Of the rows of part blockIdx.x, a pack of columns a thread: sums of squares times `share`.  The first part's threads leave of
 * col what is kept. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    squares_kernel(float *part, float *col, const float *g, int64_t rows, int64_t cols, float share, float kept)
{
    int64_t i = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * PACK;
    pack s;

    if (i >= cols)
        return;
    s = column_part<DTYPE_F32, true>(g, i, rows, cols, cols);
#pragma unroll
    for (int j = 0; j < PACK; j++)
        s.v[j] *= share;
    pack_put<DTYPE_F32>(part, blockIdx.x * cols + i, cols - i, s);
    if (blockIdx.x > 0)
        return;
    s = pack_get<DTYPE_F32>(col, i, cols - i);
#pragma unroll
    for (int j = 0; j < PACK; j++)
        s.v[j] *= kept;
    pack_put<DTYPE_F32>(col, i, cols - i, s);
}

/* One block: *factor = 1 / max(mean of row, eps). */
static __global__ void __launch_bounds__(CUDA_BLOCK) mean_kernel(float *factor, const float *row, int64_t rows, double eps)
{
    __shared__ double part[CUDA_WARPS];
    double s = 0;

    for (int64_t i = threadIdx.x; i < rows; i += CUDA_BLOCK)
        s += (double)row[i];
    s = block_sum(s, part) / (double)rows;
    if (threadIdx.x == 0)
        *factor = (float)(1 / (s > eps ? s : eps));
}

/* A block a row. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    over_root_kernel(float *g, const float *row, const float *col, const float *factor, int64_t rows, int64_t cols, float least)
{
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        float of_row = row[r] * *factor;

        for (int64_t i = threadIdx.x * PACK; i < cols; i += blockDim.x * PACK) {
            pack x = pack_get<DTYPE_F32>(g, r * cols + i, cols - i), c = pack_get<DTYPE_F32>(col, i, cols - i);
#pragma unroll
            for (int j = 0; j < PACK; j++)
                x.v[j] = x.v[j] / sqrtf(fmaxf(of_row * c.v[j], least));
            pack_put<DTYPE_F32>(g, r * cols + i, cols - i, x);
        }
    }
}

static __global__ void __launch_bounds__(CUDA_BLOCK) vector_kernel(float *g, float *row, int64_t n, float fresh, float least)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x * PACK;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * PACK; i < n; i += step) {
        pack x = pack_get<DTYPE_F32>(g, i, n - i), v = pack_get<DTYPE_F32>(row, i, n - i);
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            v.v[j] = fmaf(fresh, x.v[j] * x.v[j] - v.v[j], v.v[j]);
            x.v[j] = x.v[j] / sqrtf(fmaxf(v.v[j], least));
        }
        pack_put<DTYPE_F32>(row, i, n - i, v);
        pack_put<DTYPE_F32>(g, i, n - i, x);
    }
}

extern "C" int factored_cuda(struct device *dev, const struct factored *p, float *g, float *row, float *col, struct err *e)
{
    int parts = column_parts(p->rows);
    float fresh = (float)p->fresh, least = (float)(p->eps * p->eps), *part, *factor;
    unsigned threads = row_threads(p->cols);
    void *scratch;

    TRY(check_factored(p, col, e));
    if (!col) {
        LAUNCH(vector_kernel, dim3(cuda_blocks(dev, packs_of(p->rows), CUDA_BLOCK)), CUDA_BLOCK, dev, g, row, p->rows, fresh,
               least);
        return cuda_launched(dev, "factored", e);
    }
    TRY(cuda_scratch(dev, &scratch, ((size_t)parts * (size_t)p->cols + 1) * sizeof(float), e));
    part = (float *)scratch;
    factor = part + (int64_t)parts * p->cols;
    LAUNCH(rows_kernel, dim3(cuda_blocks(dev, p->rows, 1)), threads, dev, row, g, p->rows, p->cols, fresh);
    LAUNCH(squares_kernel, column_grid(parts, p->cols, threads), threads, dev, part, col, g, p->rows, p->cols,
           (float)(p->fresh / (double)p->rows), (float)(1 - p->fresh));
    columns_add(dev, col, p->cols, NULL, 0, part, parts);
    LAUNCH(mean_kernel, 1, CUDA_BLOCK, dev, factor, row, p->rows, p->eps);
    LAUNCH(over_root_kernel, dim3(cuda_blocks(dev, p->rows, 1)), threads, dev, g, row, col, (const float *)factor, p->rows,
           p->cols, least);
    return cuda_launched(dev, "factored", e);
}
