/* kernels/factored_simd.h -- the loops of factored_simd.c, for factored.c. */
#ifndef KERNELS_FACTORED_SIMD_H
#define KERNELS_FACTORED_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

/* row and col; part: (CPU_GROUPS, cols). */
ISA_DECLARE(void, factored_means_loop, (struct device *, const struct factored *, float *, float *, const float *, float *));
/* g, with 1 / max(mean of row, eps). */
ISA_DECLARE(void, factored_scale_loop, (struct device *, const struct factored *, float *, const float *, const float *, float));
/* Of a vector: row and g. */
ISA_DECLARE(void, factored_vector_loop, (struct device *, const struct factored *, float *, float *));

#endif
