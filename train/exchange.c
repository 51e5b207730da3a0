#include "train/exchange.h"

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
    if (x->dev && x->dev->kind != DEVICE_CPU) {
        device_free_host(x->dev, x->from);
        device_free_host(x->dev, x->in);
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
        TRY(device_alloc_host(x->dev, &x->from, send * w, e));
    if (recv)
        TRY(device_alloc_host(x->dev, &x->in, recv * w, e));
    if (send)
        TRY(device_get(x->dev, x->from, host->send, send * w, e));
    host->send = x->from;
    host->recv = x->in || host->kind != COMM_BROADCAST ? x->in : x->from;
    return 0;
}

int exchange_start(struct exchange_call *x, struct device *dev, struct comm *c, const struct comm_call *call, struct err *e)
{
    struct comm_call host = *call;
    int rc = device_sync(dev, e);

    *x = (struct exchange_call){.dev = dev, .to = call->recv, .running = true};
    if (rc == 0 && dev->kind != DEVICE_CPU)
        rc = stage(x, c, &host, e);
    if (rc == 0)
        rc = comm_start(c, &host, &x->handle, e);
    if (rc < 0)
        release(x);
    return rc;
}

int exchange_poke(struct exchange_call *x, struct err *e)
{
    return x->running && !x->arrived ? comm_test(&x->handle, &x->arrived, e) : 0;
}

int exchange_wait(struct exchange_call *x, struct err *e)
{
    int rc = x->running && !x->arrived ? comm_wait(&x->handle, e) : 0;

    if (rc == 0 && x->in)
        rc = device_put(x->dev, x->to, x->in, x->bytes, e);
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
