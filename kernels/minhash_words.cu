#include "kernels/cuda_op.cuh"
#include "kernels/hashes.h"

/* A thread a window.  Each byte is read by `width` threads, from the L1 cache but for the first: the
 * memory sees the text, 4 bytes a word of starts and 8 of hashes, 18 bytes for 6 of text, 1.6 TB/s of
 * text at 4.8 TB/s. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    words_kernel(const unsigned char *__restrict__ text, const uint32_t *__restrict__ start, int width, int64_t count,
                 uint64_t *__restrict__ hash)
{
    int64_t stride = (int64_t)gridDim.x * CUDA_BLOCK;

    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < count; i += stride)
        hash[i] = xxh64(text + start[i], start[i + width] - 1 - start[i]);
}

extern "C" int minhash_words_cuda(struct device *dev, const char *text, const uint32_t *start, int width, int64_t count,
                                  uint64_t *hash, struct err *e)
{
    if (width < 1)
        return err_set(e, ERR_ARG, "windows of %d words cannot be", width);
    if (count == 0)
        return 0;
    LAUNCH(words_kernel, dim3(cuda_blocks(dev, count, CUDA_BLOCK)), CUDA_BLOCK, dev, (const unsigned char *)text, start,
           width, count, hash);
    return cuda_launched(dev, "minhash_words", e);
}
