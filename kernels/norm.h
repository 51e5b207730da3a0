/* kernels/norm.h -- layer norm and RMS norm, fused with the residual addition.
 *
 * Forward:   s = residual + dropout(x)      (residual NULL: s = x, nothing stored)
 *            y = (s - mean) * rstd * gamma + beta      (RMS norm: mean and beta 0)
 * Backward:  ds = dres + d(norm)/ds . dy    (dres: what reaches s by other ways)
 *            dx = dropout(ds)               (what goes back into x)
 *
 * In a pre-norm transformer s is the residual stream: attention's or the MLP's
 * output is x, and one call makes the next stream and its norm.
 * Sources: arXiv:1607.06450, arXiv:1910.07467; the fusion as in llm.c and Megatron.
 */
#ifndef KERNELS_NORM_H
#define KERNELS_NORM_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Heads inside wider rows, as q and k of a packed qkv: row i of a tensor is head
 * i % heads, of C elements, of its row i / heads, and those lie ld elements apart.
 * heads 0: dense rows of C.  mean and rstd are always dense. */
struct norm_heads {
    int64_t heads, ld;
};

struct norm_fwd {
    int64_t t, c;
    struct norm_heads x_heads, y_heads; /* of x and y; without residual only */
    float eps;                  /* > 0; added to the variance (or mean square) */
    const void *x;              /* (T, C) */
    const void *residual;       /* (T, C) or NULL */
    const struct dropout *drop; /* of x; only with residual; or NULL */
    const void *gamma, *beta;   /* (C), or NULL: zeros; beta NULL for RMS norm */
    float plus;                 /* added to gamma: 1 where that is stored as the offset from one, else 0 */
    void *s;                    /* (T, C), with residual only; may be x or residual */
    void *y;                    /* (T, C); may be x, if s is not */
    float *mean, *rstd;         /* (T), or both NULL when no backward follows; RMS
                                   norm: mean is not used */
    const struct fp8_quantize *fp8; /* or NULL; bf16 alone: y (NULL then) goes where this
                                   says, as by fp8_quantize of it, whose x is not looked at;
                                   yt needs y there; no colsum */
};
/* With residual, s is rounded to dt and the norm is taken of the rounded values. */
typedef int layernorm_fwd_fn(struct device *dev, enum dtype dt, const struct norm_fwd *p,
                             struct err *e);
typedef layernorm_fwd_fn rmsnorm_fwd_fn;

struct norm_bwd {
    int64_t t, c;
    struct norm_heads heads;    /* of dy, s and ds; without dres and drop only */
    const void *dy;             /* (T, C) */
    const void *dres;           /* (T, C) or NULL (0) */
    const void *s;              /* (T, C): forward's s, or its x without residual */
    const float *mean, *rstd;   /* (T) of the forward call */
    const void *gamma;          /* (C), or NULL as in forward */
    float plus;                 /* as in forward */
    const struct dropout *drop; /* as in forward; or NULL */
    void *ds;                   /* (T, C); may be dres or dy */
    void *dx;                   /* (T, C), written only with drop (else ds is it);
                                   may be dy, if ds is not; NULL without drop */
    float *dgamma, *dbeta;      /* (C) +=; NULL: not wanted */
};
/* dgamma and dbeta: rows are summed in 32 fixed groups that are added in order, so the
 * bits do not depend on the number of threads.  Scratch: 32 * 2 * C floats. */
typedef int layernorm_bwd_fn(struct device *dev, enum dtype dt, const struct norm_bwd *p,
                             struct err *e);
typedef layernorm_bwd_fn rmsnorm_bwd_fn;

layernorm_fwd_fn layernorm_fwd_cpu, layernorm_fwd_cuda, rmsnorm_fwd_cpu, rmsnorm_fwd_cuda;
layernorm_bwd_fn layernorm_bwd_cpu, layernorm_bwd_cuda, rmsnorm_bwd_cpu, rmsnorm_bwd_cuda;

#ifdef __cplusplus
}
#endif
#endif
