/* kernels/device.h -- where ops run: memory, streams, events, and the tables of ops.
 *
 * A trainer is written against struct device_ops alone:
 *     TRY(dev->ops->act_fwd(dev, dt, ACT_GELU_TANH, y, x, n, e));
 * deduplication against struct dedup_ops in the same way.  The CPU fills the tables
 * with the NAME_cpu functions; the CUDA backend is a shared object opened at run time
 * (kernels/cuda.h) that fills them with NAME_cuda.  docs/numerics.md says what each op
 * of training promises, docs/gpu.md what is twinned and how that is tested.
 */
#ifndef KERNELS_DEVICE_H
#define KERNELS_DEVICE_H

#include "kernels/act.h"
#include "kernels/update.h"
#include "kernels/attention.h"
#include "kernels/band_keys.h"
#include "kernels/dtype.h"
#include "kernels/embedding.h"
#include "kernels/factored.h"
#include "kernels/fp8.h"
#include "kernels/gate.h"
#include "kernels/heads.h"
#include "kernels/matmul.h"
#include "kernels/matmul_grouped.h"
#include "kernels/minhash_sign.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "kernels/route.h"
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
    update_fn *update;
    route_fwd_fn *route_fwd;
    route_bwd_fn *route_bwd;
    route_place_fn *route_place;
    route_likely_fn *route_likely;
    route_tally_fn *route_tally;
    route_balance_fn *route_balance;
    route_take_fn *route_take;
    route_join_fn *route_join;
    route_join_bwd_fn *route_join_bwd;
    gate_add_fn *gate_add;
    gate_back_fn *gate_back;
    gate_mul_fn *gate_mul;
    gate_slope_fn *gate_slope;
    heads_move_fn *heads_move;
    heads_sum_fn *heads_sum;
    fp8_amax_fn *fp8_amax;
    fp8_quantize_fn *fp8_quantize;
    fp8_update_fn *fp8_update;
    fp8_blocks_fn *fp8_blocks;
    vec_total_fn *vec_total;
    matmul_grouped_fn *matmul_grouped;
    factored_fn *factored;
};

/* The same for deduplication. */
struct dedup_ops {
    minhash_sign_fn *minhash_sign;
    band_keys_fn *band_keys;
};

/* Work in a stream is done in order; streams run beside each other. */
struct device_stream;
/* A point in a stream that can be waited for and timed. */
struct device_event;

/* What memory of a device is for. */
enum memory_kind {
    MEMORY_OTHER, MEMORY_WEIGHTS, MEMORY_GRADIENTS, MEMORY_OPTIMIZER, MEMORY_ACTIVATIONS, MEMORY_SAVING, MEMORY_KINDS
};

enum { DEVICE_HOW_BYTES = 400 };
struct device {
    enum device_kind kind;
    char name[80];   /* "cpu: avx512, bf16 by AMX, 2 threads" */
    int threads;     /* of the CPU device; 0 elsewhere */
    int team;       /* of them, those of ops that give the same bits for any number: all but matrix products */
    bool fast_bf16;  /* matrix products of bf16 run in bf16; else they are computed
                        in fp32 from converted copies: right, but no faster */
    bool fast_fp8;   /* the same of FP8: right everywhere, fast where this is set; and by blocks */
    bool fast_blocks;
    bool deterministic; /* set by whoever opened it, before the first op: a GPU's ops take only ways that give the same bits
                           in every run; the CPU's have no others */
    const struct device_ops *ops;      /* training; of the CPU NULL after device_open_dedup */
    const struct dedup_ops *dedup;     /* always there */
    const struct device_calls *calls;  /* the backend's part of what follows */
    struct device_stream *stream;      /* where ops and copies go; NULL: the default one */
    struct device_impl *impl;          /* the backend's own */
    double peak[2];  /* device_peak_flops by dtype; 0: not measured */
    enum memory_kind use; /* what is allocated from here on is for; set by whoever allocates */
    size_t used[MEMORY_KINDS]; /* bytes allocated and not freed by device_alloc and device_alloc_host */
    size_t most;     /* the largest sum of these */
    size_t room;     /* bytes that a GPU had free when it was opened; 0: not known, or the host's memory */
    struct device_block *blocks; /* what is allocated */
    size_t n_blocks, blocks_room;
    char *how;       /* of DEVICE_HOW_BYTES, "" at first: where ops that have several ways of a GPU's add which they took; NULL:
                        nobody asks */
    void *kept;      /* what a user of the device keeps with it, freed when it is closed */
    void (*kept_free)(struct device *dev);
    int64_t card;    /* of a GPU: a number that all processes have for it alone; 0: not known, or the host */
};

/* Opens "cpu", "cuda" or "auto" (a GPU if one works, else the CPU) for training.  threads: how
 * many the CPU device uses (OpenMP's team; sets it for the process, oneDNN reads it), 0 for as many as OpenMP
 * would.  ERR_UNSUPPORTED says why there is no GPU, ERR_ARG an unknown name. */
int device_open(struct device **dev, const char *kind, int threads, struct err *e);
/* The same for deduplication, with dev->dedup alone.  For "auto", *why (NULL: not wanted;
 * of WHY_BYTES) becomes the reason why it is not a GPU, or "". */
enum { DEVICE_WHY_BYTES = 508 };
int device_open_dedup(struct device **dev, const char *kind, int threads, char *why, struct err *e);
void device_close(struct device *dev); /* NULL is fine; its memory dies with it */

/* bytes of device memory, 64-byte aligned (4096 from 1 MiB), uninitialised. */
int device_alloc(struct device *dev, void **p, size_t bytes, struct err *e);
/* The same, counted as `use`, whatever dev->use says. */
int device_alloc_as(struct device *dev, enum memory_kind use, void **p, size_t bytes, struct err *e);
void device_free(struct device *dev, void *p); /* NULL is fine */
/* Memory of the host that a GPU reaches by itself (pinned); plain memory on the CPU. */
int device_alloc_host(struct device *dev, void **p, size_t bytes, struct err *e);
void device_free_host(struct device *dev, void *p); /* NULL is fine */

/* Host memory may be used again when put and get return. */
int device_put(struct device *dev, void *dst, const void *host, size_t bytes, struct err *e);
int device_get(struct device *dev, void *host, const void *src, size_t bytes, struct err *e);
int device_copy(struct device *dev, void *dst, const void *src, size_t bytes, struct err *e);
/* bytes of each of `rows` rows, which lie dst_row and src_row bytes apart. */
int device_copy_rows(struct device *dev, void *dst, size_t dst_row, const void *src, size_t src_row, size_t bytes,
                     size_t rows, struct err *e);
int device_zero(struct device *dev, void *dst, size_t bytes, struct err *e);
/* Normal numbers in bf16, which read as fp32 are normal and finite too, to measure by: a GPU multiplies zeros faster. */
int device_put_numbers(struct device *dev, void *dst, size_t bytes, uint64_t seed, struct err *e);
/* As put and get, but only queued: host is of device_alloc_host, and belongs to the
 * device until the stream is synchronised. */
int device_put_later(struct device *dev, void *dst, const void *host, size_t bytes, struct err *e);
int device_get_later(struct device *dev, void *host, const void *src, size_t bytes, struct err *e);
/* Waits for all work queued in dev->stream; where a GPU's late failures surface. */
int device_sync(struct device *dev, struct err *e);

/* Set dev->stream to use one.  Free after its work is done; NULL is fine. */
int device_stream_new(struct device *dev, struct device_stream **s, struct err *e);
void device_stream_free(struct device *dev, struct device_stream *s);
int device_event_new(struct device *dev, struct device_event **ev, struct err *e);
/* One that device_event_seconds takes, which costs a GPU more. */
int device_event_new_timed(struct device *dev, struct device_event **ev, struct err *e);
void device_event_free(struct device *dev, struct device_event *ev);
/* Puts the event behind what dev->stream holds so far. */
int device_event_record(struct device *dev, struct device_event *ev, struct err *e);
/* dev->stream goes on only when the event, of another stream, has come. */
int device_event_wait(struct device *dev, struct device_event *ev, struct err *e);
/* *come: what the event stands behind is done; by any thread. */
int device_event_query(struct device *dev, struct device_event *ev, bool *come, struct err *e);
/* Seconds between two recorded events that are timed; waits for the later. */
int device_event_seconds(struct device *dev, struct device_event *from, struct device_event *to,
                         double *seconds, struct err *e);

/* What was queued once and is queued again as one piece (CUDA's graphs). */
struct device_graph;
/* ERR_UNSUPPORTED: the device has none.  Else what goes to the device is not done but recorded, until device_capture_end, which
 * is to be called whatever happens; *g NULL: it failed, or g NULL: it is thrown away.  Arguments keep their values, memory is
 * looked at at each launch.  Nothing that waits, allocates, frees or has to do with events can be recorded: ERR_DEVICE then or
 * at the end, and nothing was done; what ops make when they are first called (plans, scratch) is to be there before. */
int device_capture_begin(struct device *dev, struct err *e);
int device_capture_end(struct device *dev, struct device_graph **g, struct err *e);
/* Queues it in dev->stream.  The memory that it was recorded with must still be there; scratch stays. */
int device_graph_launch(struct device *dev, struct device_graph *g, struct err *e);
void device_graph_free(struct device *dev, struct device_graph *g); /* after its work is done; NULL is fine */

/* Makes dev the device of the calling thread, which did not open it: for calls into other libraries. */
int device_bind(struct device *dev, struct err *e);

/* Memory that the device itself holds for ops: scratch, grown to the largest that
 * an op asked for (each header states its bound), and matmul plans. */
size_t device_overhead_bytes(const struct device *dev);

/* FLOP/s of a large matrix product of dt (some tenths of a second at the first call for each type, then remembered): what
 * a model's FLOP/s are a share of.  work: the FLOP that are to follow, which measuring does not exceed by much; so of little
 * work the product is smaller and tells less. */
int device_peak_flops(struct device *dev, enum dtype dt, double work, double *flops, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
