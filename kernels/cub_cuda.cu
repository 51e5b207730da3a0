#include "kernels/cuda_op.cuh"

#include <cub/device/device_radix_sort.cuh>

static int check(cudaError_t c, const char *what, struct err *e)
{
    if (c == cudaSuccess)
        return 0;
    (void)cudaGetLastError();
    return err_set(e, c == cudaErrorMemoryAllocation ? ERR_NOMEM : ERR_DEVICE, "%s: %s", what, cudaGetErrorString(c));
}

extern "C" int cub_temp(struct device *dev, int64_t n, size_t *temp_bytes, struct err *e)
{
    (void)dev;
    *temp_bytes = 0;
    return check(cub::DeviceRadixSort::SortPairs(nullptr, *temp_bytes, (const uint64_t *)nullptr, (uint64_t *)nullptr,
                                                 (const uint32_t *)nullptr, (uint32_t *)nullptr, n),
                 "sort", e);
}

extern "C" int cub_sort(struct device *dev, void *temp, size_t temp_bytes, const uint64_t *key_in, uint64_t *key_out,
                        const uint32_t *value_in, uint32_t *value_out, int64_t n, int bits, struct err *e)
{
    return check(cub::DeviceRadixSort::SortPairs(temp, temp_bytes, key_in, key_out, value_in, value_out, n, 0, bits,
                                                 cuda_stream(dev)),
                 "sort", e);
}
