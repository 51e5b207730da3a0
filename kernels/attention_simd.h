/* kernels/attention_simd.h -- the loops of attention_simd.c, for attention.c. */
#ifndef KERNELS_ATTENTION_SIMD_H
#define KERNELS_ATTENTION_SIMD_H

#include "base/isa.h"
#include "kernels/cpu.h"

/* Floats of scratch that one thread needs. */
static inline int64_t attention_padded(bool pairs, int64_t d) { return pairs ? (d + 31) / 32 * 32 : (d + 15) / 16 * 16; }
static inline int64_t attention_fwd_scratch(const struct attention *p)
{
    return (2 * (p->t_kv + 64) + 3 * 64) * attention_padded(true, p->d) + (2 * 64 + 1) * 64;
}
static inline int64_t attention_bwd_scratch(const struct attention *p)
{
    return (4 * (p->t_kv + 64) + 6 * 64) * attention_padded(true, p->d) + 3 * 64 * 64;
}

ISA_DECLARE(void, attention_fwd_loop, (struct device *, enum dtype, const struct attention *,
                                       float *scratch));
ISA_DECLARE(void, attention_bwd_loop, (struct device *, enum dtype, const struct attention *,
                                       const struct attention_view *dout,
                                       const struct attention_view grad[3], float *scratch));
/* Adds the gradient of the sinks. */
ISA_DECLARE(void, attention_sink_loop, (struct device *, enum dtype, const struct attention *,
                                        const struct attention_view *dout));

#endif
