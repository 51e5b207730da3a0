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

/* Changes of the frequencies for contexts that are longer than the `original` one which a model was trained with.  Source:
 * transformers, modeling_rope_utils, with whose numbers they agree.
 *   llama3  by how often a pair turns in the original context: at least `high` times: none; at most `low` times: divided by
 *           factor; in between linearly from the one to the other
 *   linear  all divided by factor (arXiv:2306.15595)
 *   yarn    (arXiv:2309.00071) from the pair that turns `high` times to the one that turns `low` times, linearly by their
 *           number, from none to divided by factor; both numbers rounded away from each other unless `exact`; and all
 *           cosines and sines times `attention`
 *   dynamic none in sequences of at most the longest length that a model has positions for, which none exceeds here */
enum rope_kind { ROPE_LLAMA3, ROPE_LINEAR, ROPE_YARN, ROPE_DYNAMIC };
struct rope_scaling {
    enum rope_kind kind;
    double factor, low, high;
    int64_t original;
    double attention;
    bool exact;
};

/* Fills cs (host memory) for positions 0 .. n_pos - 1: angle pos * base^(-2i / rot), its
 * frequency changed by s (NULL: not), computed in double. */
void rope_table(float *cs, int64_t n_pos, int64_t rot, double base, const struct rope_scaling *s);

#ifdef __cplusplus
}
#endif
#endif
