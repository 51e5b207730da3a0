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

static int staged(struct device *dev, struct comm *c, const struct comm_call *call, struct err *e)
{
    size_t w = comm_type_size(call->type), send, recv;
    struct comm_call host = *call;
    void *from = NULL, *to = NULL;
    int rc = 0;

    lengths(c, call, &send, &recv);
    if (send)
        rc = device_alloc_host(dev, &from, send * w, e);
    if (rc == 0 && recv)
        rc = device_alloc_host(dev, &to, recv * w, e);
    if (rc == 0 && send)
        rc = device_get(dev, from, call->send, send * w, e);
    host.send = from;
    host.recv = to;
    if (call->kind == COMM_BROADCAST)
        host.recv = to ? to : from;
    if (rc == 0)
        rc = comm_run(c, &host, e);
    if (rc == 0 && recv)
        rc = device_put(dev, call->recv, to, recv * w, e);
    device_free_host(dev, from);
    device_free_host(dev, to);
    return rc;
}

int exchange(struct device *dev, struct comm *c, const struct comm_call *call, struct err *e)
{
    TRY(device_sync(dev, e));
    return dev->kind == DEVICE_CPU ? comm_run(c, call, e) : staged(dev, c, call, e);
}

int exchange_sum(struct device *dev, struct comm *c, void *buf, size_t n, enum comm_type type, struct err *e)
{
    struct comm_call call = {.kind = COMM_ALL_REDUCE, .send = buf, .recv = buf, .n = n, .type = type, .op = COMM_SUM};

    return exchange(dev, c, &call, e);
}
