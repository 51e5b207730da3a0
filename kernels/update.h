/* kernels/update.h -- the update of an optimizer that looks at each element by itself. */
#ifndef KERNELS_UPDATE_H
#define KERNELS_UPDATE_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With g = grad * *grad_scale, l the rate and d the weight decay:
 *   ADAMW (arXiv:1711.05101)  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *                             w = w (1 - l d) - l / (1 - b1^step) * m / (sqrt(v / (1 - b2^step)) + eps)
 *   LION (arXiv:2302.06675)   u = sign(b1 m + (1 - b1) g);  m = b2 m + (1 - b2) g;  w = w (1 - l d) - l u
 *   SGD, with momentum b1     m = b1 m + g + d w;  w = w - l m, PyTorch's
 * in fp32 from double constants; AdamW as PyTorch and Apex compute it.  Element by element: any split of the parameters over
 * ranks or threads gives the same bits.  What has no v gets NULL.
 *
 * Weights may be bf16 alone.  Then a new one is rounded to one of the two bf16 beside it, to the farther from zero with the
 * probability of the distance from the nearer (stochastic rounding, arXiv:1502.02551): sixteen random bits are added below its
 * last place, and what is below is cut off.  Those of element e of the logical tensor are the (e % 8)-th of Philox4x32-10(key,
 * lo = e / 8, hi = step), low halves of its words first.  What is not finite is rounded as ever.
 *
 * Moments may be bf16, and are rounded in the same way: to the nearest, one that forgets by 0.999 would never shrink.  The weight
 * is of those that are not rounded yet.  The bits are update_random's, its low half m's and its high half v's: a hash of the
 * element's gradient, weight and step, so they too are the same for any split.
 *
 * Or they are codes of eight bits with a scale for each 256 of the call's elements (kernels/eight_bit.h), both or one beside
 * fp32: what is stored is the nearest, and there is no bf16 beside it, in moments or of weights alone. */
#define UPDATES(X, ...) X(UPDATE_ADAMW, __VA_ARGS__) X(UPDATE_LION, __VA_ARGS__) X(UPDATE_SGD, __VA_ARGS__)
#define UPDATE_NAME(name, ...) name,
enum update_kind { UPDATES(UPDATE_NAME) UPDATE_KINDS };

struct update_round {
    uint64_t key;         /* another for each tensor */
    int64_t first;        /* which element of the logical tensor the first of the call is; */
    int64_t cols, width;  /* element i is number first + i / cols * width + i % cols */
};

struct update {
    int64_t step;            /* 1 at the first update */
    double lr, beta1, beta2, eps, weight_decay;
    const float *grad_scale; /* device: one float (clip_scale's); NULL: 1 */
    struct update_round round; /* where w is NULL */
    enum update_kind kind;
    enum dtype m_type, v_type;
    float *m_scale, *v_scale;  /* of those of 8 bits; else NULL */
};
/* Whether a moment is of eight bits. */
TWIN_INLINE bool update_is_blocks(const struct update *p)
{
    return p->m_type == DTYPE_8BIT || (p->kind == UPDATE_ADAMW && p->v_type == DTYPE_8BIT);
}
/* w (n) main weights and grad (n), fp32; m and v (n) of their types, m signed and v not; low (n) bf16 gets the rounded w, or
 * NULL.  w NULL: low has the weights, and round says how they are rounded. */
typedef int update_fn(struct device *dev, const struct update *p, float *w, void *m, void *v,
                     const float *grad, uint16_t *low, int64_t n, struct err *e);
update_fn update_cpu, update_cuda;

#ifdef __cplusplus
}
#endif
#endif
