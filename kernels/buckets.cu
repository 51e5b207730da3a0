#include "kernels/cuda_op.cuh"

/* Bytes a document: 8 sweeps of a radix sort over pairs of 12 bytes, each read and written, and a few passes
 * over the sorted keys: some 250, so 20e9 documents a second of one band at 4.8 TB/s. */

static __global__ void __launch_bounds__(CUDA_BLOCK) gather_kernel(struct buckets p, uint64_t *key, uint32_t *doc)
{
    int64_t stride = (int64_t)gridDim.x * CUDA_BLOCK;

    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < p.docs; i += stride) {
        key[i] = p.key[i * p.stride];
        doc[i] = (uint32_t)i;
    }
}

/* mark[i]: 1 if document i of the sorted ones shares its key, and 2^32 if it is the first that does. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    mark_kernel(int64_t docs, const uint64_t *__restrict__ key, uint64_t *__restrict__ mark)
{
    int64_t stride = (int64_t)gridDim.x * CUDA_BLOCK;

    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i <= docs; i += stride) {
        uint64_t k = i < docs ? key[i] : BAND_KEY_NONE;
        bool before = i > 0 && k == key[i - 1], after = i + 1 < docs && k == key[i + 1];
        mark[i] = k == BAND_KEY_NONE ? 0 : (uint64_t)(before || after) | (uint64_t)(after && !before) << 32;
    }
}

/* mark holds the sums of what lies before: the places. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    place_kernel(struct buckets p, const uint32_t *__restrict__ doc, const uint64_t *__restrict__ mark)
{
    int64_t stride = (int64_t)gridDim.x * CUDA_BLOCK;

    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i <= p.docs; i += stride) {
        uint64_t at = mark[i], next = i < p.docs ? mark[i + 1] : at;
        if ((uint32_t)next != (uint32_t)at)
            p.member[(uint32_t)at] = doc[i];
        if (next >> 32 != at >> 32 || i == p.docs)
            p.start[at >> 32] = (uint32_t)at;
    }
}

static size_t rounded(int64_t n, size_t size)
{
    return ((size_t)n * size + 255) / 256 * 256;
}

extern "C" int buckets_cuda(struct device *dev, struct buckets *p, struct err *e)
{
    size_t temp_bytes, keys = rounded(p->docs + 1, sizeof(uint64_t)), docs = rounded(p->docs, sizeof(uint32_t));
    unsigned blocks = cuda_blocks(dev, p->docs + 1, CUDA_BLOCK);
    uint64_t *key, *sorted, total;
    uint32_t *doc, *sorted_doc;
    char *mem, *temp;

    p->buckets = p->members = 0;
    if (p->docs < 0 || p->docs > INT32_MAX || p->stride < 1)
        return err_set(e, ERR_ARG, "buckets of %lld documents cannot be", (long long)p->docs);
    TRY(cub_temp(dev, p->docs + 1, &temp_bytes, e));
    TRY(cuda_scratch(dev, (void **)&mem, 2 * keys + 2 * docs + temp_bytes, e));
    key = (uint64_t *)mem;
    sorted = (uint64_t *)(mem + keys);
    doc = (uint32_t *)(mem + 2 * keys);
    sorted_doc = (uint32_t *)(mem + 2 * keys + docs);
    temp = mem + 2 * keys + 2 * docs;
    if (p->docs) {
        LAUNCH(gather_kernel, dim3(blocks), CUDA_BLOCK, dev, *p, key, doc);
        TRY(cuda_launched(dev, "buckets", e));
        TRY(cub_sort(dev, temp, temp_bytes, key, sorted, doc, sorted_doc, p->docs, 64, e));
    }
    LAUNCH(mark_kernel, dim3(blocks), CUDA_BLOCK, dev, p->docs, sorted, key); /* the keys are sorted: their room is free */
    TRY(cuda_launched(dev, "buckets", e));
    TRY(cub_sum(dev, temp, temp_bytes, key, p->docs + 1, e));
    LAUNCH(place_kernel, dim3(blocks), CUDA_BLOCK, dev, *p, sorted_doc, key);
    TRY(cuda_launched(dev, "buckets", e));
    TRY(cuda_get(dev, &total, key + p->docs, sizeof total, e));
    p->buckets = (int64_t)(total >> 32);
    p->members = (int64_t)(total & 0xffffffffu);
    return 0;
}
