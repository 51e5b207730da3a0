/* kernels/vec_simd.h -- the loops of vec_simd.c, for vec.c. */
#ifndef KERNELS_VEC_SIMD_H
#define KERNELS_VEC_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

ISA_DECLARE(void, vec_cast_loop, (struct device *, void *, enum dtype, const void *, enum dtype,
                                  int64_t));
/* y = a x + b y, x may be NULL (0). */
ISA_DECLARE(void, vec_axpby_loop, (struct device *, enum dtype, void *, float, const void *, float,
                                   int64_t));
ISA_DECLARE(void, vec_add_loop, (struct device *, enum dtype, void *, const void *, const void *,
                                 int64_t));
ISA_DECLARE(void, vec_dropout_loop, (struct device *, enum dtype, void *, const void *, int64_t,
                                     int64_t, const struct dropout *));
ISA_DECLARE(void, vec_colsum_loop, (struct device *, enum dtype, float *, float *, const void *,
                                    int64_t, int64_t, int64_t));
ISA_DECLARE(void, vec_sumsq_loop, (struct device *, enum dtype, double *, int64_t, const void *, int64_t));

#endif
