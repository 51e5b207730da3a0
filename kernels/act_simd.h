/* kernels/act_simd.h -- the loops of act_simd.c, for act.c. */
#ifndef KERNELS_ACT_SIMD_H
#define KERNELS_ACT_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

ISA_DECLARE(void, act_fwd_loop, (struct device *, enum dtype, enum act, void *, const void *,
                                 int64_t));
ISA_DECLARE(void, act_bwd_loop, (struct device *, enum dtype, enum act, void *, const void *,
                                 const void *, int64_t));
ISA_DECLARE(void, glu_fwd_loop, (struct device *, enum dtype, enum act, void *, const void *,
                                 int64_t, int64_t));
ISA_DECLARE(void, glu_bwd_loop, (struct device *, enum dtype, enum act, void *, const void *,
                                 const void *, int64_t, int64_t));
/* y (n) = the approximations of simd.h, for their test: 0 exp, 1 normal distribution. */
ISA_DECLARE(void, act_approx, (int which, float *y, const float *x, int64_t n));

#endif
