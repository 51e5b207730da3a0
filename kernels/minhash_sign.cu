#include "kernels/minhash.cuh"

template <class F, int K>
static __global__ void __launch_bounds__(CUDA_BLOCK, MINHASH_BLOCKS)
    sign_kernel(struct minhash m, struct ragged docs, const uint64_t *__restrict__ hash, uint64_t *__restrict__ sig)
{
    int64_t warps = (int64_t)gridDim.x * CUDA_WARPS;
    signer<F, K> s;

    s.load(m, (int)blockIdx.y);
    for (int64_t c = (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32; c * MINHASH_CHUNK < docs.length; c += warps) {
        int64_t lo = c * MINHASH_CHUNK, hi = lo + MINHASH_CHUNK;
        for (int64_t d = ragged_find(docs, lo); d < docs.n && docs.begin[d] < hi; d++) {
            int64_t begin = docs.begin[d], end = docs.end[d];
            int64_t from = begin > lo ? begin : lo, to = end < hi ? end : hi;
            if (from >= to)
                continue;
            s.reset();
#pragma unroll MINHASH_UNROLL
            for (int64_t i = from; i < to; i++)
                s.add(hash[i]);
            s.put(sig + d * m.n, begin == from && end == to);
        }
    }
}

/* What the loop above leaves is one more than the value, or by rare chance too small. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    finish_m61_kernel(struct minhash m, struct ragged docs, const uint64_t *__restrict__ hash, uint64_t *__restrict__ sig)
{
    int64_t all = docs.n * m.n, stride = (int64_t)gridDim.x * CUDA_BLOCK;

    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < all; i += stride) {
        int64_t d = i / m.n, j = i % m.n;
        uint64_t min = sig[i];
        if (min == MINHASH_EMPTY)
            continue;
        if (min > 8) {
            sig[i] = min - 1;
            continue;
        }
        min = MINHASH_M61_MASK;
        for (int64_t h = docs.begin[d]; h < docs.end[d]; h++) {
            uint64_t x = m.a[j] * hash[h] + (m.b[j] - 1);
            x = (x & MINHASH_M61_MASK) + (x >> 61);
            x = x >= MINHASH_M61_MASK ? x - MINHASH_M61_MASK : x;
            min = x < min ? x : min;
        }
        sig[i] = min;
    }
}

#define RUN(K)                                                                                                  \
    LAUNCH((sign_kernel<F, K>), dim3(blocks, (unsigned)((m->n + 32 * K - 1) / (32 * K))), CUDA_BLOCK, dev, *m, *docs, \
           hash, sig)

/* At most MOST functions a lane. */
template <class F, int MOST>
static void run(struct device *dev, unsigned blocks, const struct minhash *m, const struct ragged *docs,
                const uint64_t *hash, uint64_t *sig)
{
    const int NINE = MOST < 9 ? MOST : 9;

    switch (signer_functions(m->n, MOST)) {
    case 1: RUN(1); break;
    case 2: RUN(2); break;
    case 4: RUN(4); break;
    case 6: RUN(6); break;
    case 9: RUN(NINE); break;
    default: RUN(MOST); break;
    }
}

extern "C" int minhash_sign_cuda(struct device *dev, const struct minhash *m, const struct ragged *docs,
                                 const uint64_t *hash, uint64_t *sig, struct err *e)
{
    int64_t chunks = (docs->length + MINHASH_CHUNK - 1) / MINHASH_CHUNK;
    unsigned blocks = cuda_blocks(dev, chunks, CUDA_WARPS);

    if (docs->n == 0)
        return 0;
    TRY(cuda_fill(dev, sig, 0xff, (size_t)docs->n * (size_t)m->n * sizeof *sig, e));
    if (docs->length == 0)
        return 0;
    if (m->family == MINHASH_U32)
        run<signs_u32, 12>(dev, blocks, m, docs, hash, sig);
    else if (m->family != MINHASH_M61)
        run<signs_low32, 6>(dev, blocks, m, docs, hash, sig);
    else
        run<signs_m61, 6>(dev, blocks, m, docs, hash, sig);
    if (m->family == MINHASH_M61)
        LAUNCH(finish_m61_kernel, dim3(cuda_blocks(dev, docs->n * m->n, CUDA_BLOCK)), CUDA_BLOCK, dev, *m, *docs, hash, sig);
    return cuda_launched(dev, "minhash_sign", e);
}
