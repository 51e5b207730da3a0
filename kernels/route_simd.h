/* kernels/route_simd.h -- the loops of route_simd.c, for route.c. */
#ifndef KERNELS_ROUTE_SIMD_H
#define KERNELS_ROUTE_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

ISA_DECLARE(void, route_join_loop, (struct device *, enum dtype, const struct route *, void *, const void *, const int32_t *,
                                    const float *, int64_t));
ISA_DECLARE(void, route_join_bwd_loop, (struct device *, enum dtype, const struct route *, void *, float *, const void *,
                                        const void *, const int32_t *, const float *, int64_t));

#endif
