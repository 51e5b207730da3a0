/* kernels/xent.h -- softmax cross-entropy with its gradient written over the logits.
 *
 *     loss[t] = log sum_v exp(logit[t, v]) - logit[t, target[t]]
 *     dlogit[t, v] = (softmax[t, v] - (v == target[t])) * scale[t]
 *
 * logits is (T, V) with rows ld >= V apart; columns V .. ld - 1 are padding: they take
 * no part, and get gradient 0.  scale (T) carries the loss mask and 1 / tokens (and
 * what the loss is multiplied by); a row with scale 0 gets gradient 0 and still has a
 * loss.  target[t] < 0 means no target: loss 0, gradient 0.
 *
 * With a cap logits x count as cap tanh(x / cap), and the gradient is by x.
 *
 * With z the gradient is that of loss + z * log(sum_v exp(logit[t, v]))^2 (arXiv:2204.02311); the loss is without.
 *
 * When the vocabulary is split over ranks, rank r holds columns first .. first + V - 1:
 * xent_max, all-reduce max; xent_sum, all-reduce sum and target; xent_finish.
 */
#ifndef KERNELS_XENT_H
#define KERNELS_XENT_H

#include <math.h>

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xent {
    int64_t t, v, ld;
    int64_t first;          /* target ids count from here; 0 unless split */
    void *logits;           /* (T, ld); becomes the gradient if scale is given */
    const int32_t *target;  /* (T) */
    const float *scale;     /* (T), or NULL: loss only, logits stay */
    float cap;              /* 0: none */
    float z;
};
/* The three phases at once for a whole vocabulary (first 0): a row at a time while it
 * is in cache.  loss (T).  target[t] >= v is ERR_ARG. */
typedef int xent_fn(struct device *dev, enum dtype dt, const struct xent *p, float *loss,
                    struct err *e);
/* A logit as it counts. */
TWIN_INLINE float xent_capped(float cap, float x)
{
    return cap > 0 ? cap * (1 - 2 / (1 + expf(2 / cap * x))) : x;
}
/* What softmaxes are multiplied by in the gradient: of scale, before the target's is taken off. */
TWIN_INLINE float xent_softmax_scale(const struct xent *p, float scale, float max, float sum)
{
    return scale / sum * (1 + 2 * p->z * (max + logf(sum)));
}
/* max (T) of the local columns (-inf when V is 0). */
typedef int xent_max_fn(struct device *dev, enum dtype dt, const struct xent *p, float *max,
                        struct err *e);
/* sum (T) of exp(logit - max) over the local columns; at (T) the target's logit - max, or
 * 0 when another rank has it. */
typedef int xent_sum_fn(struct device *dev, enum dtype dt, const struct xent *p,
                        const float *max, float *sum, float *at, struct err *e);
/* loss (T) = log(sum) - at (NULL: not wanted), and the gradient in place if scale. */
typedef int xent_finish_fn(struct device *dev, enum dtype dt, const struct xent *p,
                           const float *max, const float *sum, const float *at, float *loss,
                           struct err *e);
xent_fn xent_cpu, xent_cuda;
xent_max_fn xent_max_cpu, xent_max_cuda;
xent_sum_fn xent_sum_cpu, xent_sum_cuda;
xent_finish_fn xent_finish_cpu, xent_finish_cuda;

#ifdef __cplusplus
}
#endif
#endif
