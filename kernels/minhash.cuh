/* kernels/minhash.cuh -- inside minhash_sign.cu: signatures by warps.
 *
 * Work is cut by position in the array (chunks), not by document, so that long and short
 * documents keep all warps equally busy.  A warp walks over the documents in its chunk; a
 * lane keeps K functions of the signature and their minima in registers.  A document that lies in
 * one chunk is stored; parts of one that is cut meet by atomicMin, which commutes: the
 * bits do not depend on the order.
 *
 * Operations a hash and function: U32 one multiply-add and one minimum; M61 three multiply-adds,
 * eight of add, shift, and, compare, select; LOW32 some twelve.  An H200 has 132 x 64 x 1.98e9 = 1.67e13 a second of
 * each of the two kinds: 1.6e13 and 2.1e12 hash-functions a second, that is 64e9 shingles a second with 260
 * functions of U32, and 19e9 (112 GB/s of text at 6 bytes a word) with 112 of M61; measured on an H200 were 80 GB/s of
 * text with 112 functions.  The bytes (8 a shingle read, 8 a function and document written) take a tenth of
 * that time at 4.8 TB/s.  So: no shared memory, no barriers; as many functions a lane as registers
 * allow, so that the one load of a hash is spread over them.
 */
#ifndef KERNELS_MINHASH_CUH
#define KERNELS_MINHASH_CUH

#include "kernels/cuda_op.cuh"

/* Hashes a chunk; blocks a multiprocessor: 24 warps with 80 registers a thread, enough for 12
 * functions of 32 bits without a spill (the build fails if there is one); sm_80 needs a few more.  Hashes that a warp asks for
 * at once: from sm_100 on four would spill. */
enum { MINHASH_CHUNK = 1024, MINHASH_BLOCKS = CUDA_ARCH && CUDA_ARCH < 900 ? 2 : 3, MINHASH_UNROLL = CUDA_ARCH < 1000 ? 4 : 2 };
#define MINHASH_M61_MASK 0x1fffffffffffffffull

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

/* The three kinds of function: what coefficients and least values are, and what is minimised. */
struct signs_u32 {
    typedef uint32_t word, least;
    static __device__ __forceinline__ const word *a(const struct minhash &m) { return m.a32; }
    static __device__ __forceinline__ const word *b(const struct minhash &m) { return m.b32; }
    static __device__ __forceinline__ least value(word a, word b, uint64_t hash) { return a * (uint32_t)hash + b; }
};
struct signs_wide {
    typedef uint64_t word;
    static __device__ __forceinline__ const word *a(const struct minhash &m) { return m.a; }
    static __device__ __forceinline__ const word *b(const struct minhash &m) { return m.b; }
};
/* The least of (t + (t >> 61)) mod 2^61, t = a h + b + 1, as kernels/minhash.c explains. */
struct signs_m61 : signs_wide {
    typedef uint64_t least;
    static __device__ __forceinline__ least value(word a, word b, uint64_t hash)
    {
        uint64_t t = a * hash + b;
        return (t + (t >> 61)) & MINHASH_M61_MASK;
    }
};
struct signs_low32 : signs_wide {
    typedef uint32_t least;
    static __device__ __forceinline__ least value(word a, word b, uint64_t hash)
    {
        uint64_t t = a * hash + b;
        t = (t & MINHASH_M61_MASK) + (t >> 61);
        return (uint32_t)(t >= MINHASH_M61_MASK ? t - MINHASH_M61_MASK : t);
    }
};

/* Functions first + lane + 32 k, k < K, of n. */
template <class F, int K> struct signer {
    typename F::word a[K], b[K];
    typename F::least min[K];
    int first, n;

    __device__ __forceinline__ void load(const struct minhash &m, int group)
    {
        first = group * 32 * K + (int)(threadIdx.x & 31);
        n = m.n;
#pragma unroll
        for (int k = 0; k < K; k++) {
            int j = first + 32 * k;
            a[k] = j < n ? F::a(m)[j] : 0;
            b[k] = j < n ? F::b(m)[j] : 0;
        }
    }
    __device__ __forceinline__ void reset()
    {
#pragma unroll
        for (int k = 0; k < K; k++)
            min[k] = (typename F::least)-1;
    }
    __device__ __forceinline__ void add(uint64_t hash)
    {
#pragma unroll
        for (int k = 0; k < K; k++) {
            typename F::least v = F::value(a[k], b[k], hash);
            min[k] = v < min[k] ? v : min[k];
        }
    }
    /* The minima to sig, the signature of one document; whole: nobody else has a part of it. */
    __device__ __forceinline__ void put(uint64_t *sig, bool whole) const
    {
#pragma unroll
        for (int k = 0; k < K; k++) {
            int j = first + 32 * k;
            if (j < n && whole)
                sig[j] = min[k];
            else if (j < n)
                atomicMin((unsigned long long *)sig + j, (unsigned long long)min[k]);
        }
    }
};

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
