#include "train/squares.h"

enum { BLOCK = 1 << 16 }; /* elements whose squares are one sum */

static size_t blocks_of(int64_t n)
{
    return ((size_t)n + BLOCK - 1) / BLOCK;
}

size_t squares_bytes(int64_t n)
{
    return (blocks_of(n) * sizeof(double) + 63) / 64 * 64;
}

int squares_sum(struct device *dev, enum dtype dt, const void *x, int64_t n, double *work, double *sum, struct err *e)
{
    size_t blocks = blocks_of(n);
    double part[512];

    *sum = 0;
    TRY(device_zero(dev, work, blocks * sizeof *work, e));
    TRY(dev->ops->vec_sumsq(dev, dt, work, BLOCK, x, n, e));
    for (size_t at = 0; at < blocks; at += sizeof part / sizeof *part) {
        size_t k = blocks - at < sizeof part / sizeof *part ? blocks - at : sizeof part / sizeof *part;

        TRY(device_get(dev, part, work + at, k * sizeof *part, e));
        for (size_t i = 0; i < k; i++)
            *sum += part[i];
    }
    return 0;
}
