/* kernels/attention_mma.cuh -- attention by the tensor cores, for attention.cu; arguments are checked. */
#ifndef KERNELS_ATTENTION_MMA_CUH
#define KERNELS_ATTENTION_MMA_CUH

#include "kernels/lanes.cuh"

/* Whether the shapes, type and places are such: bf16, heads of 64 or 128, rows that begin at 16 bytes, not few queries. */
bool attention_mma_fits(enum dtype dt, const struct attention *p);
bool attention_mma_view_fits(const struct attention_view *v);
int attention_mma_fwd(struct device *dev, const struct attention *p, struct err *e);
/* Scratch: 4 b heads t bytes. */
int attention_mma_bwd(struct device *dev, const struct attention *p, struct attention_view dout, struct attention_view dq,
                      struct attention_view dk, struct attention_view dv, struct err *e);

#endif
