#include "train/exchange.h"

#include <stdlib.h>

/* ---- the device, as NCCL is to know it ---- */

static void *own_stream(void *dev)
{
    return ((struct device *)dev)->stream;
}

static int bind_device(void *dev, struct err *e)
{
    return device_bind(dev, e);
}

static int stream_new(void *dev, void **s, struct err *e)
{
    struct device_stream *made = NULL;
    int rc = device_stream_new(dev, &made, e);

    *s = made;
    return rc;
}

static void stream_free(void *dev, void *s)
{
    device_stream_free(dev, s);
}

static int event_new(void *dev, void **ev, struct err *e)
{
    struct device_event *made = NULL;
    int rc = device_event_new(dev, &made, e);

    *ev = made;
    return rc;
}

static void event_free(void *dev, void *ev)
{
    device_event_free(dev, ev);
}

static int event_query(void *dev, void *ev, bool *come, struct err *e)
{
    return device_event_query(dev, ev, come, e);
}

/* Makes stream the device's; returns the one that was. */
static struct device_stream *into(struct device *dev, void *stream)
{
    struct device_stream *was = dev->stream;

    dev->stream = stream;
    return was;
}

static int record(void *dev, void *ev, void *stream, struct err *e)
{
    struct device_stream *was = into(dev, stream);
    int rc = device_event_record(dev, ev, e);

    into(dev, was);
    return rc;
}

static int after(void *dev, void *ev, void *stream, struct err *e)
{
    struct device_stream *was = into(dev, stream);
    int rc = device_event_wait(dev, ev, e);

    into(dev, was);
    return rc;
}

static int copy(void *dev, void *to, const void *from, size_t bytes, void *stream, struct err *e)
{
    struct device_stream *was = into(dev, stream);
    int rc = device_copy(dev, to, from, bytes, e);

    into(dev, was);
    return rc;
}

int exchange_use(struct device *dev, struct comm *world, struct err *e)
{
    const struct comm_device d = {
        .device = dev, .host = dev->kind == DEVICE_CPU, .bind = bind_device, .stream = own_stream, .stream_new = stream_new,
        .stream_free = stream_free, .event_new = event_new, .event_free = event_free, .record = record, .after = after,
        .query = event_query, .copy = copy,
    };

    return world->can_use_device ? comm_use_device(world, &d, e) : 0;
}

/* ---- pinned memory ---- */

/* A block that is kept for the run.  queued: a copy from it may be under way until the event comes. */
struct exchange_staging {
    struct exchange_staging *next;
    void *p;
    size_t bytes;
    struct device_event *read;
    bool queued;
};

size_t exchange_kept_bytes(const struct device *dev)
{
    size_t n = 0;

    for (const struct exchange_staging *s = dev->kept; s; s = s->next)
        n += s->bytes;
    return n;
}

static void free_staging(struct device *dev)
{
    struct exchange_staging *s = dev->kept, *next;

    for (; s; s = next) {
        next = s->next;
        device_event_free(dev, s->read);
        device_free_host(dev, s->p);
        free(s);
    }
    dev->kept = NULL;
}

static int new_staging(struct device *dev, struct exchange_staging **out, size_t bytes, struct err *e)
{
    struct exchange_staging *s = calloc(1, sizeof *s);
    int rc = s ? device_event_new(dev, &s->read, e) : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0)
        rc = device_alloc_host(dev, &s->p, bytes, e);
    if (rc < 0) {
        if (s)
            device_event_free(dev, s->read);
        free(s);
        return rc;
    }
    s->bytes = bytes;
    *out = s;
    return 0;
}

/* The smallest free block that is large enough and not more than twice that. */
static int take(struct device *dev, struct exchange_staging **out, size_t bytes, struct err *e)
{
    struct exchange_staging **best = NULL, **at = (struct exchange_staging **)(void *)&dev->kept;

    dev->kept_free = free_staging;
    for (; *at; at = &(*at)->next) {
        struct exchange_staging *s = *at;

        if (s->bytes < bytes || s->bytes / 2 > bytes || (best && (*best)->bytes <= s->bytes))
            continue;
        if (s->queued) {
            bool come;
            TRY(device_event_query(dev, s->read, &come, e));
            s->queued = !come;
        }
        if (!s->queued)
            best = at;
    }
    if (!best)
        return new_staging(dev, out, bytes, e);
    *out = *best;
    *best = (*best)->next;
    return 0;
}

static void give(struct device *dev, struct exchange_staging *s)
{
    if (!s)
        return;
    s->next = dev->kept;
    dev->kept = s;
}

/* ---- exchanges ---- */

/* Elements that this rank sends and receives in call. */
static void lengths(const struct comm *c, const struct comm_call *call, size_t *send, size_t *recv)
{
    size_t n = call->n, all = n * (size_t)c->size;

    *send = call->kind == COMM_REDUCE_SCATTER || call->kind == COMM_ALL_TO_ALL ? all : n;
    *recv = call->kind == COMM_ALL_GATHER || call->kind == COMM_ALL_TO_ALL ? all : n;
    if (call->kind == COMM_SEND || (call->kind == COMM_BROADCAST && c->rank == call->peer))
        *recv = 0;
    if (call->kind == COMM_RECV || (call->kind == COMM_BROADCAST && c->rank != call->peer))
        *send = 0;
    if (call->kind == COMM_ALL_TO_ALL_V) {
        *send = *recv = 0;
        for (int r = 0; r < c->size; r++) {
            *send += call->send_counts[r];
            *recv += call->recv_counts[r];
        }
    }
}

static void release(struct exchange_call *x)
{
    if (x->dev) {
        give(x->dev, x->from);
        give(x->dev, x->in);
    }
    *x = (struct exchange_call){0};
}

/* Sets host's buffers to copies in the host's memory. */
static int stage(struct exchange_call *x, struct comm *c, struct comm_call *host, struct err *e)
{
    size_t w = comm_type_size(host->type), send, recv;

    lengths(c, host, &send, &recv);
    x->bytes = recv * w;
    if (send)
        TRY(take(x->dev, &x->from, send * w, e));
    if (recv)
        TRY(take(x->dev, &x->in, recv * w, e));
    if (send)
        TRY(device_get(x->dev, x->from->p, host->send, send * w, e));
    host->send = x->from ? x->from->p : NULL;
    host->recv = x->in ? x->in->p : host->kind == COMM_BROADCAST && x->from ? x->from->p : NULL;
    return 0;
}

int exchange_start(struct exchange_call *x, struct device *dev, struct comm *c, const struct comm_call *call, struct err *e)
{
    struct comm_call how = *call;
    int rc = 0;

    *x = (struct exchange_call){.dev = dev, .to = call->recv, .running = true};
    how.on_device = comm_takes_device(c);
    if (!how.on_device)
        rc = device_sync(dev, e);
    if (rc == 0 && !how.on_device && dev->kind != DEVICE_CPU)
        rc = stage(x, c, &how, e);
    if (rc == 0)
        rc = comm_start(c, &how, &x->handle, e);
    if (rc < 0)
        release(x);
    return rc;
}

int exchange_poke(struct exchange_call *x, struct err *e)
{
    return x->running && !x->arrived ? comm_test(&x->handle, &x->arrived, e) : 0;
}

/* What has come in goes to the device, whose next work is behind it. */
static int unstage(struct exchange_call *x, struct err *e)
{
    if (!x->in || !x->bytes)
        return 0;
    TRY(device_put_later(x->dev, x->to, x->in->p, x->bytes, e));
    x->in->queued = true;
    return device_event_record(x->dev, x->in->read, e);
}

int exchange_wait(struct exchange_call *x, struct err *e)
{
    int rc = x->running && !x->arrived ? comm_join(&x->handle, e) : 0;

    if (rc == 0)
        rc = unstage(x, e);
    release(x);
    return rc;
}

int exchange(struct device *dev, struct comm *c, const struct comm_call *call, struct err *e)
{
    struct exchange_call x;

    TRY(exchange_start(&x, dev, c, call, e));
    return exchange_wait(&x, e);
}

int exchange_sum(struct device *dev, struct comm *c, void *buf, size_t n, enum comm_type type, struct err *e)
{
    struct comm_call call = {.kind = COMM_ALL_REDUCE, .send = buf, .recv = buf, .n = n, .type = type, .op = COMM_SUM};

    return exchange(dev, c, &call, e);
}
