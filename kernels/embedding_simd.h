/* kernels/embedding_simd.h -- the loops of embedding_simd.c, for embedding.c and rope.c. */
#ifndef KERNELS_EMBEDDING_SIMD_H
#define KERNELS_EMBEDDING_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

ISA_DECLARE(void, embedding_fwd_loop, (struct device *, enum dtype, void *,
                                       const struct embedding *, const void *, const void *));
ISA_DECLARE(void, embedding_bwd_loop, (struct device *, enum dtype, float *, float *,
                                       const struct embedding *, const void *));
ISA_DECLARE(void, rope_loop, (struct device *, enum dtype, void *, const struct rope *));

#endif
