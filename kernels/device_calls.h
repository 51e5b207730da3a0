/* kernels/device_calls.h -- what a backend does for kernels/device.h; for kernels/ alone. */
#ifndef KERNELS_DEVICE_CALLS_H
#define KERNELS_DEVICE_CALLS_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum copy_way { COPY_PUT, COPY_GET, COPY_INSIDE };

/* Each as the function of kernels/device.h that it serves; all go to dev->stream. */
struct device_calls {
    void (*close)(struct device *dev); /* frees impl, not dev */
    int (*alloc)(struct device *dev, void **p, size_t bytes, struct err *e);
    void (*free)(struct device *dev, void *p);
    int (*alloc_host)(struct device *dev, void **p, size_t bytes, struct err *e);
    void (*free_host)(struct device *dev, void *p);
    int (*copy)(struct device *dev, void *dst, const void *src, size_t bytes, enum copy_way way,
                struct err *e); /* queued */
    int (*copy_rows)(struct device *dev, void *dst, size_t dst_row, const void *src, size_t src_row, size_t bytes,
                     size_t rows, struct err *e);
    int (*zero)(struct device *dev, void *dst, size_t bytes, struct err *e);
    int (*sync)(struct device *dev, struct err *e);
    int (*stream_new)(struct device *dev, struct device_stream **s, struct err *e);
    void (*stream_free)(struct device *dev, struct device_stream *s);
    int (*event_new)(struct device *dev, struct device_event **ev, bool timed, struct err *e);
    void (*event_free)(struct device *dev, struct device_event *ev);
    int (*event_record)(struct device *dev, struct device_event *ev, struct err *e);
    int (*event_wait)(struct device *dev, struct device_event *ev, struct err *e);
    int (*event_seconds)(struct device *dev, struct device_event *from, struct device_event *to,
                         double *seconds, struct err *e);
    int (*event_query)(struct device *dev, struct device_event *ev, bool *come, struct err *e);
    int (*bind)(struct device *dev, struct err *e);
    int (*capture_begin)(struct device *dev, struct err *e); /* NULL: no graphs */
    int (*capture_end)(struct device *dev, struct device_graph **g, struct err *e); /* g NULL: thrown away */
    int (*graph_launch)(struct device *dev, struct device_graph *g, struct err *e);
    void (*graph_free)(struct device *dev, struct device_graph *g);
    size_t (*overhead)(const struct device *dev); /* NULL: the CPU's, device_train.c knows it */
};

/* A CPU device with memory and ops of deduplication; the trainer's half is added by
 * device_open. */
int device_open_cpu(struct device **dev, int threads, struct err *e);
/* A GPU, with all its ops: the first, or where several ranks run on the machine each its own, in turn. */
int device_open_cuda(struct device **dev, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
