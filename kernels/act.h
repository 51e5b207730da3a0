/* kernels/act.h -- activations and gated linear units. */
#ifndef KERNELS_ACT_H
#define KERNELS_ACT_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y (n) = act(x (n)); y may be x.  ACT_NONE is ERR_ARG. */
typedef int act_fwd_fn(struct device *dev, enum dtype dt, enum act act, void *y, const void *x,
                       int64_t n, struct err *e);
/* dx (n) = dy * act'(x); dx may be dy or x. */
typedef int act_bwd_fn(struct device *dev, enum dtype dt, enum act act, void *dx, const void *dy,
                       const void *x, int64_t n, struct err *e);
/* y (T, F) = act(x[:, 0:F]) * x[:, F:2F] for x (T, 2F): SwiGLU with ACT_SILU (gate first, then up, as Megatron lays them out;
 * arXiv:2002.05202).  With ACT_CLAMPED up is taken within +-ACT_LIMIT, plus 1. */
typedef int glu_fwd_fn(struct device *dev, enum dtype dt, enum act act, void *y, const void *x,
                       int64_t t, int64_t f, struct err *e);
/* dx (T, 2F) from dy (T, F) and forward's x; dx may be x. */
typedef int glu_bwd_fn(struct device *dev, enum dtype dt, enum act act, void *dx, const void *dy,
                       const void *x, int64_t t, int64_t f, struct err *e);
act_fwd_fn act_fwd_cpu, act_fwd_cuda;
act_bwd_fn act_bwd_cpu, act_bwd_cuda;
glu_fwd_fn glu_fwd_cpu, glu_fwd_cuda;
glu_bwd_fn glu_bwd_cpu, glu_bwd_cuda;

#ifdef __cplusplus
}
#endif
#endif
