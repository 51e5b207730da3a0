#include "kernels/cuda_op.cuh"
#include "kernels/hashes.h"

/* A thread a band: neighbours read neighbouring rows.  Bytes: the signature once, then a key a band; the
 * sketch reads the signature again, from the L2 cache if the batch is small. */
static __global__ void CUDA_ROOMY keys_kernel(struct band_keys p)
{
    int64_t all = p.docs * p.bands, stride = (int64_t)gridDim.x * CUDA_BLOCK;

    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < all; i += stride) {
        const uint64_t *sig = p.sig + i / p.bands * p.n;
        uint64_t key = BAND_KEY_NONE;
        if (sig[0] != MINHASH_EMPTY) {
            key = xxh3_words(sig + i % p.bands * p.rows, p.rows);
            key = key == BAND_KEY_NONE ? 0 : key;
        }
        p.key[i] = key;
    }
}

static __global__ void __launch_bounds__(CUDA_BLOCK) sketch_kernel(struct band_keys p)
{
    int64_t all = p.docs * p.sketch_bytes, stride = (int64_t)gridDim.x * CUDA_BLOCK;
    int used = p.bands * p.rows;

    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < all; i += stride) {
        const uint64_t *sig = p.sig + i / p.sketch_bytes * p.n;
        int j = (int)(i % p.sketch_bytes);
        p.sketch[i] = j < used && sig[0] != MINHASH_EMPTY ? (uint8_t)sig[j] : 0;
    }
}

extern "C" int band_keys_cuda(struct device *dev, const struct band_keys *p, struct err *e)
{
    if (p->bands < 1 || p->rows < 1 || p->bands > p->n / p->rows || (p->sketch && p->sketch_bytes < p->bands * p->rows))
        return err_set(e, ERR_ARG, "%d bands of %d rows cannot be of %d hashes", p->bands, p->rows, p->n);
    if (p->docs == 0)
        return 0;
    LAUNCH(keys_kernel, dim3(cuda_blocks(dev, p->docs * p->bands, CUDA_BLOCK)), CUDA_BLOCK, dev, *p);
    if (p->sketch)
        LAUNCH(sketch_kernel, dim3(cuda_blocks(dev, p->docs * p->sketch_bytes, CUDA_BLOCK)), CUDA_BLOCK, dev, *p);
    return cuda_launched(dev, "band_keys", e);
}
