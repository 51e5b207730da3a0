/* kernels/update_simd.h -- the loop of update_simd.c, for update.c. */
#ifndef KERNELS_UPDATE_SIMD_H
#define KERNELS_UPDATE_SIMD_H

#include "base/isa.h"
#include "kernels/update_constants.h"
#include "kernels/cpu.h"

struct update_moments {
    void *m, *v;
    enum dtype m_type, v_type;
    float *m_scale, *v_scale;
};
ISA_DECLARE(void, update_loop, (struct device *, enum update_kind, const struct update_constants *, float *,
                                const struct update_moments *, const float *, uint16_t *, int64_t));
/* With moments of eight bits. */
ISA_DECLARE(void, update_blocks_loop, (struct device *, enum update_kind, const struct update_constants *, float *,
                                       const struct update_moments *, const float *, uint16_t *, int64_t));

#endif
