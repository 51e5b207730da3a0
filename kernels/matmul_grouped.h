/* kernels/matmul_grouped.h -- matrix products of groups of rows, each group with a matrix of its own: the experts of a layer.
 *
 * The rows of all groups stand one after the other.  With the weights W_i (out, in) of group i and its rows of X and Y:
 *     forward   Y_i  = X_i . W_i^T + b_i     trans_b; group i's B and bias
 *     input     dX_i = dY_i . W_i            group i's B
 *     weight    dW_i += dY_i^T . X_i         trans_a, beta 1, fp32 C; group i's C, and the sums of dY_i's columns
 */
#ifndef KERNELS_MATMUL_GROUPED_H
#define KERNELS_MATMUL_GROUPED_H

#include "kernels/matmul.h"

#ifdef __cplusplus
extern "C" {
#endif

struct matmul_grouped {
    struct matmul of;     /* its rows (m, or with trans_a k) are those of all groups, at most; what groups have of their own is
                             the first one's.  No activation, no FP8; beta 1 or, with trans_a, 0 or 1 */
    int64_t groups;
    const int32_t *count; /* (groups) rows of each, the device's; NULL: each has as many */
    int64_t most;         /* if not 0, a larger count stands for so many rows */
    const int32_t *known; /* count (or what it stands for) where the host may read it; NULL: it does not know the rows */
    int64_t step;         /* elements from the matrix of a group to that of the next: of B, with trans_a of C */
    int64_t step_bias;    /* the same of the bias, or of sums */
    float *sums;          /* (m) with trans_a: the sums of A's columns over the rows of the group are added; or NULL */
};

/* Rows of all groups. */
TWIN_INLINE int64_t matmul_grouped_rows(const struct matmul_grouped *q)
{
    return q->of.trans_a ? q->of.k : q->of.m;
}

/* Whether a GPU is faster with a call a group, for which the host must know their rows: where one takes some 5 us or more (the
 * library's kernels need half the time of our own, measured on an H200), and where our own is not for tensor cores. */
static inline bool matmul_grouped_apart(const struct matmul_grouped *q)
{
    const struct matmul *p = &q->of;

    return p->dt != DTYPE_BF16 || p->n % 8 || (p->trans_a ? p->m : p->k) % 8 ||
           2.0 * (double)p->m * (double)p->n * (double)p->k >= 0x1p31 * (double)q->groups;
}

/* The product of group i, which has n rows from row `first` on; q has its strides. */
TWIN_INLINE struct matmul matmul_group(const struct matmul_grouped *q, int64_t i, int64_t first, int64_t n)
{
    struct matmul p = q->of;
    int64_t w = p.dt == DTYPE_BF16 ? 2 : 4, wc = p.dt_c == DTYPE_BF16 ? 2 : 4;

    p.a = (const char *)p.a + first * p.lda * w;
    if (p.trans_a) {
        p.k = n;
        p.b = (const char *)p.b + first * p.ldb * w;
        p.c = (char *)p.c + i * q->step * wc;
    } else {
        p.m = n;
        p.b = (const char *)p.b + i * q->step * w;
        p.c = (char *)p.c + first * p.ldc * wc;
        p.bias = p.bias ? (const char *)p.bias + i * q->step_bias * w : NULL;
    }
    return p;
}

/* As matmul of each group.  The bits are the same for any number of threads.  ERR_ARG, ERR_NOMEM, ERR_DEVICE. */
typedef int matmul_grouped_fn(struct device *dev, const struct matmul_grouped *p, struct err *e);
matmul_grouped_fn matmul_grouped_cpu, matmul_grouped_cuda;

#ifdef __cplusplus
}
#endif
#endif
