#include "kernels/device.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda.h"
#include "kernels/device_calls.h"

/* ---- opening ---- */

/* What Open MPI, Slurm and torchrun call the number of this process among those of its machine. */
static int local_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "LOCAL_RANK"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i]);

        if (rank)
            return (int)strtol(rank, NULL, 10);
    }
    return 0;
}

int device_open_cuda(struct device **dev, struct err *e)
{
    const struct cuda_backend *b;
    struct cuda_info info;
    int rank = local_rank();

    TRY(cuda_backend_open(&b, e));
    TRY(b->info(0, &info, e));
    return b->open(dev, rank > 0 ? rank % info.devices : 0, e);
}

int device_open_dedup(struct device **dev, const char *kind, int threads, char *why, struct err *e)
{
    struct err none = {0};
    int rc;

    *dev = NULL;
    if (why)
        *why = '\0';
    if (strcmp(kind, "cuda") == 0)
        return device_open_cuda(dev, e);
    if (strcmp(kind, "auto") == 0) {
        rc = device_open_cuda(dev, &none);
        if (rc == 0)
            return 0;
        if (why)
            snprintf(why, DEVICE_WHY_BYTES, "%s", none.msg);
    } else if (strcmp(kind, "cpu") != 0) {
        return err_set(e, ERR_ARG, "unknown device '%s' (auto, cpu, cuda)", kind);
    }
    return device_open_cpu(dev, threads, e);
}

void device_close(struct device *dev)
{
    if (!dev)
        return;
    if (dev->kept_free)
        dev->kept_free(dev);
    dev->calls->close(dev);
    free(dev->blocks);
    free(dev);
}

/* ---- memory ---- */

struct device_block {
    const void *p;
    size_t bytes;
    enum memory_kind use;
};

static int count(struct device *dev, const void *p, size_t bytes, struct err *e)
{
    size_t all = 0;

    if (dev->n_blocks == dev->blocks_room) {
        size_t room = 2 * dev->blocks_room + 16;
        struct device_block *more = realloc(dev->blocks, room * sizeof *more);

        if (!more)
            return err_set(e, ERR_NOMEM, "out of memory");
        dev->blocks = more;
        dev->blocks_room = room;
    }
    dev->blocks[dev->n_blocks++] = (struct device_block){p, bytes, dev->use};
    dev->used[dev->use] += bytes;
    for (int i = 0; i < MEMORY_KINDS; i++)
        all += dev->used[i];
    dev->most = all > dev->most ? all : dev->most;
    return 0;
}

/* There are few, and the last ones go first. */
static void uncount(struct device *dev, const void *p)
{
    for (size_t i = dev->n_blocks; p && i-- > 0;)
        if (dev->blocks[i].p == p) {
            dev->used[dev->blocks[i].use] -= dev->blocks[i].bytes;
            dev->blocks[i] = dev->blocks[--dev->n_blocks];
            return;
        }
}

int device_alloc(struct device *dev, void **p, size_t bytes, struct err *e)
{
    int rc = dev->calls->alloc(dev, p, bytes, e);

    if (rc < 0 || (rc = count(dev, *p, bytes, e)) == 0)
        return rc;
    dev->calls->free(dev, *p);
    *p = NULL;
    return rc;
}

int device_alloc_as(struct device *dev, enum memory_kind use, void **p, size_t bytes, struct err *e)
{
    enum memory_kind before = dev->use;
    int rc;

    dev->use = use;
    rc = device_alloc(dev, p, bytes, e);
    dev->use = before;
    return rc;
}

void device_free(struct device *dev, void *p)
{
    uncount(dev, p);
    dev->calls->free(dev, p);
}

int device_alloc_host(struct device *dev, void **p, size_t bytes, struct err *e)
{
    int rc = dev->calls->alloc_host(dev, p, bytes, e);

    if (rc < 0 || (rc = count(dev, *p, bytes, e)) == 0)
        return rc;
    dev->calls->free_host(dev, *p);
    *p = NULL;
    return rc;
}

void device_free_host(struct device *dev, void *p)
{
    uncount(dev, p);
    dev->calls->free_host(dev, p);
}

int device_put_later(struct device *dev, void *dst, const void *host, size_t bytes, struct err *e)
{
    return dev->calls->copy(dev, dst, host, bytes, COPY_PUT, e);
}

int device_get_later(struct device *dev, void *host, const void *src, size_t bytes, struct err *e)
{
    return dev->calls->copy(dev, host, src, bytes, COPY_GET, e);
}

int device_put(struct device *dev, void *dst, const void *host, size_t bytes, struct err *e)
{
    TRY(device_put_later(dev, dst, host, bytes, e));
    return device_sync(dev, e);
}

int device_get(struct device *dev, void *host, const void *src, size_t bytes, struct err *e)
{
    TRY(device_get_later(dev, host, src, bytes, e));
    return device_sync(dev, e);
}

int device_copy(struct device *dev, void *dst, const void *src, size_t bytes, struct err *e)
{
    return dev->calls->copy(dev, dst, src, bytes, COPY_INSIDE, e);
}

int device_copy_rows(struct device *dev, void *dst, size_t dst_row, const void *src, size_t src_row, size_t bytes,
                     size_t rows, struct err *e)
{
    return dev->calls->copy_rows(dev, dst, dst_row, src, src_row, bytes, rows, e);
}

int device_zero(struct device *dev, void *dst, size_t bytes, struct err *e)
{
    return dev->calls->zero(dev, dst, bytes, e);
}

int device_sync(struct device *dev, struct err *e)
{
    return dev->calls->sync(dev, e);
}

/* ---- streams and events ---- */

int device_stream_new(struct device *dev, struct device_stream **s, struct err *e)
{
    return dev->calls->stream_new(dev, s, e);
}

void device_stream_free(struct device *dev, struct device_stream *s)
{
    if (s)
        dev->calls->stream_free(dev, s);
}

int device_event_new(struct device *dev, struct device_event **ev, struct err *e)
{
    return dev->calls->event_new(dev, ev, false, e);
}

int device_event_new_timed(struct device *dev, struct device_event **ev, struct err *e)
{
    return dev->calls->event_new(dev, ev, true, e);
}

void device_event_free(struct device *dev, struct device_event *ev)
{
    if (ev)
        dev->calls->event_free(dev, ev);
}

int device_event_record(struct device *dev, struct device_event *ev, struct err *e)
{
    return dev->calls->event_record(dev, ev, e);
}

int device_event_wait(struct device *dev, struct device_event *ev, struct err *e)
{
    return dev->calls->event_wait(dev, ev, e);
}

int device_event_query(struct device *dev, struct device_event *ev, bool *come, struct err *e)
{
    return dev->calls->event_query(dev, ev, come, e);
}

int device_bind(struct device *dev, struct err *e)
{
    return dev->calls->bind(dev, e);
}

int device_capture_begin(struct device *dev, struct err *e)
{
    if (!dev->calls->capture_begin)
        return err_set(e, ERR_UNSUPPORTED, "%s has no graphs", dev->name);
    return dev->calls->capture_begin(dev, e);
}

int device_capture_end(struct device *dev, struct device_graph **g, struct err *e)
{
    if (g)
        *g = NULL;
    return dev->calls->capture_end(dev, g, e);
}

int device_graph_launch(struct device *dev, struct device_graph *g, struct err *e)
{
    return dev->calls->graph_launch(dev, g, e);
}

void device_graph_free(struct device *dev, struct device_graph *g)
{
    if (g)
        dev->calls->graph_free(dev, g);
}

int device_event_seconds(struct device *dev, struct device_event *from, struct device_event *to,
                         double *seconds, struct err *e)
{
    return dev->calls->event_seconds(dev, from, to, seconds, e);
}
