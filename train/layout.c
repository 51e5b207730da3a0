#include "train/layout.h"

#include <inttypes.h>
#include <string.h>

static struct layout_sizes whole(const struct layout_sizes *s)
{
    struct layout_sizes w = *s;
    int64_t *each[] = {&w.tensor, &w.context, &w.expert, &w.pipe, &w.chunks};

    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        if (!*each[i])
            *each[i] = 1;
    return w;
}

int layout_data(const struct layout_sizes *sizes, int64_t ranks, int64_t *data, struct err *e)
{
    struct layout_sizes s = whole(sizes);
    int64_t copy = s.tensor * s.context * s.pipe;

    if (ranks % copy)
        return err_set(e, ERR_ARG, "%" PRId64 " ranks are no multiple of %" PRId64 " (tensor) x %" PRId64 " (context) x %" PRId64
                       " (pipeline)", ranks, s.tensor, s.context, s.pipe);
    *data = ranks / copy;
    if (*data * s.context % s.expert)
        return err_set(e, ERR_ARG, "--expert-model-parallel-size: %" PRId64 " does not divide the %" PRId64
                       " data- and context-parallel ranks", s.expert, *data * s.context);
    if (s.chunks > 1 && s.pipe == 1)
        return err_set(e, ERR_ARG, "--num-layers-per-virtual-pipeline-stage needs --pipeline-model-parallel-size");
    return 0;
}

int layout_open(struct layout *l, struct comm *world, const struct layout_sizes *sizes, struct err *e)
{
    struct layout_sizes s = whole(sizes);
    int nt = (int)s.tensor, nc = (int)s.context, ne = (int)s.expert, np = (int)s.pipe, rank = world->rank;

    memset(l, 0, sizeof *l);
    l->sizes = s;
    l->world = world;
    TRY(layout_data(&s, world->size, &l->data, e));
    int nd = (int)l->data, t = rank % nt, c = rank / nt % nc, d = rank / nt / nc % nd, p = rank / nt / nc / nd;
    int copy = c + nc * d; /* which copy of the model */
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
        {&l->experts, "experts", t + nt * (copy / ne + nc * nd * p)},
        {&l->expert_replicas, "expert replicas", t + nt * (copy % ne + ne * p)},
        {&l->tied, "tied embedding", np > 1 && (p == 0 || p == np - 1) ? t + nt * copy : -1},
    };

    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        TRY(comm_split(world, groups[i].colour, groups[i].to == &l->replicas ? d + nd * c : rank, groups[i].name,
                       groups[i].to, e));
    return 0;
}

void layout_close(struct layout *l)
{
    struct comm **groups[] = {&l->tied, &l->expert_replicas, &l->experts, &l->model, &l->replicas,
                              &l->pipe, &l->batch, &l->context, &l->tensor};

    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        comm_close(*groups[i]);
        *groups[i] = NULL;
    }
}
