#include "curate/dedup/dedup_device.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/laps.h"
#include "base/log.h"

enum state { OPENING, THERE, NONE };

struct dedup_gpu {
    bool must; /* else the CPU does as well */
    pthread_t thread;
    bool joined;
    enum state state;
    struct device *first; /* keeps the GPU open */
    struct err why;
    uint64_t opening;
    pthread_mutex_t lock; /* opening is for one thread at a time */
};

static void *open_first(void *arg)
{
    struct dedup_gpu *g = arg;
    uint64_t t = laps_now();
    int rc = device_open_dedup(&g->first, "cuda", 1, NULL, &g->why);

    if (rc < 0 && !g->must)
        log_msg(LOG_INFO, "on the CPU: %s", g->why.msg);
    g->opening = laps_now() - t;
    __atomic_store_n(&g->state, rc < 0 ? NONE : THERE, __ATOMIC_RELEASE);
    return NULL;
}

int dedup_gpu_open(struct dedup_gpu **out, int which, struct err *e)
{
    struct dedup_gpu *g;

    *out = NULL;
    if (which == DEDUP_CPU)
        return 0;
    g = calloc(1, sizeof *g);
    if (!g)
        return err_set(e, ERR_NOMEM, "out of memory");
    g->must = which == DEDUP_CUDA;
    pthread_mutex_init(&g->lock, NULL);
    errno = pthread_create(&g->thread, NULL, open_first, g);
    if (errno) {
        free(g);
        return err_sys(e, ERR_NOMEM, "cannot start a thread");
    }
    *out = g;
    return 0;
}

/* The thread has ended. */
static void join(struct dedup_gpu *g)
{
    pthread_mutex_lock(&g->lock);
    if (!g->joined)
        pthread_join(g->thread, NULL);
    g->joined = true;
    pthread_mutex_unlock(&g->lock);
}

void dedup_gpu_close(struct dedup_gpu *g)
{
    if (!g)
        return;
    join(g);
    device_close(g->first);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

int dedup_gpu_settle(struct dedup_gpu *g, struct err *e)
{
    join(g);
    return g->state == NONE && g->must ? err_set(e, g->why.code, "%s", g->why.msg) : 0;
}

static int open_one(struct device **dev, struct err *e)
{
    struct device *d;
    int rc;

    TRY(device_open_dedup(&d, "cuda", 1, NULL, e));
    rc = device_stream_new(d, &d->stream, e);
    if (rc < 0)
        device_close(d);
    else
        *dev = d;
    return rc;
}

int dedup_gpu_device(struct dedup_gpu *g, struct device **dev, struct err *e)
{
    enum state state = __atomic_load_n(&g->state, __ATOMIC_ACQUIRE);
    bool wait = getenv("QUERN_GPU_WAIT") != NULL;
    int rc;

    *dev = NULL;
    if (state == NONE || (state == OPENING && wait))
        TRY(dedup_gpu_settle(g, e));
    if (__atomic_load_n(&g->state, __ATOMIC_ACQUIRE) != THERE)
        return 0;
    if (wait)
        pthread_mutex_lock(&g->lock);
    else if (pthread_mutex_trylock(&g->lock) != 0)
        return 0;
    rc = open_one(dev, e);
    pthread_mutex_unlock(&g->lock);
    return rc;
}

void dedup_gpu_device_close(struct device *dev)
{
    struct device_stream *s = dev ? dev->stream : NULL;

    if (!dev)
        return;
    dev->stream = NULL;
    device_stream_free(dev, s);
    device_close(dev);
}

uint64_t dedup_gpu_opening(const struct dedup_gpu *g)
{
    return __atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == OPENING ? 0 : g->opening;
}
