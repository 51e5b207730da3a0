// A CUDA backend without a GPU: what kernels/cuda.h opens at run time, its kernels run on the CPU by
// tests/simt.h.  Its device has memory of its own, poisoned: what is not copied there and back is
// not there.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/cuda.h"
#include "kernels/device_calls.h"
#include "tests/simt_device.h"
#include "tests/streams.h"

static int simt_alloc(struct device *, void **p, size_t bytes, struct err *e)
{
    *p = aligned_alloc(256, bytes / 256 * 256 + 256);
    if (!*p)
        return err_set(e, ERR_NOMEM, "no %zu bytes of memory", bytes);
    memset(*p, 0xa5, bytes);
    return 0;
}

static void simt_free(struct device *, void *p)
{
    free(p);
}

// Streams are threads (tests/streams.h), but ops and copies are the calling thread's: what is in their stream goes first.
static int simt_sync(struct device *dev, struct err *e);

struct device_event {
    struct timespec at;
    struct test_event *mark = test_event_new();
};

static int simt_copy(struct device *dev, void *dst, const void *src, size_t bytes, enum copy_way, struct err *e)
{
    simt_sync(dev, e);
    if (bytes)
        memcpy(dst, src, bytes);
    return 0;
}

static int simt_copy_rows(struct device *, void *dst, size_t dst_row, const void *src, size_t src_row, size_t bytes, size_t rows,
                          struct err *)
{
    for (size_t i = 0; i < rows; i++)
        memcpy((char *)dst + i * dst_row, (const char *)src + i * src_row, bytes);
    return 0;
}

static int simt_zero(struct device *, void *dst, size_t bytes, struct err *)
{
    memset(dst, 0, bytes);
    return 0;
}

static int simt_event_new(struct device *, struct device_event **ev, struct err *)
{
    *ev = new device_event;
    return 0;
}

static void simt_event_free(struct device *, struct device_event *ev)
{
    test_event_free(ev->mark);
    delete ev;
}

static int simt_event_record(struct device *dev, struct device_event *ev, struct err *)
{
    clock_gettime(CLOCK_MONOTONIC, &ev->at);
    test_event_record(ev->mark, (struct test_stream *)dev->stream);
    return 0;
}

static int simt_event_wait(struct device *dev, struct device_event *ev, struct err *)
{
    test_event_after(ev->mark, (struct test_stream *)dev->stream);
    return 0;
}

static int simt_event_query(struct device *, struct device_event *ev, bool *come, struct err *)
{
    *come = test_event_query(ev->mark);
    return 0;
}

static int simt_sync(struct device *dev, struct err *e)
{
    struct device_event *ev;
    struct device_stream *s = dev->stream;

    if (!s)
        return 0;
    simt_event_new(dev, &ev, e);
    simt_event_record(dev, ev, e);
    dev->stream = NULL;
    simt_event_wait(dev, ev, e);
    dev->stream = s;
    simt_event_free(dev, ev);
    return 0;
}

static int simt_stream_new(struct device *, struct device_stream **s, struct err *)
{
    *s = (struct device_stream *)test_stream_new();
    return 0;
}

static void simt_stream_free(struct device *, struct device_stream *s)
{
    test_stream_free((struct test_stream *)s);
}

static int simt_bind(struct device *, struct err *)
{
    return 0;
}

static int simt_event_seconds(struct device *, struct device_event *from, struct device_event *to, double *seconds,
                              struct err *)
{
    *seconds = (double)(to->at.tv_sec - from->at.tv_sec) + 1e-9 * (double)(to->at.tv_nsec - from->at.tv_nsec);
    return 0;
}

static void simt_close(struct device *)
{
    simt_forget();
}

static size_t simt_overhead(const struct device *)
{
    return 0;
}

static int simt_info(int, struct cuda_info *info, struct err *)
{
    *info = cuda_info();
    info->devices = 1;
    snprintf(info->name, sizeof info->name, "no GPU: kernels run on the CPU");
    return 0;
}

static int simt_open(struct device **dev, int, struct err *e)
{
    static struct device_calls calls;

    calls.close = simt_close;
    calls.alloc = calls.alloc_host = simt_alloc;
    calls.free = calls.free_host = simt_free;
    calls.copy = simt_copy;
    calls.copy_rows = simt_copy_rows;
    calls.zero = simt_zero;
    calls.sync = simt_sync;
    calls.overhead = simt_overhead;
    calls.event_new = simt_event_new;
    calls.event_wait = simt_event_wait;
    calls.event_query = simt_event_query;
    calls.bind = simt_bind;
    calls.stream_new = simt_stream_new;
    calls.stream_free = simt_stream_free;
    calls.event_free = simt_event_free;
    calls.event_record = simt_event_record;
    calls.event_seconds = simt_event_seconds;
    *dev = (struct device *)calloc(1, sizeof **dev);
    if (!*dev)
        return err_set(e, ERR_NOMEM, "out of memory");
    (*dev)->kind = DEVICE_CUDA;
    (*dev)->calls = &calls;
    (*dev)->dedup = &simt_dedup_ops;
    (*dev)->ops = &simt_ops;
    (*dev)->fast_bf16 = (*dev)->fast_fp8 = true;
    (*dev)->peak[0] = (*dev)->peak[1] = 1e9; /* not to be measured */
    snprintf((*dev)->name, sizeof (*dev)->name, "cuda: by tests/simt.h");
    return 0;
}

extern "C" __attribute__((visibility("default"))) const struct cuda_backend quern_cuda_backend = {
    CUDA_BACKEND_ABI, simt_info, simt_open,
};
