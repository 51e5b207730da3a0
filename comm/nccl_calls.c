#include "comm/nccl_calls.h"

static int type_of(enum comm_type t)
{
    static const int types[] = {NCCL_UINT8, NCCL_INT32, NCCL_INT64, NCCL_FLOAT32, NCCL_FLOAT64, NCCL_BFLOAT16};

    return types[t];
}

static int op_of(enum comm_op op)
{
    static const int ops[] = {NCCL_SUM, NCCL_MAX, NCCL_MIN};

    return ops[op];
}

static int all_to_all(const struct nccl_group *g, const struct flight *f)
{
    const struct nccl_api *api = g->world->api;
    const struct comm_call *c = &f->handle.call;
    const char *from = c->send;
    char *to = c->recv;
    int rc = 0, size = g->comm->size, type = type_of(c->type);

    for (int r = 0; r < size && rc == 0; r++) {
        size_t out = f->counts ? f->counts[r] : c->n, in = f->counts ? f->counts[size + r] : c->n;

        if (out)
            rc = api->send(from, out, type, r, g->nccl, g->stream);
        if (in && rc == 0)
            rc = api->recv(to, in, type, r, g->nccl, g->stream);
        from += out * comm_type_size(c->type);
        to += in * comm_type_size(c->type);
    }
    return rc;
}

static int one(const struct nccl_group *g, const struct flight *f)
{
    const struct nccl_api *api = g->world->api;
    const struct comm_call *c = &f->handle.call;
    int type = type_of(c->type);

    switch (c->kind) {
    case COMM_ALL_REDUCE: return api->all_reduce(c->send, c->recv, c->n, type, op_of(c->op), g->nccl, g->stream);
    case COMM_REDUCE_SCATTER: return api->reduce_scatter(c->send, c->recv, c->n, type, op_of(c->op), g->nccl, g->stream);
    case COMM_ALL_GATHER: return api->all_gather(c->send, c->recv, c->n, type, g->nccl, g->stream);
    case COMM_BROADCAST: return api->broadcast(c->send, c->recv, c->n, type, c->peer, g->nccl, g->stream);
    case COMM_SEND: return api->send(c->send, c->n, type, c->peer, g->nccl, g->stream);
    case COMM_RECV: return api->recv(c->recv, c->n, type, c->peer, g->nccl, g->stream);
    default: return all_to_all(g, f);
    }
}

int nccl_enqueue(struct nccl_group *g, const struct flight *list)
{
    const struct nccl_api *api = g->world->api;
    int rc = api->group_start(), end;

    for (const struct flight *f = list; f && rc == 0; f = f->next)
        if (f->handle.call.n || f->counts)
            rc = one(g, f);
    end = api->group_end();
    return rc ? rc : end;
}

bool nccl_is_first(struct nccl_group *g, const struct flight *list)
{
    bool first = false;

    for (const struct flight *f = list; f; f = f->next) {
        const struct comm_call *c = &f->handle.call;
        bool sends = c->kind == COMM_SEND, message = sends || c->kind == COMM_RECV;
        unsigned char way = sends ? 1 : 2;

        first |= message ? !(g->peer[c->peer] & way) : !(g->met >> c->kind & 1);
        if (message)
            g->peer[c->peer] |= way;
        else
            g->met |= 1u << c->kind;
    }
    return first;
}
