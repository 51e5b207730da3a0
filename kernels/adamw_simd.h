/* kernels/adamw_simd.h -- the loop of adamw_simd.c, for adamw.c. */
#ifndef KERNELS_ADAMW_SIMD_H
#define KERNELS_ADAMW_SIMD_H

#include "base/isa.h"
#include "kernels/adamw_constants.h"
#include "kernels/cpu.h"

ISA_DECLARE(void, adamw_loop, (struct device *, const struct adamw_constants *, float *, float *,
                               float *, const float *, uint16_t *, int64_t));

#endif
