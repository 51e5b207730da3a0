/* kernels/fp8_simd.h -- the loops of fp8_simd.c, for fp8.c and matmul.c. */
#ifndef KERNELS_FP8_SIMD_H
#define KERNELS_FP8_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

/* The bits of the largest |x|. */
ISA_DECLARE(void, fp8_amax_loop, (struct device *, enum dtype, uint32_t *, const void *, int64_t));
ISA_DECLARE(void, fp8_quantize_loop, (struct device *, const struct fp8_quantize *, float));
ISA_DECLARE(void, fp8_blocks_loop, (struct device *, const struct fp8_blocks *));

/* A matrix with k inside; of blocks with 1 / scale of each. */
struct fp8_matrix {
    enum fp8 format;
    const uint8_t *x;
    int64_t rows, ld;
    enum fp8_scales by;
    const float *inv;
    int64_t inv_ld;
};
/* y (rows, k): its columns from `at` on, of blocks times 1 / scale; as bf16, which is exact but for fp32_scales, or as fp32. */
ISA_DECLARE(void, fp8_decode_loop, (struct device *, enum dtype, void *, const struct fp8_matrix *, int64_t, int64_t));
/* c (+)= scale * product + bias. */
ISA_DECLARE(void, fp8_finish_loop, (struct device *, const struct matmul *, const float *, float));

#endif
