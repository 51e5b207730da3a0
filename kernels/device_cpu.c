/* The CPU as a device: memory is memory, a stream is the calling thread. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/isa.h"
#include "base/mem.h"
#include "kernels/cpu.h"
#include "kernels/device_calls.h"

static const struct dedup_ops dedup_ops_cpu = {
    .minhash_sign = minhash_sign_cpu,
    .band_keys = band_keys_cpu,
};

static void cpu_close(struct device *dev)
{
    if (dev->impl->plans_free)
        dev->impl->plans_free(dev->impl->plans);
    free(dev->impl->scratch);
    free(dev->impl->decoded);
    free(dev->impl);
}

/* Large blocks are page-aligned and may use huge pages: fewer TLB misses. */
static void *alloc_bytes(size_t bytes)
{
    size_t align = bytes >= (size_t)1 << 21 ? (size_t)1 << 21 : 64;
    void *p;

    if (align == 64)
        return mem_aligned(bytes ? bytes : 1);
    if (bytes > SIZE_MAX - align || posix_memalign(&p, align, bytes) != 0)
        return NULL;
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

static int cpu_alloc(struct device *dev, void **p, size_t bytes, struct err *e)
{
    (void)dev;
    *p = alloc_bytes(bytes);
    return *p ? 0 : err_set(e, ERR_NOMEM, "no %zu bytes of memory", bytes);
}

static void cpu_free(struct device *dev, void *p)
{
    (void)dev;
    free(p);
}

static int cpu_copy(struct device *dev, void *dst, const void *src, size_t bytes, enum copy_way way,
                    struct err *e)
{
    (void)way, (void)e;
#pragma omp parallel num_threads(cpu_team(dev, (int64_t)bytes / 16))
    {
        int64_t lo, hi;

        cpu_share((int64_t)bytes, 4096, &lo, &hi);
        if (lo < hi)
            memcpy((char *)dst + lo, (const char *)src + lo, (size_t)(hi - lo));
    }
    return 0;
}

static int cpu_copy_rows(struct device *dev, void *dst, size_t dst_row, const void *src, size_t src_row, size_t bytes,
                         size_t rows, struct err *e)
{
    (void)e;
#pragma omp parallel for num_threads(cpu_team(dev, (int64_t)(bytes * rows) / 16))
    for (size_t i = 0; i < rows; i++)
        memcpy((char *)dst + i * dst_row, (const char *)src + i * src_row, bytes);
    return 0;
}

static int cpu_zero(struct device *dev, void *dst, size_t bytes, struct err *e)
{
    (void)e;
#pragma omp parallel num_threads(cpu_team(dev, (int64_t)bytes / 16))
    {
        int64_t lo, hi;

        cpu_share((int64_t)bytes, 4096, &lo, &hi);
        if (lo < hi)
            memset((char *)dst + lo, 0, (size_t)(hi - lo));
    }
    return 0;
}

static int cpu_sync(struct device *dev, struct err *e)
{
    (void)dev, (void)e;
    return 0;
}

/* ---- streams and events ---- */

struct device_event {
    bool timed;
    struct timespec at;
};

static int cpu_stream_new(struct device *dev, struct device_stream **s, struct err *e)
{
    (void)dev, (void)e;
    *s = NULL; /* the default one */
    return 0;
}

static void cpu_stream_free(struct device *dev, struct device_stream *s)
{
    (void)dev, (void)s;
}

static int cpu_event_new(struct device *dev, struct device_event **ev, bool timed, struct err *e)
{
    (void)dev;
    *ev = calloc(1, sizeof **ev);
    if (!*ev)
        return err_set(e, ERR_NOMEM, "out of memory");
    (*ev)->timed = timed;
    return 0;
}

static void cpu_event_free(struct device *dev, struct device_event *ev)
{
    (void)dev;
    free(ev);
}

static int cpu_event_record(struct device *dev, struct device_event *ev, struct err *e)
{
    (void)dev, (void)e;
    clock_gettime(CLOCK_MONOTONIC, &ev->at);
    return 0;
}

static int cpu_event_wait(struct device *dev, struct device_event *ev, struct err *e)
{
    (void)dev, (void)ev, (void)e;
    return 0;
}

static int cpu_event_seconds(struct device *dev, struct device_event *from, struct device_event *to,
                             double *seconds, struct err *e)
{
    (void)dev;
    if (!from->timed || !to->timed)
        return err_set(e, ERR_DEVICE, "an event without a time");
    *seconds = (double)(to->at.tv_sec - from->at.tv_sec) + 1e-9 * (double)(to->at.tv_nsec - from->at.tv_nsec);
    return 0;
}

static int cpu_event_query(struct device *dev, struct device_event *ev, bool *come, struct err *e)
{
    (void)dev, (void)ev, (void)e;
    *come = true;
    return 0;
}

static int cpu_bind(struct device *dev, struct err *e)
{
    (void)dev, (void)e;
    return 0;
}

static const struct device_calls cpu_calls = {
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .alloc_host = cpu_alloc,
    .free_host = cpu_free,
    .copy = cpu_copy,
    .copy_rows = cpu_copy_rows,
    .zero = cpu_zero,
    .sync = cpu_sync,
    .stream_new = cpu_stream_new,
    .stream_free = cpu_stream_free,
    .event_new = cpu_event_new,
    .event_free = cpu_event_free,
    .event_record = cpu_event_record,
    .event_wait = cpu_event_wait,
    .event_seconds = cpu_event_seconds,
    .event_query = cpu_event_query,
    .bind = cpu_bind,
};

int device_open_cpu(struct device **out, int threads, struct err *e)
{
    struct device *dev;

    *out = NULL;
    if (threads < 0 || threads > 4096)
        return err_set(e, ERR_ARG, "%d threads cannot be", threads);
    dev = calloc(1, sizeof *dev);
    if (dev)
        dev->impl = calloc(1, sizeof *dev->impl);
    if (!dev || !dev->impl) {
        free(dev);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    if (threads > 0)
        omp_set_num_threads(threads);
    dev->kind = DEVICE_CPU;
    dev->threads = dev->team = omp_get_max_threads();
    dev->calls = &cpu_calls;
    dev->dedup = &dedup_ops_cpu;
    snprintf(dev->name, sizeof dev->name, "cpu: %s, %d thread%s", isa_name(isa_best()), dev->threads,
             dev->threads == 1 ? "" : "s");
    *out = dev;
    return 0;
}

/* ---- for the ops ---- */

static int grow(void **p, size_t *have, size_t bytes, struct err *e)
{
    if (bytes > *have) {
        void *bigger = alloc_bytes(bytes);

        if (!bigger)
            return err_set(e, ERR_NOMEM, "no %zu bytes of scratch memory", bytes);
        free(*p);
        *p = bigger;
        *have = bytes;
    }
    return 0;
}

int cpu_scratch(struct device *dev, void **p, size_t bytes, struct err *e)
{
    TRY(grow(&dev->impl->scratch, &dev->impl->scratch_bytes, bytes, e));
    *p = dev->impl->scratch;
    return 0;
}

int cpu_decoded(struct device *dev, void **p, size_t bytes, struct err *e)
{
    TRY(grow(&dev->impl->decoded, &dev->impl->decoded_bytes, bytes, e));
    *p = dev->impl->decoded;
    return 0;
}

void cpu_share(int64_t n, int64_t unit, int64_t *lo, int64_t *hi)
{
    int64_t units = (n + unit - 1) / unit, nt = omp_get_num_threads(), me = omp_get_thread_num();

    *lo = units * me / nt * unit;
    *hi = units * (me + 1) / nt * unit;
    if (*hi > n)
        *hi = n;
}
