/* kernels/matmul_plain.cuh -- the product of our own, and what is around any product; for matmul.cu. */
#ifndef KERNELS_MATMUL_PLAIN_CUH
#define KERNELS_MATMUL_PLAIN_CUH

#include "kernels/lanes.cuh"

/* What a way has done of a call: no product means that it could not, and nothing was written.  A way that does the
 * product but not the activation sets p->c to p->aux first. */
enum { MATMUL_DID_PRODUCT = 1, MATMUL_DID_BIAS = 2, MATMUL_DID_ACT = 4, MATMUL_DID_SUMS = 8 };
typedef int matmul_way(struct device *dev, struct matmul *p, unsigned *did, struct err *e);

/* Checks, the product by `way` or else by our own, and the parts of the epilogue that it left. */
int matmul_through(struct device *dev, const struct matmul *q, matmul_way *way, struct err *e);
/* p->c = op(A) op(B) + bias + beta p->c, without an activation. */
int matmul_product(struct device *dev, const struct matmul *p, struct err *e);

#endif
