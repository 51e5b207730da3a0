#include "kernels/matmul_grouped_mma.cuh"
#include "kernels/product_tile.cuh"

/* Products of groups in one launch.  How many rows each has a block reads from memory: nobody waits for that.  There are as many
 * blocks as there could be tiles, and those that find none end. */

/* ---- any type ---- */

template <enum dtype DT, enum dtype DC>
static __global__ void __launch_bounds__(CUDA_BLOCK) grouped_kernel(struct matmul_grouped q)
{
    struct group_tile at = group_tile_of<TILE, TILE>(q, (int)blockIdx.x);

    if (at.group < 0)
        return;
    product_tile<DT, DC, false>(matmul_group(&q, at.group, at.first, at.rows), (int64_t)at.row * TILE, (int64_t)at.col * TILE);
}

static int by_tiles(struct device *dev, const struct matmul_grouped *q, struct err *e)
{
    int64_t blocks = group_tiles_most<TILE, TILE>(*q);

    if (blocks > INT32_MAX)
        return err_set(e, ERR_UNSUPPORTED, "matmul_grouped: %lld tiles", (long long)blocks);
    BY_TYPE(q->of.dt, {
        auto *kernel = q->of.dt_c == DTYPE_BF16 ? grouped_kernel<DT, DTYPE_BF16> : grouped_kernel<DT, DTYPE_F32>;
        LAUNCH(kernel, dim3((unsigned)blocks), CUDA_BLOCK, dev, *q);
    });
    return cuda_launched(dev, "matmul_grouped", e);
}

/* ---- sums of columns ---- */

/* A warp has some rows of 32 columns of a group; the warps' sums are added in order. */
template <enum dtype DT> static __global__ void __launch_bounds__(CUDA_BLOCK) group_sums_kernel(struct matmul_grouped q)
{
    __shared__ float part[CUDA_WARPS][32];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int64_t col = (int64_t)blockIdx.x * 32 + lane, group = blockIdx.y;
    int before = 0, n = group_rows(q, group);
    float s = 0;

    for (int64_t g = lane; g < group; g += 32)
        before += group_rows(q, g);
    before = warp_sum(before);
    if (col < q.of.m)
        for (int64_t r = before + warp; r < before + n; r += CUDA_WARPS)
            s += one_get<DT>(q.of.a, r * q.of.lda + col);
    part[warp][lane] = s;
    __syncthreads();
    if (warp > 0 || col >= q.of.m)
        return;
    for (int i = 1; i < CUDA_WARPS; i++)
        s += part[i][lane];
    q.sums[group * q.step_bias + col] += s;
}

static int add_sums(struct device *dev, const struct matmul_grouped *q, struct err *e)
{
    dim3 grid((unsigned)((q->of.m + 31) / 32), (unsigned)q->groups);

    if (q->groups > 65535)
        return err_set(e, ERR_UNSUPPORTED, "matmul_grouped: %lld groups", (long long)q->groups);
    BY_TYPE(q->of.dt, LAUNCH(group_sums_kernel<DT>, grid, CUDA_BLOCK, dev, *q));
    return cuda_launched(dev, "matmul_grouped", e);
}

/* ---- a call a group ---- */

static int apart(struct device *dev, const struct matmul_grouped *q, struct err *e)
{
    int64_t even = matmul_grouped_rows(q) / q->groups;

    for (int64_t i = 0, first = 0, n; i < q->groups; i++, first += n) {
        n = q->count ? q->known[i] : even;
        n = q->most && n > q->most ? q->most : n;

        struct matmul p = matmul_group(q, i, first, n);
        p.ragged = q->count != NULL;
        TRY(matmul_cuda(dev, &p, e));
    }
    return 0;
}

extern "C" int matmul_grouped_cuda(struct device *dev, const struct matmul_grouped *p, struct err *e)
{
    struct matmul_grouped q;

    TRY(check_matmul_grouped(p, &q, e));
    if (q.of.m == 0 || q.of.n == 0)
        return 0;
    if (q.sums)
        TRY(add_sums(dev, &q, e));
    if (matmul_grouped_apart(&q) && (q.known || !q.count))
        return apart(dev, &q, e);
    cuda_took(dev, "%s", matmul_grouped_mma_takes(&q) ? "one launch, tensor cores" : "one launch, plain");
    return matmul_grouped_mma_takes(&q) ? matmul_grouped_mma(dev, &q, e) : by_tiles(dev, &q, e);
}
