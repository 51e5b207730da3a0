/* kernels/mma.cuh -- the tensor cores as warps use them, with the copies that feed them, and the same in plain steps where
 * kernels run on the CPU.
 *
 * A product of 16 x 16 (A) and 16 x 8 (B) of bf16 added to 16 x 8 (C) of fp32, spread over a warp.  With g = lane / 4 and
 * i = lane % 4 a lane holds, two elements a word,
 *     A   rows g, g + 8, g, g + 8   columns 2 i, 2 i, 2 i + 8, 2 i + 8 (and the next)
 *     B   column g                  rows 2 i, 2 i + 8 (and the next)
 *     C   rows g, g, g + 8, g + 8   columns 2 i, 2 i + 1, 2 i, 2 i + 1
 * Source: NVIDIA, PTX ISA, "Matrix fragments for mma.m16n8k16".
 */
#ifndef KERNELS_MMA_CUH
#define KERNELS_MMA_CUH

#include "kernels/lanes.cuh"

static __device__ __forceinline__ int mma_g() { return (int)threadIdx.x % 32 / 4; }
static __device__ __forceinline__ int mma_i() { return (int)threadIdx.x % 4; }

#if defined(SIMT)
static inline void mma(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    static uint32_t all[32][32][6]; /* what the lanes of each warp gave */
    uint32_t(*warp)[6] = all[threadIdx.x / 32];

    for (int i = 0; i < 6; i++)
        warp[threadIdx.x % 32][i] = i < 4 ? a[i] : b[i - 4];
    __syncwarp();
    ptx_mma_m16n8k16(c, (int)threadIdx.x % 32, warp);
    __syncwarp();
}
#else
/* Volatile: what all lanes must come to together may not be moved behind a branch (CUDA, "Inline PTX Assembly", 1.2). */
static __device__ __forceinline__ void mma(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

/* Four matrices of 8 x 8 from shared memory: lane l names row l % 8 of matrix l / 8, 16 bytes that no other row's share banks
 * with, and gets of matrix q the elements of row g, columns 2 i and the next, or with TURNED of rows 2 i and the next, column
 * g. */
template <bool TURNED> static __device__ __forceinline__ void mma_load(uint32_t x[4], const uint16_t *row)
{
#if defined(SIMT)
    static const uint16_t *all[32][32]; /* what the lanes of each warp named */
    const uint16_t **warp = all[threadIdx.x / 32];

    simt::whole_row(row);
    warp[threadIdx.x % 32] = row;
    __syncwarp();
    ptx_ldmatrix_x4(x, (int)threadIdx.x % 32, warp, TURNED);
    __syncwarp();
#else
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
#endif
}

/* A from rows row0 .. of a tile in shared memory, columns col0 ..; S elements between rows. */
template <int S> static __device__ __forceinline__ void mma_a(uint32_t a[4], const uint16_t *tile, int row0, int col0)
{
    mma_load<false>(a, tile + (row0 + (int)threadIdx.x % 16) * S + col0 + (int)threadIdx.x % 32 / 16 * 8);
}

/* A from two neighbouring C: a product's result goes into the next. */
static __device__ __forceinline__ void mma_a_of(uint32_t a[4], const float left[4], const float right[4])
{
    a[0] = bf16_pair(left[0], left[1]);
    a[1] = bf16_pair(left[2], left[3]);
    a[2] = bf16_pair(right[0], right[1]);
    a[3] = bf16_pair(right[2], right[3]);
}

/* B[k][n] = tile[n0 + n][k0 + k], and in b[2], b[3] the same for n0 + 8. */
template <int S> static __device__ __forceinline__ void mma_b_rows(uint32_t b[4], const uint16_t *tile, int n0, int k0)
{
    int lane = (int)threadIdx.x % 32;

    mma_load<false>(b, tile + (n0 + lane / 16 * 8 + lane % 8) * S + k0 + lane / 8 % 2 * 8);
}

/* B[k][n] = tile[k0 + k][n0 + n], and in b[2], b[3] the same for n0 + 8. */
template <int S> static __device__ __forceinline__ void mma_b_columns(uint32_t b[4], const uint16_t *tile, int k0, int n0)
{
    mma_load<true>(b, tile + (k0 + (int)threadIdx.x % 16) * S + n0 + (int)threadIdx.x % 32 / 16 * 8);
}

/* ---- copies into shared memory that go on while the warp computes ---- */

/* Begins a copy of 4 or 16 aligned bytes; of zeros unless `in`, whatever lies at `from`. */
template <int BYTES> static __device__ __forceinline__ void copy_async(void *to, const void *from, bool in)
{
    static_assert(BYTES == 4 || BYTES == 16, "what cp.async copies");
#if defined(SIMT)
    simt::copy_begin(to, in ? from : NULL, BYTES);
#else
    uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(at), "l"(from), "r"(in ? 16 : 0) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" : : "r"(at), "l"(from), "r"(in ? 4 : 0) : "memory");
#endif
}

/* Ends a set of the thread's copies, which may be empty. */
static __device__ __forceinline__ void copy_commit()
{
#if defined(SIMT)
    simt::copy_commit();
#else
    asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}

/* Waits for all sets of the thread but the last SETS. */
template <int SETS> static __device__ __forceinline__ void copy_wait_but()
{
#if defined(SIMT)
    simt::copy_wait_but(SETS);
#else
    asm volatile("cp.async.wait_group %0;" : : "n"(SETS) : "memory");
#endif
}

/* Waits for all copies of the thread; those of others have come behind a barrier after that. */
static __device__ __forceinline__ void copy_wait()
{
#if defined(SIMT)
    simt::copy_wait();
#else
    asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}

#endif
