/* kernels/matmul_dnnl.h -- products through oneDNN, for matmul.c. */
#ifndef KERNELS_MATMUL_DNNL_H
#define KERNELS_MATMUL_DNNL_H

#include "kernels/cpu.h"

/* C = op(A) op(B) + bias + beta C; strides given, m, n, k > 0. */
int matmul_dnnl(struct device *dev, const struct matmul *p, struct err *e);

#endif
