/* kernels/device.h -- where ops run: memory, and the table of ops.
 *
 * A trainer is written against struct device_ops alone:
 *     TRY(dev->ops->act_fwd(dev, dt, ACT_GELU_TANH, y, x, n, e));
 * The CPU fills the table with the NAME_cpu functions; a CUDA backend is a shared
 * object opened at run time that fills it with NAME_cuda.  docs/numerics.md says
 * what each op promises, and how to add one.
 */
#ifndef KERNELS_DEVICE_H
#define KERNELS_DEVICE_H

#include "kernels/act.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/dtype.h"
#include "kernels/embedding.h"
#include "kernels/matmul.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "kernels/vec.h"
#include "kernels/xent.h"

#ifdef __cplusplus
extern "C" {
#endif

enum device_kind { DEVICE_CPU, DEVICE_CUDA };

/* One pointer an op, none NULL; what each does is said at its type. */
struct device_ops {
    matmul_fn *matmul;
    embedding_fwd_fn *embedding_fwd;
    embedding_bwd_fn *embedding_bwd;
    layernorm_fwd_fn *layernorm_fwd;
    layernorm_bwd_fn *layernorm_bwd;
    rmsnorm_fwd_fn *rmsnorm_fwd;
    rmsnorm_bwd_fn *rmsnorm_bwd;
    act_fwd_fn *act_fwd;
    act_bwd_fn *act_bwd;
    glu_fwd_fn *glu_fwd;
    glu_bwd_fn *glu_bwd;
    rope_fn *rope;
    attention_fwd_fn *attention_fwd;
    attention_bwd_fn *attention_bwd;
    xent_fn *xent;
    xent_max_fn *xent_max;
    xent_sum_fn *xent_sum;
    xent_finish_fn *xent_finish;
    vec_cast_fn *vec_cast;
    vec_scale_fn *vec_scale;
    vec_axpy_fn *vec_axpy;
    vec_add_fn *vec_add;
    vec_dropout_fn *vec_dropout;
    vec_colsum_fn *vec_colsum;
    vec_sumsq_fn *vec_sumsq;
    clip_scale_fn *clip_scale;
    adamw_fn *adamw;
};

struct device {
    enum device_kind kind;
    char name[80];   /* "cpu: avx512, bf16 by AMX, 2 threads" */
    int threads;     /* of the CPU device; 0 elsewhere */
    bool fast_bf16;  /* matrix products of bf16 run in bf16; else they are computed
                        in fp32 from converted copies: right, but no faster */
    const struct device_ops *ops;
    struct device_impl *impl; /* the backend's own */
};

/* Opens "cpu", "cuda" or "auto" (a GPU if one works, else the CPU).  threads: how
 * many the CPU device uses (OpenMP's team; sets it for the process, oneDNN reads
 * it), 0 for as many as OpenMP would.  ERR_UNSUPPORTED says why there is no GPU,
 * ERR_ARG an unknown name. */
int device_open(struct device **dev, const char *kind, int threads, struct err *e);
void device_close(struct device *dev); /* NULL is fine; its memory dies with it */

/* bytes of device memory, 64-byte aligned (4096 from 1 MiB), uninitialised. */
int device_alloc(struct device *dev, void **p, size_t bytes, struct err *e);
void device_free(struct device *dev, void *p); /* NULL is fine */
int device_put(struct device *dev, void *dst, const void *host, size_t bytes, struct err *e);
int device_get(struct device *dev, void *host, const void *src, size_t bytes, struct err *e);
int device_copy(struct device *dev, void *dst, const void *src, size_t bytes, struct err *e);
int device_zero(struct device *dev, void *dst, size_t bytes, struct err *e);
/* Waits for all queued work; where a GPU's late failures surface. */
int device_sync(struct device *dev, struct err *e);

/* Memory that the device itself holds for ops: scratch, grown to the largest that
 * an op asked for (each header states its bound), and matmul plans. */
size_t device_overhead_bytes(const struct device *dev);

/* FLOP/s of a large matrix product of dt (about a tenth of a second at the first
 * call for each type, then remembered): what a model's FLOP/s are a share of. */
int device_peak_flops(struct device *dev, enum dtype dt, double *flops, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
