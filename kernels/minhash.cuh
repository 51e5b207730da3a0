/* kernels/minhash.cuh -- inside the minhash_*.cu: signatures by warps.
 *
 * Work is cut by position in the array (chunks), not by document, so that long and short
 * documents keep all warps equally busy.  A warp walks over the documents in its chunk; a
 * lane keeps K functions of the signature and their minima in registers.  A document that lies in
 * one chunk is stored; parts of one that is cut meet by atomicMin, which commutes: the
 * bits do not depend on the order.
 *
 * Operations a hash and function: U32 one multiply-add and one minimum; M61 three multiply-adds,
 * eight of add, shift, and, compare, select.  An H200 has 132 x 64 x 1.98e9 = 1.67e13 a second of
 * each of the two kinds: 1.6e13 and 2.1e12 hash-functions a second, that is 64 GB/s of text with 260
 * functions a byte, and 19e9 shingles a second (112 GB/s of text at 6 bytes a word) with 112
 * functions a word.  The bytes (8 a shingle read, 8 a function and document written) take a tenth of
 * that time at 4.8 TB/s.  So: no shared memory, no barriers; as many functions a lane as registers
 * allow, so that the one load of a hash is spread over them.
 */
#ifndef KERNELS_MINHASH_CUH
#define KERNELS_MINHASH_CUH

#include "kernels/cuda_op.cuh"

/* Hashes or bytes a chunk; blocks a multiprocessor: 24 warps with 80 registers a thread, enough for 12
 * functions of 32 bits without a spill (the build fails if there is one). */
enum { MINHASH_CHUNK = 1024, MINHASH_BLOCKS = 3 };

/* The first sequence that ends behind `at`; n if none does. */
static __device__ __forceinline__ int64_t ragged_find(const struct ragged &r, int64_t at)
{
    int64_t lo = 0, hi = r.n;

    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (r.end[mid] > at)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Functions first + lane + 32 k, k < K, of n. */
template <int K> struct signer_u32 {
    uint32_t a[K], b[K], min[K];
    int first, n;

    __device__ __forceinline__ void load(const struct minhash &m, int group)
    {
        first = group * 32 * K + (int)(threadIdx.x & 31);
        n = m.n;
#pragma unroll
        for (int k = 0; k < K; k++) {
            int j = first + 32 * k;
            a[k] = j < n ? m.a32[j] : 0;
            b[k] = j < n ? m.b32[j] : 0;
        }
    }
    __device__ __forceinline__ void reset()
    {
#pragma unroll
        for (int k = 0; k < K; k++)
            min[k] = ~0u;
    }
    __device__ __forceinline__ void add(uint64_t hash)
    {
#pragma unroll
        for (int k = 0; k < K; k++) {
            uint32_t v = a[k] * (uint32_t)hash + b[k];
            min[k] = v < min[k] ? v : min[k];
        }
    }
};

/* The least of (t + (t >> 61)) mod 2^61, t = a h + b + 1, as kernels/minhash.c explains. */
template <int K> struct signer_m61 {
    uint64_t a[K], b[K], min[K];
    int first, n;

    __device__ __forceinline__ void load(const struct minhash &m, int group)
    {
        first = group * 32 * K + (int)(threadIdx.x & 31);
        n = m.n;
#pragma unroll
        for (int k = 0; k < K; k++) {
            int j = first + 32 * k;
            a[k] = j < n ? m.a[j] : 0;
            b[k] = j < n ? m.b[j] : 0;
        }
    }
    __device__ __forceinline__ void reset()
    {
#pragma unroll
        for (int k = 0; k < K; k++)
            min[k] = ~0ull;
    }
    __device__ __forceinline__ void add(uint64_t hash)
    {
#pragma unroll
        for (int k = 0; k < K; k++) {
            uint64_t t = a[k] * hash + b[k];
            t = (t + (t >> 61)) & 0x1fffffffffffffffull;
            min[k] = t < min[k] ? t : min[k];
        }
    }
};

/* The minima to sig, the signature of one document; whole: nobody else has a part of it. */
template <class S, int K> static __device__ __forceinline__ void signer_put(const S &s, uint64_t *sig, bool whole)
{
#pragma unroll
    for (int k = 0; k < K; k++) {
        int j = s.first + 32 * k;
        if (j < s.n && whole)
            sig[j] = s.min[k];
        else if (j < s.n)
            atomicMin((unsigned long long *)sig + j, (unsigned long long)s.min[k]);
    }
}

/* K for n functions with at most `most` a lane: one of 1, 2, 4, 6, 9, 12, the least that needs
 * no more groups of warps than the most would. */
static inline int signer_functions(int n, int most)
{
    static const int have[] = {1, 2, 4, 6, 9, 12};
    int groups = (n + 32 * most - 1) / (32 * most), k = 0;

    while (have[k] * 32 * groups < n)
        k++;
    return have[k];
}

#endif
