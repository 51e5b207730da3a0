/* kernels/xent_simd.h -- the loops of xent_simd.c, for xent.c. */
#ifndef KERNELS_XENT_SIMD_H
#define KERNELS_XENT_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

ISA_DECLARE(void, xent_loop, (struct device *, enum dtype, const struct xent *, float *));
ISA_DECLARE(void, xent_max_loop, (struct device *, enum dtype, const struct xent *, float *));
ISA_DECLARE(void, xent_sum_loop, (struct device *, enum dtype, const struct xent *, const float *,
                                  float *, float *));
ISA_DECLARE(void, xent_finish_loop, (struct device *, enum dtype, const struct xent *,
                                     const float *, const float *, const float *, float *));

#endif
