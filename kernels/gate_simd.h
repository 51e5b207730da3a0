/* kernels/gate_simd.h -- the loops of gate_simd.c, for gate.c. */
#ifndef KERNELS_GATE_SIMD_H
#define KERNELS_GATE_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

ISA_DECLARE(void, gate_add_loop, (struct device *, enum dtype, void *, const void *, const float *, int64_t, int64_t));
ISA_DECLARE(void, gate_back_loop, (struct device *, enum dtype, void *, void *, const void *, const void *, const float *,
                                   int64_t, int64_t));
ISA_DECLARE(void, gate_mul_loop, (struct device *, enum dtype, void *, const void *, const struct gate_rows *));
ISA_DECLARE(void, gate_slope_loop, (struct device *, enum dtype, void *, const void *, const void *, const struct gate_rows *));

#endif
