/* kernels/matmul_grouped_mma.cuh -- inside matmul_grouped.cu and matmul_grouped_mma.cu: which tile of which group a block has. */
#ifndef KERNELS_MATMUL_GROUPED_MMA_CUH
#define KERNELS_MATMUL_GROUPED_MMA_CUH

#include "kernels/lanes.cuh"

/* By the tensor cores: bf16 with widths and addresses of whole 16 bytes. */
bool matmul_grouped_mma_takes(const struct matmul_grouped *q);
int matmul_grouped_mma(struct device *dev, const struct matmul_grouped *q, struct err *e);

static __device__ __forceinline__ int group_rows(const struct matmul_grouped &q, int64_t group)
{
    int n;

    if (group >= q.groups)
        return 0;
    n = q.count ? q.count[group] : (int)(matmul_grouped_rows(&q) / q.groups);
    return q.most && n > q.most ? (int)q.most : n;
}

static __device__ __forceinline__ int inclusive(int x)
{
#pragma unroll
    for (int o = 1; o < 32; o *= 2) {
        int y = __shfl_up_sync(~0u, x, (unsigned)o);
        x += (int)threadIdx.x % 32 >= o ? y : 0;
    }
    return x;
}

struct group_tile {
    int group; /* -1: none */
    int first, rows; /* of the group */
    int row, col; /* the tile's, in tiles of its result */
};

/* Tile number `tile` of HIGH by WIDE, those of a group one after the other and column by column.  By whole warps. */
template <int HIGH, int WIDE>
static __device__ __forceinline__ struct group_tile group_tile_of(const struct matmul_grouped &q, int tile)
{
    int lane = (int)threadIdx.x % 32, first = 0, before = 0, cols = (int)((q.of.n + WIDE - 1) / WIDE);

    for (int base = 0; base < q.groups; base += 32) {
        int n = group_rows(q, base + lane), high = q.of.trans_a ? (int)q.of.m : n;
        int tiles = base + lane < q.groups ? (high + HIGH - 1) / HIGH * cols : 0;
        int rows_to = inclusive(n), tiles_to = inclusive(tiles);
        unsigned here = __ballot_sync(~0u, before + tiles_to > tile);

        if (here) {
            int l = __ffs((int)here) - 1, at = tile - before - __shfl_sync(~0u, tiles_to - tiles, l);
            int down = (__shfl_sync(~0u, high, l) + HIGH - 1) / HIGH;

            first += __shfl_sync(~0u, rows_to - n, l);
            return {base + l, first, __shfl_sync(~0u, n, l), at % down, at / down};
        }
        first += __shfl_sync(~0u, rows_to, 31);
        before += __shfl_sync(~0u, tiles_to, 31);
    }
    return {-1, 0, 0, 0, 0};
}

/* How many tiles there are, or with counts that the host does not know may be. */
template <int HIGH, int WIDE> static inline int64_t group_tiles_most(const struct matmul_grouped &q)
{
    int64_t cols = (q.of.n + WIDE - 1) / WIDE, rows = matmul_grouped_rows(&q);

    if (q.of.trans_a)
        return q.groups * ((q.of.m + HIGH - 1) / HIGH) * cols;
    return q.count ? (rows / HIGH + q.groups) * cols : q.groups * ((rows / q.groups + HIGH - 1) / HIGH) * cols;
}

#endif
