#include "kernels/cuda_op.cuh"
#include "kernels/hashes.h"

/* Eight lanes a text: XXH3 has eight sums, each fed by 8 bytes of every 64.  A text is read once from front to back, so
 * the memory sees one byte a byte: 4.8e12 a second; some 20 operations for 8 bytes are 1.67e13 / 20 x 8 = 6.7e12.
 * A text of up to 240 bytes is one lane's.  Texts are not cut: one of a megabyte takes its lanes 16,000 steps. */

enum { SUMS = 8, TEXTS = CUDA_BLOCK / SUMS };

struct secret {
    uint64_t word[24];

    /* 8 bytes from byte `at` on. */
    __device__ __forceinline__ uint64_t at(int at) const
    {
        int shift = at % 8 * 8;
        return shift ? word[at / 8] >> shift | word[at / 8 + 1] << (64 - shift) : word[at / 8];
    }
};

/* What sum i begins with. */
static __device__ __forceinline__ uint64_t first_sum(int i)
{
    return i == 0   ? XXH32_P3
           : i == 1 ? XXH64_P1
           : i == 2 ? XXH64_P2
           : i == 3 ? XXH64_P3
           : i == 4 ? XXH64_P4
           : i == 5 ? XXH32_P2
           : i == 6 ? XXH64_P5
                    : XXH32_P1;
}

/* One stripe of 64 bytes at p, against the secret from byte `at` on. */
static __device__ __forceinline__ uint64_t add_stripe(uint64_t sum, const unsigned char *p, const struct secret &s, int at,
                                                      int i, unsigned lanes)
{
    uint64_t w = hash_read64(p + 8 * i), key = w ^ s.at(at + 8 * i);

    return sum + (uint64_t)__shfl_xor_sync(lanes, (unsigned long long)w, 1) + (key & 0xffffffffu) * (key >> 32);
}

/* Two sums each folded with the secret, all added up: the same in all eight lanes. */
static __device__ __forceinline__ uint64_t merge(uint64_t sum, const struct secret &s, int at, int i, uint64_t start,
                                                 unsigned lanes)
{
    uint64_t mine = sum ^ s.at(at + 8 * i), other = __shfl_xor_sync(lanes, (unsigned long long)mine, 1);
    uint64_t all = xxh3_fold(mine, other);

    all += (uint64_t)__shfl_xor_sync(lanes, (unsigned long long)all, 2);
    all += (uint64_t)__shfl_xor_sync(lanes, (unsigned long long)all, 4);
    return xxh3_avalanche(start + all);
}

static __global__ void __launch_bounds__(CUDA_BLOCK) hash_kernel(struct text_hash p)
{
    __shared__ struct secret s;
    int i = (int)threadIdx.x % SUMS;
    unsigned lanes = 0xffu << (threadIdx.x & 31) / SUMS * SUMS;

    if (threadIdx.x < 24)
        s.word[threadIdx.x] = xxh3_secret(8 * (int)threadIdx.x);
    __syncthreads();
    for (int64_t d = (int64_t)blockIdx.x * TEXTS + threadIdx.x / SUMS; d < p.docs.n; d += (int64_t)gridDim.x * TEXTS) {
        const unsigned char *t = (const unsigned char *)p.text + p.docs.begin[d];
        uint64_t n = (uint64_t)(p.docs.end[d] - p.docs.begin[d]), sum = first_sum(i);
        struct xxh3_128 h;
        if (n > 240) {
            uint64_t stripes = (n - 1) / 64;
            for (uint64_t k = 0; k < stripes; k++) {
                sum = add_stripe(sum, t + 64 * k, s, (int)(k % 16) * 8, i, lanes);
                if (k % 16 == 15)
                    sum = (sum ^ sum >> 47 ^ s.word[16 + i]) * XXH32_P1;
            }
            sum = add_stripe(sum, t + n - 64, s, 121, i, lanes);
            h.lo = merge(sum, s, 11, i, n * XXH64_P1, lanes);
            h.hi = merge(sum, s, 117, i, ~(n * XXH64_P2), lanes);
        } else if (i == 0) {
            h = xxh3_128_short(t, (uint32_t)n);
        }
        if (i == 0) {
            p.hash[2 * d] = h.lo;
            p.hash[2 * d + 1] = h.hi;
        }
    }
}

extern "C" int text_hash_cuda(struct device *dev, const struct text_hash *p, struct err *e)
{
    if (p->docs.n == 0)
        return 0;
    LAUNCH(hash_kernel, dim3(cuda_blocks(dev, p->docs.n, TEXTS)), CUDA_BLOCK, dev, *p);
    return cuda_launched(dev, "text_hash", e);
}
