/* kernels/norm_simd.h -- the loops of norm_simd.c, for norm.c. */
#ifndef KERNELS_NORM_SIMD_H
#define KERNELS_NORM_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

ISA_DECLARE(void, norm_fwd_loop, (struct device *, enum dtype, const struct norm_fwd *, bool rms));
/* part: CPU_GROUPS * 2 * C floats. */
ISA_DECLARE(void, norm_bwd_loop, (struct device *, enum dtype, const struct norm_bwd *, bool rms,
                                  float *part));

#endif
