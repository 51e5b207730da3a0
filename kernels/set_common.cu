#include "kernels/cuda_op.cuh"

/* Two kernels: a warp a set puts its elements into a table of its own, at most half full; then a warp a pair looks
 * for those of b in the table of a.  Bytes an element: 32 to clear the table, a sector of 32 to write one place of it
 * and a sector to read one, 8 twice for the element itself: some 110, 4e10 elements a second at 4.8 TB/s, 4e7 pairs of
 * sets of 500.  Order does not matter: what is counted is the same for any.  0 marks free places and has its own. */

/* Places of a table for n elements: a power of two of at least 2 n; with one more for 0 at most 4 n. */
static __device__ __forceinline__ uint64_t places(int64_t n)
{
    return n > 1 ? 2ull << (64 - __clzll(n - 1)) : 2;
}
static __device__ __forceinline__ uint64_t place_of(uint64_t h, uint64_t cap)
{
    return __umul64hi(h * 0x9E3779B97F4A7C15ull, cap);
}

static __global__ void __launch_bounds__(CUDA_BLOCK) tables_kernel(struct set_common p, uint64_t *table)
{
    int64_t warps = (int64_t)gridDim.x * CUDA_WARPS;
    int lane = (int)(threadIdx.x & 31);

    for (int64_t i = (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32; i < p.sets.n; i += warps) {
        int64_t begin = p.sets.begin[i], n = p.sets.end[i] - begin;
        uint64_t cap = places(n), *mine = table + 4 * begin;
        for (int64_t j = lane; j < n; j += 32) {
            uint64_t h = p.hash[begin + j], at = place_of(h, cap);
            if (h == 0)
                mine[cap] = 1;
            else
                while (atomicCAS((unsigned long long *)mine + at, 0ull, (unsigned long long)h) != 0)
                    at = at + 1 < cap ? at + 1 : 0;
        }
    }
}

static __global__ void __launch_bounds__(CUDA_BLOCK) common_kernel(struct set_common p, const uint64_t *__restrict__ table)
{
    int64_t warps = (int64_t)gridDim.x * CUDA_WARPS;
    int lane = (int)(threadIdx.x & 31);

    for (int64_t i = (int64_t)blockIdx.x * CUDA_WARPS + threadIdx.x / 32; i < p.pairs; i += warps) {
        uint32_t a = p.a[i], b = p.b[i];
        int64_t begin = p.sets.begin[b], n = p.sets.end[a] == p.sets.begin[a] ? 0 : p.sets.end[b] - begin;
        const uint64_t *in = table + 4 * p.sets.begin[a];
        uint64_t cap = places(p.sets.end[a] - p.sets.begin[a]);
        uint32_t both = 0;
        for (int64_t j = lane; j < n; j += 32) {
            uint64_t h = p.hash[begin + j], at = place_of(h, cap);
            while (h && in[at] && in[at] != h)
                at = at + 1 < cap ? at + 1 : 0;
            both += h ? in[at] == h : in[cap] != 0;
        }
        for (int o = 16; o; o /= 2)
            both += __shfl_xor_sync(0xffffffffu, both, o);
        if (lane == 0)
            p.common[i] = both;
    }
}

extern "C" int set_common_cuda(struct device *dev, const struct set_common *p, struct err *e)
{
    size_t bytes = (size_t)p->sets.length * 4 * sizeof(uint64_t);
    uint64_t *table;

    if (p->pairs == 0)
        return 0;
    TRY(cuda_scratch(dev, (void **)&table, bytes ? bytes : 1, e));
    TRY(cuda_fill(dev, table, 0, bytes, e));
    LAUNCH(tables_kernel, dim3(cuda_blocks(dev, p->sets.n, CUDA_WARPS)), CUDA_BLOCK, dev, *p, table);
    TRY(cuda_launched(dev, "set_common", e));
    LAUNCH(common_kernel, dim3(cuda_blocks(dev, p->pairs, CUDA_WARPS)), CUDA_BLOCK, dev, *p, table);
    return cuda_launched(dev, "set_common", e);
}
