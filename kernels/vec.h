/* kernels/vec.h -- the small ops: casts, scaled sums, column sums, norms, dropout. */
#ifndef KERNELS_VEC_H
#define KERNELS_VEC_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y (n) of type dy = x (n) of type dx. */
typedef int vec_cast_fn(struct device *dev, void *y, enum dtype dy, const void *x,
                        enum dtype dx, int64_t n, struct err *e);
/* y (n) *= a. */
typedef int vec_scale_fn(struct device *dev, enum dtype dt, void *y, float a, int64_t n,
                         struct err *e);
/* y (n) += a x (n). */
typedef int vec_axpy_fn(struct device *dev, enum dtype dt, void *y, float a, const void *x,
                        int64_t n, struct err *e);
/* y (n) = a (n) + b (n); y may be a or b. */
typedef int vec_add_fn(struct device *dev, enum dtype dt, void *y, const void *a, const void *b,
                       int64_t n, struct err *e);
/* y (T, C) = dropout(x); y may be x.  Its own backward. */
typedef int vec_dropout_fn(struct device *dev, enum dtype dt, void *y, const void *x, int64_t t,
                           int64_t c, const struct dropout *drop, struct err *e);
/* sum (C) += the columns of x (T, C), rows ldx >= C apart: the gradient of a bias.  Rows
 * in 32 fixed groups, added in order.  Scratch: 32 C floats. */
typedef int vec_colsum_fn(struct device *dev, enum dtype dt, float *sum, const void *x,
                          int64_t t, int64_t c, int64_t ldx, struct err *e);
/* sum[i] += the squares of elements i * block .. of x (n), block at a time, in double; the last
 * may be shorter.  sum is the device's; zero it first.  The bits of a block depend on its own elements
 * alone. */
typedef int vec_sumsq_fn(struct device *dev, enum dtype dt, double *sum, int64_t block, const void *x,
                         int64_t n, struct err *e);
/* sum[0] becomes the sum of sum[0], sum[1] ... sum[n - 1], added in that order, and
 * *scale = min(1, max_norm / (sqrt(sum[0]) + 1e-6)), Megatron's clipping factor; max_norm
 * <= 0: 1.  NaN in sum gives NaN, infinity 0: look at the norm before an update.
 * Both are the device's.  n >= 1. */
typedef int clip_scale_fn(struct device *dev, float *scale, double *sum, int64_t n, float max_norm,
                          struct err *e);
/* *sum = the sum of x (n), in double; the device's.  The order depends on n alone. */
typedef int vec_total_fn(struct device *dev, double *sum, const float *x, int64_t n, struct err *e);
vec_cast_fn vec_cast_cpu, vec_cast_cuda;
vec_scale_fn vec_scale_cpu, vec_scale_cuda;
vec_axpy_fn vec_axpy_cpu, vec_axpy_cuda;
vec_add_fn vec_add_cpu, vec_add_cuda;
vec_dropout_fn vec_dropout_cpu, vec_dropout_cuda;
vec_colsum_fn vec_colsum_cpu, vec_colsum_cuda;
vec_sumsq_fn vec_sumsq_cpu, vec_sumsq_cuda;
clip_scale_fn clip_scale_cpu, clip_scale_cuda;
vec_total_fn vec_total_cpu, vec_total_cuda;

#ifdef __cplusplus
}
#endif
#endif
