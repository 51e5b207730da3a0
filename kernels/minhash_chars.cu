#include "kernels/hashes.h"
#include "kernels/minhash.cuh"

/* One shingle begins at every character: a lane hashes the one at its byte (24 characters: some 50
 * operations), then all lanes run their functions over the 32 hashes, which never leave the
 * registers.  So the device's memory sees one byte a byte of text, and the signatures. */

struct window {
    struct minhash_chars p;

    static __device__ __forceinline__ bool begins(unsigned char c) { return (c & 0xc0) != 0x80; }

    /* MurmurHash3 of n bytes at t, 1 for 0. */
    __device__ __forceinline__ uint32_t hash_of(const unsigned char *t, int64_t n) const
    {
        uint32_t h = murmur3(t, (uint32_t)n, p.seed);
        return h ? h : 1;
    }

    /* width bytes at t, all ASCII and a multiple of 4?  Then their hash. */
    __device__ __forceinline__ bool ascii(const unsigned char *t, uint32_t *hash) const
    {
        const uint32_t *q = (const uint32_t *)((uintptr_t)t & ~(uintptr_t)3);
        unsigned shift = (unsigned)((uintptr_t)t & 3) * 8;
        uint32_t h = p.seed, any = 0, low = q[0];

        for (int i = 1; i <= p.width / 4; i++) {
            uint32_t high = q[i], k = __funnelshift_r(low, high, shift);
            any |= k;
            h = murmur3_add(h, k);
            low = high;
        }
        h = murmur3_end(h, (uint32_t)p.width);
        *hash = h ? h : 1;
        return (any & 0x80808080u) == 0;
    }

    /* The hash of the shingle at byte `at` of the document [begin, end); false: none begins there. */
    __device__ __forceinline__ bool get(int64_t begin, int64_t end, int64_t at, uint32_t *hash) const
    {
        const unsigned char *t = (const unsigned char *)p.text;
        int64_t to = at;
        int left = p.width;

        if (at >= end || !begins(t[at]))
            return false;
        if (p.width % 4 == 0 && end - at >= p.width && ascii(t + at, hash))
            return true;
        for (; left && to < end; left--) /* behind the next character */
            for (to++; to < end && !begins(t[to]); to++)
                ;
        if (left && !(at == begin && p.short_whole))
            return false;
        *hash = hash_of(t + at, to - at);
        return true;
    }
};

template <int K>
static __global__ void __launch_bounds__(CUDA_BLOCK, MINHASH_BLOCKS)
    chars_kernel(struct minhash m, struct window w, uint64_t *__restrict__ sig)
{
    const struct ragged &docs = w.p.docs;
    int64_t warps = (int64_t)gridDim.x * CUDA_WARPS;
    int lane = (int)(threadIdx.x & 31);
    signer<signs_u32, K> s;

    s.load(m, (int)blockIdx.y);
    for (int64_t c = (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32; c * MINHASH_CHUNK < docs.length; c += warps) {
        int64_t lo = c * MINHASH_CHUNK, hi = lo + MINHASH_CHUNK;
        for (int64_t d = ragged_find(docs, lo); d < docs.n && docs.begin[d] < hi; d++) {
            int64_t begin = docs.begin[d], end = docs.end[d];
            int64_t from = begin > lo ? begin : lo, to = end < hi ? end : hi;
            bool any = false;
            s.reset();
            for (int64_t i = from; i < to; i += 32) {
                uint32_t hash = 0;
                bool have = i + lane < to && w.get(begin, end, i + lane, &hash);
                unsigned lanes = __ballot_sync(0xffffffffu, have);
                uint32_t some;
                if (!lanes)
                    continue;
                any = true;
                some = __shfl_sync(0xffffffffu, hash, __ffs((int)lanes) - 1);
                hash = have ? hash : some; /* twice changes nothing */
#pragma unroll 4
                for (int j = 0; j < 32; j++)
                    s.add(__shfl_sync(0xffffffffu, hash, j));
            }
            if (any)
                s.put(sig + d * m.n, begin == from && end == to);
        }
    }
}

#define RUN(K)                                                                                                \
    LAUNCH(chars_kernel<K>, dim3(blocks, (unsigned)((m->n + 32 * K - 1) / (32 * K))), CUDA_BLOCK, dev, *m, w, sig)

extern "C" int minhash_chars_cuda(struct device *dev, const struct minhash *m, const struct minhash_chars *p,
                                  uint64_t *sig, struct err *e)
{
    int64_t chunks = (p->docs.length + MINHASH_CHUNK - 1) / MINHASH_CHUNK;
    unsigned blocks = cuda_blocks(dev, chunks, CUDA_WARPS);
    struct window w = {*p};

    if (m->family != MINHASH_U32 || p->width < 1 || p->width > MINHASH_CHARS_MAX)
        return err_set(e, ERR_ARG, "shingles of %d characters cannot be signed", p->width);
    if (p->docs.n == 0)
        return 0;
    TRY(cuda_fill(dev, sig, 0xff, (size_t)p->docs.n * (size_t)m->n * sizeof *sig, e));
    if (p->docs.length == 0)
        return 0;
    switch (signer_functions(m->n, 12)) {
    case 1: RUN(1); break;
    case 2: RUN(2); break;
    case 4: RUN(4); break;
    case 6: RUN(6); break;
    case 9: RUN(9); break;
    default: RUN(12); break;
    }
    return cuda_launched(dev, "minhash_chars", e);
}
