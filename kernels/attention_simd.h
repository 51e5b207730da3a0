/* kernels/attention_simd.h -- the loops of attention_simd.c, for attention.c. */
#ifndef KERNELS_ATTENTION_SIMD_H
#define KERNELS_ATTENTION_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

/* Floats of scratch that one thread needs. */
static inline int64_t attention_padded(int64_t d) { return (d + 15) / 16 * 16; }
static inline int64_t attention_fwd_scratch(const struct attention *p)
{
    return 64 * (5 * attention_padded(p->d) + 2 * 64 + 64) + (p->t_kv + 15) / 16 * 16;
}
static inline int64_t attention_bwd_scratch(const struct attention *p)
{
    return 64 * (8 * attention_padded(p->d) + 4 * 64) +
           2 * (p->t_kv + 64) * attention_padded(p->d);
}

ISA_DECLARE(void, attention_fwd_loop, (struct device *, enum dtype, const struct attention *,
                                       float *scratch));
ISA_DECLARE(void, attention_bwd_loop, (struct device *, enum dtype, const struct attention *,
                                       const struct attention_view *dout,
                                       const struct attention_view grad[3], float *scratch));

#endif
