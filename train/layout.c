#include "train/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int layout_data(const struct layout_sizes *s, int64_t ranks, int64_t *data, struct err *e)
{
    int64_t copy = s->tensor * s->context * s->pipe;

    char start[64] = "";

    if (ranks == 1)
        snprintf(start, sizeof start, "; mpirun -n %" PRId64 " starts so many", copy);
    if (ranks % copy)
        return err_set(e, ERR_ARG, "%" PRId64 " ranks are no multiple of %" PRId64 " (tensor) x %" PRId64 " (context) x %" PRId64
                       " (pipeline)%s", ranks, s->tensor, s->context, s->pipe, start);
    *data = ranks / copy;
    if (*data * s->context % s->expert)
        return err_set(e, ERR_ARG, "--expert-model-parallel-size: %" PRId64 " data-parallel x %" PRId64
                       " context-parallel ranks are no multiple of %" PRId64, *data, s->context, s->expert);
    return 0;
}

int layout_open(struct layout *l, struct comm *world, const struct layout_sizes *s, struct err *e)
{
    int nt = (int)s->tensor, nc = (int)s->context, np = (int)s->pipe, rank = world->rank;

    memset(l, 0, sizeof *l);
    l->world = world;
    TRY(layout_data(s, world->size, &l->data, e));
    int nd = (int)l->data, t = rank % nt, c = rank / nt % nc, d = rank / nt / nc % nd, p = rank / nt / nc / nd;
    int copy = c + nc * d; /* which copy of the model */
    int nx = (int)s->expert, x = copy % nx;
    const struct {
        struct comm **to;
        const char *name;
        int colour;
    } groups[] = {
        {&l->tensor, "tensor", rank / nt},
        {&l->context, "context", t + nt * (d + nd * p)},
        {&l->batch, "data", t + nt * (c + nc * p)},
        {&l->pipe, "pipeline", t + nt * copy},
        {&l->replicas, "replicas", t + nt * p},
        {&l->model, "model", copy},
        {&l->expert, "expert", t + nt * (copy / nx + nc * nd / nx * p)},
        {&l->expert_replicas, "expert replicas", t + nt * (x + nx * p)},
        {&l->expert_model, "expert model", copy / nx},
        {&l->tied, "tied embedding", np > 1 && (p == 0 || p == np - 1) ? t + nt * copy : -1},
    };

    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        TRY(comm_split(world, groups[i].colour, groups[i].to == &l->replicas ? d + nd * c : rank, groups[i].name,
                       groups[i].to, e));
    return 0;
}

int layout_rank(const struct layout *l, bool experts, int tensor, int replica)
{
    int nt = l->tensor->size, nc = l->context->size, nd = (int)l->data;
    int copy = experts ? l->expert->rank + l->expert->size * replica : replica / nd + nc * (replica % nd);

    return tensor + nt * (copy + nc * nd * l->pipe->rank);
}

void layout_close(struct layout *l)
{
    struct comm **groups[] = {&l->expert_model, &l->expert_replicas, &l->expert, &l->tied, &l->model, &l->replicas,
                              &l->pipe, &l->batch, &l->context, &l->tensor};

    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        comm_close(*groups[i]);
        *groups[i] = NULL;
    }
}
