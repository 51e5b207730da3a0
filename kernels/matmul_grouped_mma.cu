#include "kernels/matmul_grouped_mma.cuh"

#include "kernels/mma.cuh"

/* Products of groups on the tensor cores.  A block of four warps has a tile of HIGH x WIDE of a group's result, a warp a quarter
 * of it, and goes along k in steps of DEEP through shared memory, of which there are STAGES: while one is multiplied the next
 * are on their way.  Chunks of eight elements, 16 bytes, lie in such an order that neither the copies nor what ldmatrix reads
 * share banks, with no room lost: three stages are just what a block has without asking.
 *
 * k lies inside in a matrix (its rows are of the tile, DEEP of k in each), or the tile's rows are along k. */

enum { WARPS = 4, THREADS = 32 * WARPS, HIGH = 128, WIDE = 128, DEEP = 32, STAGES = 3, SIDE = 64 };
enum { OPERAND = 128 * DEEP }; /* elements of a stage of either matrix */
static_assert(HIGH == 128 && WIDE == 128, "the order of chunks, and that both matrices are sent alike");

/* Where chunk c of row r lies: of four chunks a row (k inside), or of sixteen. */
template <bool INSIDE> static __device__ __forceinline__ int chunk_at(int r, int c)
{
    return INSIDE ? r * DEEP + (c ^ (r / 2 % 4)) * 8 : r * 128 + (c ^ (r % 8)) * 8;
}

/* Sends what a stage has of one matrix: 128 of its `lines` from `line` on, DEEP of its k elements from k0 on; zeros beyond. */
template <bool INSIDE> static __device__ __forceinline__ void send(uint16_t *tile, const void *x, int64_t ld, int line, int lines,
                                                                   int k0, int k)
{
    const uint16_t *from = (const uint16_t *)x;

#pragma unroll
    for (int i = 0; i < OPERAND / 8 / THREADS; i++) {
        int at = i * THREADS + (int)threadIdx.x, r = INSIDE ? at / 4 : at / 16, c = INSIDE ? at % 4 : at % 16;
        int row = (INSIDE ? line : k0) + r, col = (INSIDE ? k0 : line) + c * 8;
        bool in = row < (INSIDE ? lines : k) && col < (INSIDE ? k : lines);

        copy_async<16>(tile + chunk_at<INSIDE>(r, c), in ? from + row * ld + col : from, in);
    }
}

/* 16 x 16 of A from row m0, column k0 of its tile. */
template <bool INSIDE> static __device__ __forceinline__ void load_a(uint32_t a[4], const uint16_t *tile, int m0, int k0)
{
    int lane = (int)threadIdx.x % 32;

    if (INSIDE)
        mma_load<false>(a, tile + chunk_at<true>(m0 + lane % 16, k0 / 8 + lane / 16));
    else
        mma_load<true>(a, tile + chunk_at<false>(k0 + lane / 16 * 8 + lane % 8, m0 / 8 + lane / 8 % 2));
}

/* 16 x 16 of B: columns n0 and on, eight in b[0], b[1], eight in the others. */
template <bool INSIDE> static __device__ __forceinline__ void load_b(uint32_t b[4], const uint16_t *tile, int n0, int k0)
{
    int lane = (int)threadIdx.x % 32;

    if (INSIDE)
        mma_load<false>(b, tile + chunk_at<true>(n0 + lane / 16 * 8 + lane % 8, k0 / 8 + lane / 8 % 2));
    else
        mma_load<true>(b, tile + chunk_at<false>(k0 + lane % 16, n0 / 8 + lane / 16));
}

/* The warp's SIDE x SIDE to memory, with bias or onto what is there. */
template <enum dtype DC> static __device__ __forceinline__ void store(const struct matmul &p, int row0, int col0,
                                                                      const float (*c)[SIDE / 8][4])
{
#pragma unroll
    for (int i = 0; i < SIDE / 8; i++)
#pragma unroll
        for (int j = 0; j < SIDE / 8; j++) {
            int row = row0 + i * 8 + mma_g(), col = col0 + j * 8 + mma_i() * 2;
            float x = c[i / 2][j][i % 2 * 2], y = c[i / 2][j][i % 2 * 2 + 1];

            if (row >= p.m || col >= p.n)
                continue;
            if (p.bias) {
                x += one_get<DTYPE_BF16>(p.bias, col);
                y += one_get<DTYPE_BF16>(p.bias, col + 1);
            }
            if (DC == DTYPE_BF16) {
                uint32_t *to = (uint32_t *)((uint16_t *)p.c + row * p.ldc + col);
                *to = p.beta == 1 ? bf16_pair(x + bf16_low(*to), y + bf16_high(*to)) : bf16_pair(x, y);
            } else {
                float2 *to = (float2 *)((float *)p.c + row * p.ldc + col), was = {0, 0};
                if (p.beta == 1)
                    was = *to;
                *to = {x + was.x, y + was.y};
            }
        }
}

template <bool INSIDE_A, bool INSIDE_B, enum dtype DC>
static __global__ void __launch_bounds__(THREADS, 2) grouped_mma_kernel(struct matmul_grouped q)
{
    __shared__ __align__(128) uint16_t tiles[STAGES][2][OPERAND];
    const struct group_tile at = group_tile_of<HIGH, WIDE>(q, (int)blockIdx.x);
    float c[SIDE / 16][SIDE / 8][4] = {};
    uint32_t a[2][SIDE / 16][4], b[2][SIDE / 16][4];
    int warp = (int)threadIdx.x / 32, m0 = warp / 2 * SIDE, n0 = warp % 2 * SIDE;

    if (at.group < 0)
        return;
    const struct matmul p = matmul_group(&q, at.group, at.first, at.rows);
    int row0 = at.row * HIGH, col0 = at.col * WIDE, m = (int)p.m, n = (int)p.n, k = (int)p.k, steps = (k + DEEP - 1) / DEEP;
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) {
            send<INSIDE_A>(tiles[s][0], p.a, p.lda, row0, m, s * DEEP, k);
            send<INSIDE_B>(tiles[s][1], p.b, p.ldb, col0, n, s * DEEP, k);
        }
        copy_commit();
    }
    for (int s = 0, now = 0; s < steps; s++, now = now + 1 == STAGES ? 0 : now + 1) {
        int next = now == 0 ? STAGES - 1 : now - 1; /* the one that was read a step ago */
        copy_wait_but<STAGES - 2>();
        __syncthreads();
        if (s + STAGES - 1 < steps) {
            send<INSIDE_A>(tiles[next][0], p.a, p.lda, row0, m, (s + STAGES - 1) * DEEP, k);
            send<INSIDE_B>(tiles[next][1], p.b, p.ldb, col0, n, (s + STAGES - 1) * DEEP, k);
        }
        copy_commit();
#pragma unroll
        for (int d = 0; d < DEEP / 16; d++) {
#pragma unroll
            for (int i = 0; i < SIDE / 16; i++) {
                load_a<INSIDE_A>(a[d][i], tiles[now][0], m0 + i * 16, d * 16);
                load_b<INSIDE_B>(b[d][i], tiles[now][1], n0 + i * 16, d * 16);
            }
        }
#pragma unroll
        for (int d = 0; d < DEEP / 16; d++)
#pragma unroll
            for (int i = 0; i < SIDE / 16; i++)
#pragma unroll
                for (int j = 0; j < SIDE / 8; j++)
                    mma(c[i][j], a[d][i], &b[d][j / 2][j % 2 * 2]);
    }
    copy_wait();
    store<DC>(p, row0 + m0, col0 + n0, c);
}

bool matmul_grouped_mma_takes(const struct matmul_grouped *q)
{
    const struct matmul *p = &q->of;
    uintptr_t all = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c;

    return p->dt == DTYPE_BF16 && all % 16 == 0 && ((p->lda | p->ldb | p->ldc | p->n | q->step) & 7) == 0 &&
           ((p->trans_a ? p->m : p->k) & 7) == 0 && group_tiles_most<HIGH, WIDE>(*q) <= INT32_MAX &&
           ((p->trans_a && p->dt_c == DTYPE_F32) || (!p->trans_a && p->dt_c == DTYPE_BF16));
}

int matmul_grouped_mma(struct device *dev, const struct matmul_grouped *q, struct err *e)
{
    auto *kernel = q->of.trans_a   ? grouped_mma_kernel<false, false, DTYPE_F32>
                   : q->of.trans_b ? grouped_mma_kernel<true, true, DTYPE_BF16>
                                   : grouped_mma_kernel<true, false, DTYPE_BF16>;

    LAUNCH(kernel, dim3((unsigned)group_tiles_most<HIGH, WIDE>(*q)), THREADS, dev, *q);
    return cuda_launched(dev, "matmul_grouped", e);
}
