/* kernels/matmul_amx_simd.h -- products of bf16 by tiles of AMX, for matmul.c and matmul_grouped.c. */
#ifndef KERNELS_MATMUL_AMX_SIMD_H
#define KERNELS_MATMUL_AMX_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

/* From so many rows on they are faster than oneDNN 2.6's, 2.3 times where rows are summed over or k is large; of few rows, for
 * which packing B costs too much, slower. */
enum { MATMUL_AMX_LEAST = 1024 };
/* A thread takes pieces of C of so many rows and columns.  It packs so many numbers of k of these rows at a time (DEEP), which
 * with the sums of a GROUP of columns stay in the second cache, and sums DEPTH of them at a time, for which a block's rows and
 * columns stay in the first. */
enum { MATMUL_AMX_ROWS = 256, MATMUL_AMX_COLS = 1024, MATMUL_AMX_GROUP = 256, MATMUL_AMX_DEEP = 2048, MATMUL_AMX_DEPTH = 256 };
/* Bytes of a thread: of A in bf16, of sums. */
enum { MATMUL_AMX_A = 2 * MATMUL_AMX_ROWS * MATMUL_AMX_DEEP, MATMUL_AMX_SUMS = 4 * MATMUL_AMX_ROWS * MATMUL_AMX_COLS };

/* Of the packed B, and of all threads. */
static inline size_t matmul_amx_scratch(const struct matmul *p, int threads)
{
    return (size_t)((p->k + 31) / 32 * ((p->n + 31) / 32)) * 2048 + (size_t)threads * (MATMUL_AMX_A + MATMUL_AMX_SUMS);
}

/* C = op(A) op(B) + bias + beta C, of bf16; m, n, k > 0, strides given.  The same bits for any number of threads: each sum is
 * taken in one order, 32 numbers of k at a time.  B is packed whole, A by pieces.  scratch: matmul_amx_scratch bytes, 64-byte
 * aligned.  Only where amx_here. */
ISA_DECLARE(void, matmul_amx_loop, (const struct matmul *, void *scratch, int threads));

#endif
