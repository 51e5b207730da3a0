/* kernels/matmul_simd.h -- the loops of matmul_simd.c, for matmul.c. */
#ifndef KERNELS_MATMUL_SIMD_H
#define KERNELS_MATMUL_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

/* C = op(A) op(B) + bias + beta C by tiles; scratch: MATMUL_SCRATCH floats a thread. */
enum { MATMUL_DEPTH = 256, MATMUL_SCRATCH = 64 * (2 * MATMUL_DEPTH + 64) };
ISA_DECLARE(void, matmul_loop, (struct device *, const struct matmul *, float *scratch));

#endif
