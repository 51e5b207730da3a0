/* Which layout is the fastest. */
#include <math.h>
#include <string.h>

#include "train/plan.h"

/* What is searched, and the best so far. */
struct search {
    const struct train_config *config;
    const struct plan_machine *machine;
    struct plan_choice *v; /* n, of which there are `have`, in order */
    int have, n;
};

/* Faster by a part in 500; else with fewer ranks that share a sequence, the depth, a layer; else with less shared by replicas. */
static bool better(const struct plan_choice *a, const struct plan_choice *b)
{
    const struct layout_sizes *x = &a->layout, *y = &b->layout;
    const int64_t by[][2] = {
        {llround(500 * log(a->step.seconds)), llround(500 * log(b->step.seconds))}, {x->context, y->context}, {x->pipe, y->pipe},
        {x->tensor, y->tensor}, {a->sharding, b->sharding}, {a->recompute, b->recompute},
    };

    for (size_t i = 0; i < sizeof by / sizeof *by; i++)
        if (by[i][0] != by[i][1])
            return by[i][0] < by[i][1];
    return a->step.seconds < b->step.seconds;
}

static void keep(struct search *s, const struct plan_choice *c)
{
    int at = s->have;

    while (at > 0 && better(c, &s->v[at - 1]))
        at--;
    if (at == s->n)
        return;
    if (s->have < s->n)
        s->have++;
    memmove(s->v + at + 1, s->v + at, (size_t)(s->have - at - 1) * sizeof *s->v);
    s->v[at] = *c;
}

/* What a run is told for it. */
static struct train_config config_of(const struct train_config *c, const struct plan_choice *one)
{
    struct train_config k = *c;

    k.layout = one->layout;
    k.virtual_layers = 0;
    k.virtual_stages = one->chunks > 1 ? one->chunks : 0;
    k.stages.first = k.stages.last = 0;
    k.stages.embedding = one->embedding;
    k.stages.head = one->head;
    k.micro_batch = one->micro_batch;
    k.recompute = one->recompute;
    k.sharding = one->sharding;
    k.overlap_reduce = one->overlap;
    k.overlap_gather = one->overlap && one->sharding;
    return k;
}

/* Keeps *one if it can be and fits.  The first stage has most activations, so most are refused by it alone. */
static void weigh(struct search *s, struct plan_choice *one)
{
    struct train_config k = config_of(s->config, one);
    struct train_memory first;
    struct err why;

    if (train_config_check(&k, &why) < 0 || trainer_plan_stage(&k, 0, &first, &why) < 0 ||
        (double)first.total > s->machine->memory || plan_step(&k, s->machine, &one->step, &why) < 0)
        return;
    one->data = k.ranks;
    if ((double)one->step.memory.total <= s->machine->memory)
        keep(s, one);
}

/* Micro-batches, recomputation, and what replicas share: at least what the configuration says. */
static void try_runs(struct search *s, const struct plan_choice *division)
{
    const struct train_config *c = s->config;
    bool replicas = c->world > division->layout.tensor * division->layout.pipe;
    int least = c->distributed_optimizer && c->sharding == NO_SHARD ? SHARD_OPTIM : c->sharding;
    struct plan_choice one = *division;

    for (one.micro_batch = 1; one.micro_batch <= 8; one.micro_batch *= 2)
        for (one.recompute = RECOMPUTE_NONE; one.recompute <= RECOMPUTE_SELECTIVE; one.recompute++)
            for (one.sharding = least; one.sharding <= (replicas ? SHARD_OPTIM_GRADS_PARAMS : least); one.sharding++) {
                one.overlap = replicas;
                weigh(s, &one);
            }
}

/* Even stages, or such as count the embedding, the output layer or both for a layer; of one part or of several. */
static void try_stages(struct search *s, const struct plan_choice *division)
{
    struct plan_choice one = *division;

    for (int uneven = 0; uneven < (one.layout.pipe > 1 ? 4 : 1); uneven++) {
        int64_t layers = s->config->model.layers + (uneven & 1) + (uneven >> 1);

        one.embedding = uneven & 1;
        one.head = uneven >> 1;
        for (one.chunks = 1; one.layout.pipe * one.chunks <= (one.layout.pipe > 1 ? layers : 1); one.chunks++)
            if (layers % (one.layout.pipe * one.chunks) == 0)
                try_runs(s, &one);
    }
}

int plan_search(const struct train_config *c, const struct plan_machine *m, struct plan_choice *v, int n)
{
    int64_t experts = c->model.experts ? c->model.experts : 1;
    struct search s = {.config = c, .machine = m, .v = v, .n = n};

    for (int64_t tensor = 1; tensor <= m->node && tensor <= c->world; tensor *= 2)
        for (int64_t context = 1; context == 1 || context * PLAN_CONTEXT_LEAST <= c->model.seq; context *= 2)
            for (int64_t pipe = 1; pipe <= c->model.layers && pipe * tensor * context <= c->world; pipe++)
                for (int64_t expert = 1; expert <= experts && c->world % (tensor * context * pipe) == 0; expert *= 2) {
                    struct plan_choice one = {.layout = {
                        .tensor = tensor, .context = context, .pipe = pipe, .expert = expert, .sequence = tensor > 1,
                    }};

                    try_stages(&s, &one);
                }
    return s.have;
}
