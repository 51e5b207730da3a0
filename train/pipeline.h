/* train/pipeline.h -- micro-batches through the stages of a pipeline.
 *
 * A schedule says in which order a stage takes micro-batches forward and backward through its parts:
 * 1F1B (arXiv:1806.03377, 2104.04473): stage s of p goes p - 1 - s micro-batches ahead, then takes one
 * backward for each one forward; interleaved (2104.04473), with several parts (chunks) a stage: groups
 * of p micro-batches go through chunk after chunk, and a stage goes 2 (p - 1 - s) + (chunks - 1) p ahead.
 * Where all parts take equally long, a stage is idle for (p - 1) / (micro-batches * chunks) of the
 * time in which it works.
 */
#ifndef TRAIN_PIPELINE_H
#define TRAIN_PIPELINE_H

#include "comm/comm.h"
#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pipeline_shape {
    int stages, chunks;
    int64_t micros; /* micro-batches; with several chunks a multiple of stages, unless forward */
    bool forward;   /* nothing goes backward */
};

/* A micro-batch through a chunk of a stage. */
struct pipeline_op {
    bool back;
    int chunk;
    int64_t micro;
};

/* How many operations a stage has, and the i-th of them. */
int64_t pipeline_ops(const struct pipeline_shape *s);
struct pipeline_op pipeline_at(const struct pipeline_shape *s, int stage, int64_t i);

/* The most operations forward whose backward is still to come, of all chunks of a stage. */
int pipeline_slots(const struct pipeline_shape *s, int stage);

/* Carries out op: takes what the part before (forward) or behind (backward) has left, from `in` (pipeline_take), and leaves in
 * `out` what goes on (pipeline_give); NULL where the model begins or ends. */
typedef int pipeline_fn(void *arg, const struct pipeline_op *op, const void *in, void *out, struct err *e);

/* Messages one way, to or from one stage: two buffers in turn. */
struct pipeline_way {
    struct comm *group;
    int peer;
    void *buf[2];
    struct comm_handle handle[2];
    int64_t n; /* posted so far */
};

struct pipeline {
    struct device *dev;
    struct comm *forth, *back; /* forth: the caller's */
    struct comm *links[6];     /* pairs of stages, where messages go from device to device */
    bool direct;               /* they do */
    int chunks;
    size_t n; /* elements of a message */
    enum comm_type type;
    struct pipeline_way in[2], out[2]; /* forward, backward */
};

/* Bytes of memory that pipeline_open takes: of a device that messages leave and reach directly, else of the host. */
static inline size_t pipeline_bytes(int stages, size_t n, enum comm_type type)
{
    return stages > 1 ? 8 * n * comm_type_size(type) : 0;
}

/* The stages are the ranks of group (NULL: this process alone), in order; all of them call it.  Messages have n elements.
 * group and dev must outlive it.  ERR_NOMEM and the errors of comm_split. */
int pipeline_open(struct pipeline *p, struct comm *group, int chunks, struct device *dev, size_t n, enum comm_type type,
                  struct err *e);
void pipeline_close(struct pipeline *p); /* zeroed is fine */

/* From `in` to the device, and from there to `out`; for a pipeline_fn. */
int pipeline_take(struct pipeline *p, void *to, const void *in, struct err *e);
int pipeline_give(struct pipeline *p, void *out, const void *from, struct err *e);

/* Runs this stage's operations in order; all stages call it.  Messages are received ahead and sent while the
 * next operation runs. */
int pipeline_pass(struct pipeline *p, int64_t micros, bool forward, pipeline_fn *run, void *arg, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
