#include "train/plan.h"

#include <string.h>

bool plan_machine_named(struct plan_machine *m, const char *name)
{
    static const struct {
        const char *name;
        struct plan_machine m;
    } known[] = {
        {"a100", {312e12, 0.75, 3500, 80e9, 2.0e12, 8, 300e9, 25e9}},
        {"h100", {989e12, 0.75, 3500, 80e9, 3.35e12, 8, 450e9, 50e9}},
        {"h200", {989e12, 0.75, 3500, 141e9, 4.8e12, 8, 450e9, 50e9}},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) {
            *m = known[i].m;
            return true;
        }
    return false;
}

/* Bytes a second of a rank in a group whose ranks lie within `span` neighbours. */
static double bandwidth(const struct plan_machine *m, int64_t span)
{
    return span <= m->node ? m->node_bandwidth : m->network_bandwidth;
}

/* Seconds to gather, or to scatter, bytes over n ranks; a sum is both. */
static double ring(double bytes, int64_t n, double per_second)
{
    return bytes * (double)(n - 1) / (double)n / per_second;
}

/* FLOP/s that the products of this model reach: narrow ones fall short of the device's best. */
static double reached(const struct train_config *c, const struct plan_machine *m)
{
    double h = (double)c->model.hidden;

    return m->flops * m->efficiency * h / (h + m->half_width);
}

/* What a micro-batch is, and what of it a rank has. */
struct shape {
    double tokens;  /* of a rank */
    double stream;  /* bytes of the residual stream of these */
    int64_t layers; /* of the stage that has most */
    double again;   /* forward passes in all: 1, 2 with full recomputation */
};

static struct shape shape_of(const struct train_config *c)
{
    struct shape s = {.again = c->recompute == RECOMPUTE_FULL ? 2 : 1};

    s.tokens = (double)(c->micro_batch * c->model.seq) / (double)c->layout.context;
    s.stream = s.tokens * (double)c->model.hidden * (c->bf16 ? 2 : 4);
    s.layers = (c->model.layers + c->layout.pipe - 1) / c->layout.pipe;
    return s;
}

/* Products of the slowest stage for a micro-batch. */
static double products(const struct train_config *c, const struct plan_machine *m, const struct shape *s)
{
    const struct model_config *mc = &c->model;
    double head = 6 * (double)mc->padded_vocab * (double)mc->hidden;
    double layer = (model_config_flops(mc, mc->seq) - head) / (double)mc->layers;
    double inner = layer * (double)s->layers * (2 + s->again) / 3;

    return s->tokens * (inner + head) / (double)c->layout.tensor / reached(c, m);
}

/* A layer sums its stream twice forward and twice backward. */
static double tensor_sums(const struct train_config *c, const struct plan_machine *m, const struct shape *s)
{
    int64_t n = c->layout.tensor;

    return (double)s->layers * 2 * (1 + s->again) * 2 * ring(s->stream, n, bandwidth(m, n));
}

/* Keys and values go round, and their gradients with them in backward; behind attention, where it is longer. */
static double context_ring(const struct train_config *c, const struct plan_machine *m, const struct shape *s)
{
    int64_t n = c->layout.context;
    double bytes = s->tokens * 2 * (double)model_kv_width(&c->model) / (double)c->layout.tensor * (c->bf16 ? 2 : 4);
    double sent = (double)(n - 1) * bytes * (s->again + 2) / bandwidth(m, n * c->layout.tensor);
    double attention = 6 * s->tokens * (double)model_q_width(&c->model) * (double)c->model.seq / (double)c->layout.tensor /
                       reached(c, m);

    return sent > attention ? (double)s->layers * (sent - attention) : 0;
}

/* A layer's rows go to their experts and back, forward, and their gradients in backward, of each a piece by each tensor
 * rank, which are joined there; experts are taken to be used evenly. */
static double expert_rows(const struct train_config *c, const struct plan_machine *m, const struct shape *s)
{
    int64_t n = c->layout.expert, t = n > 1 ? c->layout.tensor : 1;
    double layers = (double)s->layers * (double)model_moe_layers(&c->model) / (double)c->model.layers;

    double rows = s->stream * (double)c->model.topk;

    return layers * 2 * (1 + s->again) *
           (ring(rows / (double)t, n, bandwidth(m, n * c->layout.tensor)) + ring(rows, t, bandwidth(m, t)));
}

static double beyond(double seconds, bool beside, double work)
{
    if (!beside)
        return seconds;
    return seconds > work ? seconds - work : 0;
}

/* Gradients are summed over replicas; with the distributed optimizer they are scattered, and the weights gathered; divided
 * gradients are scattered, and divided weights gathered twice, every micro-batch.  stage: seconds of a micro-batch, the last
 * one's backward and the first one's forward pass of which may hide them.  n: replicas. */
static double reduction(const struct train_config *c, const struct plan_machine *m, double weights, int64_t n,
                        double stage)
{
    double per_second = bandwidth(m, n * c->layout.tensor), scatter = ring((c->reduce_bf16 ? 2 : 4) * weights, n, per_second);
    double gather = ring((c->bf16 ? 2 : 4) * weights, n, per_second), micro = (double)c->micro_batches;

    if (c->sharding == NO_SHARD)
        return beyond(2 * scatter, c->overlap_reduce, stage * 2 / 3);
    if (c->sharding == SHARD_OPTIM)
        return beyond(scatter, c->overlap_reduce, stage * 2 / 3) + beyond(gather, c->overlap_gather, stage / 3);
    if (c->sharding == SHARD_OPTIM_GRADS)
        return micro * beyond(scatter, c->overlap_reduce, stage * 2 / 3) + beyond(gather, c->overlap_gather, stage / 3);
    return micro * (beyond(scatter + (c->overlap_gather ? gather : 0), c->overlap_reduce, stage * 2 / 3) +
                    beyond(gather, c->overlap_gather, stage / 3) + (c->overlap_gather ? 0 : gather));
}

int plan_step(const struct train_config *c, const struct plan_machine *m, struct plan_step *p, struct err *e)
{
    const struct shape s = shape_of(c);
    double parts = (double)c->stages.chunks, stages = (double)c->layout.pipe, n = (double)c->micro_batches, weights, stage;

    memset(p, 0, sizeof *p);
    TRY(trainer_plan(c, &p->memory, e));
    weights = (double)p->memory.elements;
    p->compute = n * products(c, m, &s);
    p->tensor = n * tensor_sums(c, m, &s);
    p->context = n * context_ring(c, m, &s);
    p->experts = n * expert_rows(c, m, &s);
    if (c->layout.pipe > 1)
        p->stream = n * 2 * parts * s.stream / (c->layout.sequence ? (double)c->layout.tensor : 1) / bandwidth(m, c->world);
    stage = p->compute + p->tensor + p->context + p->experts + p->stream;
    p->bubble_share = (stages - 1) / (n * parts);
    p->bubble = stage * p->bubble_share;
    p->reduce = reduction(c, m, weights, train_config_replicas(c), stage / n) +
                reduction(c, m, (double)p->memory.expert_elements, train_config_replicas(c) / c->layout.expert, stage / n);
    /* Gradient, master weight and two moments are read, three of them and the copy in bf16 written. */
    p->optimizer = (double)(p->memory.optimizer / 8) * 30 / m->memory_bandwidth;
    p->seconds = stage + p->bubble + p->reduce + p->optimizer;
    p->mfu = model_config_flops(&c->model, c->model.seq) * (double)(c->global_batch * c->model.seq) / p->seconds /
             (m->flops * (double)c->world);
    return 0;
}

/* ---- which layout ---- */

static bool better(const struct plan_choice *a, const struct plan_choice *b)
{
    return a->step.seconds < b->step.seconds;
}

/* Keeps the n best in order. */
static int keep(struct plan_choice *v, int have, int n, const struct plan_choice *c)
{
    int at = have;

    while (at > 0 && better(c, &v[at - 1]))
        at--;
    if (at == n)
        return have;
    if (have < n)
        have++;
    memmove(v + at + 1, v + at, (size_t)(have - at - 1) * sizeof *v);
    v[at] = *c;
    return have;
}

/* Plans *one, whose layout, micro-batch and recomputation are set; false: it cannot be, or does not fit. */
static bool possible(const struct train_config *c, const struct plan_machine *m, struct plan_choice *one)
{
    struct train_config k = *c;
    struct err why;

    k.layout = one->layout;
    k.micro_batch = one->micro_batch;
    k.recompute = one->recompute;
    if (c->world % (k.layout.tensor * k.layout.pipe * k.layout.context) || c->model.layers % k.layout.pipe ||
        train_config_check(&k, &why) < 0 || plan_step(&k, m, &one->step, &why) < 0)
        return false;
    one->data = k.ranks;
    return (double)one->step.memory.total <= m->memory;
}

int plan_search(const struct train_config *c, const struct plan_machine *m, struct plan_choice *v, int n)
{
    int64_t experts = c->model.experts ? c->model.experts : 1;
    int have = 0;

    for (int64_t tensor = 1; tensor <= m->node; tensor *= 2)
        for (int64_t pipe = 1; pipe <= c->model.layers; pipe++)
            for (int64_t expert = 1; expert <= experts; expert *= 2)
                for (int64_t micro = 1; micro <= 8; micro *= 2)
                    for (int again = RECOMPUTE_NONE; again <= RECOMPUTE_SELECTIVE; again++) {
                        struct plan_choice one = {.layout = c->layout, .micro_batch = micro, .recompute = again};

                        one.layout.tensor = tensor;
                        one.layout.sequence = tensor > 1;
                        one.layout.pipe = pipe;
                        one.layout.expert = expert;
                        if (possible(c, m, &one))
                            have = keep(v, have, n, &one);
                    }
    return have;
}
