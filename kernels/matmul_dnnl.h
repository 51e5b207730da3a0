/* kernels/matmul_dnnl.h -- products through oneDNN, for matmul.c and matmul_grouped.c. */
#ifndef KERNELS_MATMUL_DNNL_H
#define KERNELS_MATMUL_DNNL_H

#include "kernels/cpu.h"

/* C = op(A) op(B) + bias + beta C; strides given, m, n, k > 0. */
int matmul_dnnl(struct device *dev, const struct matmul *p, struct err *e);

/* Many numbers of rows (m, or with trans_a k) in few sizes, for bf16 makes a plan for each: of so many the first piece has
 * the largest power of two from 16 on, or all. */
static inline int64_t matmul_dnnl_rows(int64_t rows)
{
    int64_t n = rows;

    while (n >= 16 && n & (n - 1))
        n &= n - 1;
    return n;
}

/* Products that threads of a team do side by side, each alone; for dev->fast_bf16 or fp32.  Those of bf16 are prepared before,
 * behind one matmul_dnnl_begin: each piece with its number of rows, *scratch growing to what any of them needs.
 * ERR_UNSUPPORTED: oneDNN has none. */
void matmul_dnnl_begin(struct device *dev);
int matmul_dnnl_prepare(struct device *dev, const struct matmul *p, size_t *scratch, struct err *e);
/* By any thread, with scratch of its own; the rows are cut into the pieces of above. */
int matmul_dnnl_alone(struct device *dev, const struct matmul *p, void *scratch, struct err *e);

#endif
