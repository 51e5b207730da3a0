#include "kernels/cuda_op.cuh"

/* A warp a pair.  Each lane looks for one element of the smaller set in the larger, from where the last
 * lane's was found before: doubling steps, then halving ones.  The sets ascend, so a warp goes through
 * both once: 8 bytes an element from memory, the searches from the L1 cache.  At 4.8 TB/s, 6e8 pairs a second
 * of sets of 500. */

/* The first place in [from, n) whose element is not less than x. */
static __device__ __forceinline__ int64_t place_of(const uint64_t *__restrict__ set, int64_t n, int64_t from, uint64_t x)
{
    int64_t lo = from, hi = from, step = 1;

    while (hi < n && set[hi] < x) {
        lo = hi + 1;
        hi += step;
        step *= 2;
    }
    hi = hi < n ? hi : n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (set[mid] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static __global__ void __launch_bounds__(CUDA_BLOCK) common_kernel(struct set_common p)
{
    int64_t warps = (int64_t)gridDim.x * CUDA_WARPS;
    int lane = (int)(threadIdx.x & 31);

    for (int64_t i = (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32; i < p.pairs; i += warps) {
        uint32_t a = p.a[i], b = p.b[i];
        int64_t na = p.sets.end[a] - p.sets.begin[a], nb = p.sets.end[b] - p.sets.begin[b];
        const uint64_t *few = p.hash + p.sets.begin[na < nb ? a : b], *many = p.hash + p.sets.begin[na < nb ? b : a];
        int64_t n = na < nb ? na : nb, m = na < nb ? nb : na, from = 0;
        uint32_t both = 0;
        for (int64_t j = 0; j < n; j += 32) {
            int last = n - j < 32 ? (int)(n - j) - 1 : 31;
            int64_t at = from;
            if (lane <= last) {
                at = place_of(many, m, from, few[j + lane]);
                both += at < m && many[at] == few[j + lane];
            }
            from = (int64_t)__shfl_sync(0xffffffffu, (unsigned long long)at, last);
        }
        for (int o = 16; o; o /= 2)
            both += __shfl_xor_sync(0xffffffffu, both, o);
        if (lane == 0)
            p.common[i] = both;
    }
}

extern "C" int set_common_cuda(struct device *dev, const struct set_common *p, struct err *e)
{
    if (p->pairs == 0)
        return 0;
    LAUNCH(common_kernel, dim3(cuda_blocks(dev, p->pairs, CUDA_WARPS)), CUDA_BLOCK, dev, *p);
    return cuda_launched(dev, "set_common", e);
}
