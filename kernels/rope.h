/* kernels/rope.h -- rotary position embedding (arXiv:2104.09864), halves convention. */
#ifndef KERNELS_ROPE_H
#define KERNELS_ROPE_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Turns in place the first rot elements of each head of x: T rows of `heads` heads of
 * d elements, rows ldx apart (so q or k inside a packed qkv).  Pair (i, i + rot/2) of
 * row t turns by the angle whose cosine and sine are cs (n_pos, rot)[pos[t]]: rot/2
 * cosines, then rot/2 sines, fp32.  inverse turns back: the backward pass.
 * rot is even and <= d; positions in [0, n_pos). */
struct rope {
    int64_t t, heads, d, ldx, rot, n_pos;
    const float *cs;
    const int32_t *pos; /* (T) */
    bool inverse;
};
typedef int rope_fn(struct device *dev, enum dtype dt, void *x, const struct rope *p,
                    struct err *e);
rope_fn rope_cpu, rope_cuda;

/* Llama 3.1's change of the frequencies, by their wavelength w against the context that the
 * model was trained with: w < original / high: none; w > original / low: divided by factor;
 * in between from the one to the other linearly in original / w.  Source: transformers,
 * modeling_rope_utils, rope_type "llama3". */
struct rope_scaling {
    double factor, low, high;
    int64_t original;
};

/* Fills cs (host memory) for positions 0 .. n_pos - 1: angle pos * base^(-2i / rot), its
 * frequency scaled by s (NULL: not), computed in double. */
void rope_table(float *cs, int64_t n_pos, int64_t rot, double base, const struct rope_scaling *s);

#ifdef __cplusplus
}
#endif
#endif
