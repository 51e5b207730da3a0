/* kernels/adamw.h -- Adam with decoupled weight decay (arXiv:1711.05101). */
#ifndef KERNELS_ADAMW_H
#define KERNELS_ADAMW_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With g = grad * *grad_scale:
 *     m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *     w = w (1 - lr wd) - lr / (1 - b1^step) * m / (sqrt(v / (1 - b2^step)) + eps)
 * in fp32 from double constants, as PyTorch and Apex compute it.  Element by element:
 * any split of the parameters over ranks or threads gives the same bits. */
struct adamw {
    int64_t step;            /* 1 at the first update */
    double lr, beta1, beta2, eps, weight_decay;
    const float *grad_scale; /* device: one float (clip_scale's); NULL: 1 */
};
/* w (n) master weights, m, v, grad (n), all fp32; low (n) bf16 gets the rounded w, or
 * NULL. */
typedef int adamw_fn(struct device *dev, const struct adamw *p, float *w, float *m, float *v,
                     const float *grad, uint16_t *low, int64_t n, struct err *e);
adamw_fn adamw_cpu, adamw_cuda;

#ifdef __cplusplus
}
#endif
#endif
