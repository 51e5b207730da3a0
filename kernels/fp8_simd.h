/* kernels/fp8_simd.h -- the loops of fp8_simd.c, for fp8.c and matmul.c. */
#ifndef KERNELS_FP8_SIMD_H
#define KERNELS_FP8_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

/* The bits of the largest |x|. */
ISA_DECLARE(void, fp8_amax_loop, (struct device *, enum dtype, uint32_t *, const void *, int64_t));
ISA_DECLARE(void, fp8_quantize_loop, (struct device *, const struct fp8_quantize *, float));
ISA_DECLARE(void, fp8_decode_loop, (struct device *, uint16_t *, enum fp8, const uint8_t *, int64_t, int64_t, int64_t));
/* c (+)= scale * product + bias. */
ISA_DECLARE(void, fp8_finish_loop, (struct device *, const struct matmul *, const float *, float));

#endif
