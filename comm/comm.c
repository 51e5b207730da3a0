#include "comm/comm.h"

#include <string.h>

size_t comm_type_size(enum comm_type t)
{
    static const size_t size[] = {1, 4, 8, 4, 8, 2};

    return size[t];
}

const char *comm_kind_name(enum comm_kind k)
{
    static const char *const name[] = {"all-reduce", "reduce-scatter", "all-gather", "broadcast",
                                       "all-to-all", "send",           "receive"};

    return name[k];
}

int comm_start(struct comm *c, const struct comm_call *call, struct comm_handle *h, struct err *e)
{
    memset(h, 0, sizeof *h);
    if (call->kind == COMM_BROADCAST || call->kind == COMM_SEND || call->kind == COMM_RECV) {
        if (call->peer < 0 || call->peer >= c->size)
            return err_set(e, ERR_ARG, "%s: rank %d is outside the group of %d",
                           comm_kind_name(call->kind), call->peer, c->size);
        if (call->kind != COMM_BROADCAST && call->peer == c->rank)
            return err_set(e, ERR_ARG, "%s: rank %d cannot be its own peer",
                           comm_kind_name(call->kind), c->rank);
    }
    h->comm = c;
    h->call = *call;
    return c->backend->start(c, call, h, e);
}

int comm_wait(struct comm_handle *h, struct err *e)
{
    struct comm *c = h->comm;

    h->comm = NULL;
    return c ? c->backend->wait(h, e) : 0;
}

void comm_close(struct comm *c)
{
    if (c)
        c->backend->free(c);
}

int comm_all_reduce(struct comm *c, void *buf, size_t n, enum comm_type type, enum comm_op op,
                    struct err *e)
{
    struct comm_call call = {COMM_ALL_REDUCE, buf, buf, n, type, op, 0};
    struct comm_handle h;

    TRY(comm_start(c, &call, &h, e));
    return comm_wait(&h, e);
}
