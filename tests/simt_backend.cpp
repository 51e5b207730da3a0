// A CUDA backend without a GPU: what kernels/cuda.h opens at run time, its kernels run on the CPU by
// tests/simt.h.  Its device has memory of its own (tests/simt_memory.h), poisoned: what is not copied there and back is
// not there.
//
// Kernels and copies are done at once.  SIMT_LATE=1: they are queued in a stream, a little late, with the values of their
// arguments and whatever lies behind pointers when it is their turn, so that a host that does not wait for what it reads, or
// takes memory back too early, is found out.
//
// A graph is recorded work that is run again: with the values that arguments had, and whatever lies behind pointers by then.
// What cannot be recorded on a GPU is an error, and spoils the recording.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <mutex>
#include <vector>

#include "kernels/cuda.h"
#include "kernels/cuda_op.cuh"
#include "kernels/device_calls.h"
#include "kernels/dnn_api.h"
#include "kernels/lt_api.h"
#include "tests/simt_device.h"
#include "tests/streams.h"

struct device_graph {
    std::vector<std::function<void()>> work;
};
static struct device_graph *recorded; // under way; NULL: nothing is recorded
static bool spoilt;
static long launched;
static void (*queue_before)(std::function<void()> work);

// To be asked by what cannot be recorded.
static int not_recorded(const char *what, struct err *e)
{
    if (!recorded)
        return 0;
    spoilt = true;
    return err_set(e, ERR_DEVICE, "%s while work is recorded", what);
}

static int simt_alloc(struct device *, void **p, size_t bytes, struct err *e)
{
    *p = NULL;
    TRY(not_recorded("memory asked for", e));
    *p = simt_memory_new(bytes);
    return *p ? 0 : err_set(e, ERR_NOMEM, "no %zu bytes of memory", bytes);
}

static int simt_alloc_host(struct device *, void **p, size_t bytes, struct err *e)
{
    *p = NULL;
    TRY(not_recorded("memory asked for", e));
    *p = simt_pinned_new(bytes);
    return *p ? 0 : err_set(e, ERR_NOMEM, "no %zu bytes of pinned memory", bytes);
}

// Streams are threads (tests/streams.h).  Without SIMT_LATE ops and copies are the calling thread's: what is in their stream
// goes first.
static struct test_stream *late; // the device's own stream; NULL: there is none
static struct device *opened;    // last; each thread works for the one that it opened or bound last, else for this
static thread_local struct device *bound;
static int open_devices;

static struct test_stream *stream_of(const struct device *dev)
{
    return dev->stream ? (struct test_stream *)dev->stream : late;
}

static void run_work(void *arg)
{
    static std::mutex one; // kernels share a machine
    std::function<void()> *work = (std::function<void()> *)arg;

    one.lock();
    (*work)();
    one.unlock();
    delete work;
}

static void queue_work(std::function<void()> work)
{
    struct test_stream *s = stream_of(bound ? bound : opened);

    s->push(s, run_work, new std::function<void()>(work));
}

struct device_event {
    bool timed;
    struct timespec at;
    struct test_event *mark = test_event_new();
};

// The calling thread goes on when all in the stream is done.
static void wait_for(struct test_stream *s)
{
    struct test_event *ev;

    if (!s)
        return;
    ev = test_event_new();
    test_event_record(ev, s);
    test_event_after(ev, NULL);
    test_event_free(ev);
}

// Memory may go when the device has done what it is for.
static void quiet(struct device *dev, const void *p)
{
    struct err none;

    not_recorded("memory freed", &none);
    if (p)
        wait_for(stream_of(dev));
}

static void simt_free(struct device *dev, void *p)
{
    quiet(dev, p);
    simt_memory_free(p);
}

static void simt_free_host(struct device *dev, void *p)
{
    quiet(dev, p);
    simt_pinned_free(p);
}

static int simt_copy(struct device *dev, void *dst, const void *src, size_t bytes, enum copy_way way, struct err *)
{
    if (!late)
        wait_for(stream_of(dev));
    if (!bytes)
        return 0;
    const char *there = "a copy to the device", *here = "a copy from the device";
    void *to = way == COPY_GET ? simt_place_host(dst, "a copy to the host") : simt_place(dst, bytes, there);
    void *from = way == COPY_PUT ? simt_place_host(src, "a copy from the host") : simt_place(src, bytes, here);
    simt::in_stream([=] { memcpy(to, from, bytes); });
    return 0;
}

static int simt_copy_rows(struct device *, void *dst, size_t dst_row, const void *src, size_t src_row, size_t bytes, size_t rows,
                          struct err *)
{
    if (!bytes || !rows)
        return 0;
    char *to = (char *)simt_place(dst, (rows - 1) * dst_row + bytes, "a copy of rows to the device");
    const char *from = (const char *)simt_place(src, (rows - 1) * src_row + bytes, "a copy of rows from the device");
    simt::in_stream([=] {
        for (size_t i = 0; i < rows; i++)
            memcpy(to + i * dst_row, from + i * src_row, bytes);
    });
    return 0;
}

static int simt_zero(struct device *dev, void *dst, size_t bytes, struct err *e)
{
    return cuda_fill(dev, dst, 0, bytes, e);
}

static int simt_event_new(struct device *, struct device_event **ev, bool timed, struct err *)
{
    *ev = new device_event;
    (*ev)->timed = timed;
    return 0;
}

static void simt_event_free(struct device *, struct device_event *ev)
{
    test_event_free(ev->mark);
    delete ev;
}

static int simt_event_record(struct device *dev, struct device_event *ev, struct err *e)
{
    TRY(not_recorded("an event", e));
    clock_gettime(CLOCK_MONOTONIC, &ev->at);
    test_event_record(ev->mark, stream_of(dev));
    return 0;
}

static int simt_event_wait(struct device *dev, struct device_event *ev, struct err *e)
{
    TRY(not_recorded("waiting for an event", e));
    test_event_after(ev->mark, stream_of(dev));
    return 0;
}

static int simt_event_query(struct device *, struct device_event *ev, bool *come, struct err *)
{
    *come = test_event_query(ev->mark);
    return 0;
}

static int simt_sync(struct device *dev, struct err *e)
{
    TRY(not_recorded("waiting", e));
    wait_for(stream_of(dev));
    return 0;
}

static int simt_stream_new(struct device *, struct device_stream **s, struct err *)
{
    struct test_stream *made = test_stream_new();

    made->place = simt_place;
    *s = (struct device_stream *)made;
    return 0;
}

static void simt_stream_free(struct device *, struct device_stream *s)
{
    test_stream_free((struct test_stream *)s);
}

static void record_work(std::function<void()> work) { recorded->work.push_back(work); }

static int simt_capture_begin(struct device *, struct err *e)
{
    TRY(not_recorded("recording", e));
    recorded = new device_graph;
    spoilt = false;
    queue_before = simt::queue;
    simt::queue = record_work;
    simt::recording = true;
    return 0;
}

static int simt_capture_end(struct device *, struct device_graph **g, struct err *e)
{
    struct device_graph *it = recorded;

    recorded = NULL;
    simt::queue = queue_before;
    simt::recording = false;
    if (spoilt || !g) {
        delete it;
        return spoilt ? err_set(e, ERR_DEVICE, "what was recorded cannot be") : 0;
    }
    simt::recordings++;
    *g = it;
    return 0;
}

static int simt_graph_launch(struct device *dev, struct device_graph *g, struct err *e)
{
    TRY(not_recorded("a graph", e));
    if (!late)
        wait_for(stream_of(dev));
    launched++;
    simt::in_stream([=] {
        for (auto &work : g->work)
            work();
    });
    return 0;
}

static void simt_graph_free(struct device *dev, struct device_graph *g)
{
    wait_for(stream_of(dev));
    simt::recordings--;
    delete g;
}

// For tests: how often something was queued since the program began, and how often that was a graph.
extern "C" __attribute__((visibility("default"))) long simt_queued(long *graphs)
{
    *graphs = launched;
    return simt::queued;
}

static int simt_bind(struct device *dev, struct err *)
{
    bound = dev;
    return 0;
}

static int simt_event_seconds(struct device *, struct device_event *from, struct device_event *to, double *seconds,
                              struct err *e)
{
    if (!from->timed || !to->timed)
        return err_set(e, ERR_DEVICE, "an event without a time");
    test_event_after(to->mark, NULL);
    *seconds = (double)(to->at.tv_sec - from->at.tv_sec) + 1e-9 * (double)(to->at.tv_nsec - from->at.tv_nsec);
    return 0;
}

static void simt_close(struct device *dev)
{
    bound = bound == dev ? NULL : bound;
    opened = opened == dev ? NULL : opened;
    if (--open_devices)
        return;
    if (getenv("SIMT_GRAPHS"))
        fprintf(stderr, "simt: %ld graphs\n", launched);
    simt_forget();
    test_stream_free(late);
    late = NULL;
    simt::queue = NULL;
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

extern "C" int simt_open(struct device **dev, int, struct err *e)
{
    static struct device_calls calls;

    calls.close = simt_close;
    calls.alloc = simt_alloc;
    calls.alloc_host = simt_alloc_host;
    calls.free = simt_free;
    calls.free_host = simt_free_host;
    calls.copy = simt_copy;
    calls.copy_rows = simt_copy_rows;
    calls.zero = simt_zero;
    calls.sync = simt_sync;
    calls.overhead = simt_overhead;
    calls.event_new = simt_event_new;
    calls.event_wait = simt_event_wait;
    calls.event_query = simt_event_query;
    calls.bind = simt_bind;
    calls.capture_begin = simt_capture_begin;
    calls.capture_end = simt_capture_end;
    calls.graph_launch = simt_graph_launch;
    calls.graph_free = simt_graph_free;
    calls.stream_new = simt_stream_new;
    calls.stream_free = simt_stream_free;
    calls.event_free = simt_event_free;
    calls.event_record = simt_event_record;
    calls.event_seconds = simt_event_seconds;
    *dev = (struct device *)calloc(1, sizeof **dev);
    if (!*dev)
        return err_set(e, ERR_NOMEM, "out of memory");
    opened = bound = *dev;
    open_devices++;
    if (getenv("SIMT_LATE") && !late) {
        late = test_stream_new();
        simt::queue = queue_work;
    }
    (*dev)->kind = DEVICE_CUDA;
    if (getenv("SIMT_ROOM")) {
        (*dev)->room = strtoull(getenv("SIMT_ROOM"), NULL, 10);
        (*dev)->card = getenv("SIMT_CARDS") && getenv("LOCAL_RANK") ? 1 + atoi(getenv("LOCAL_RANK")) : 1; /* each has its own */
    }
    (*dev)->calls = &calls;
    (*dev)->dedup = &simt_dedup_ops;
    (*dev)->ops = &simt_ops;
    (*dev)->fast_bf16 = (*dev)->fast_fp8 = (*dev)->fast_blocks = true;
    (*dev)->peak[0] = (*dev)->peak[1] = 1e9; /* not to be measured */
    snprintf((*dev)->name, sizeof (*dev)->name, "cuda: by tests/simt.h");
    return 0;
}

extern "C" void simt_libraries(size_t *cublaslt, size_t *cudnn)
{
    *cublaslt = cuda_lt() ? cuda_lt()->version() : 0;
    *cudnn = cuda_dnn() ? cuda_dnn()->version() : 0;
}

extern "C" __attribute__((visibility("default"))) const struct cuda_backend quern_cuda_backend = {
    CUDA_BACKEND_ABI, simt_info, simt_open, simt_libraries,
};
