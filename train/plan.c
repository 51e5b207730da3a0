/* A step's time. */
#include "train/plan.h"

#include <string.h>

#include "train/layer_attention.h"

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

/* What a micro-batch is, and what of it a rank of the slowest stage has. */
struct shape {
    double tokens;  /* of a rank */
    double stream;  /* bytes of the residual stream of these */
    int64_t stage;  /* the slowest */
    int64_t layers; /* of it */
    double again;   /* forward passes in all: 1, 2 with full recomputation */
};

static struct shape shape_of(const struct train_config *c)
{
    struct shape s = {.again = 1};

    s.tokens = (double)(c->micro_batch * c->model.seq) / (double)c->layout.context;
    s.stream = s.tokens * (double)c->model.hidden * (c->bf16 ? 2 : 4);
    return s;
}

/* Whether FP8 leaves a layer in bf16. */
static bool is_end(const struct train_config *c, int64_t layer)
{
    return c->fp8.format && c->fp8.ends_bf16 && (layer < c->fp8.start_bf16 || layer >= c->model.layers - c->fp8.end_bf16);
}

/* The layers of a stage, in all its parts, and which of them are left in bf16; of its share how many are run again. */
static void count_layers(const struct train_config *c, int64_t stage, struct plan_share *s)
{
    int64_t chunk = c->recompute_method == 1 ? 1 : c->recompute_layers, first, n, again = 0;

    for (int64_t i = 0; i < c->stages.chunks; i++) {
        stages_layers(&c->stages, stage, i, &first, &n);
        s->layers += n;
        for (int64_t k = first; k < first + n; k++)
            s->low += is_end(c, k);
        n = c->recompute != RECOMPUTE_FULL ? 0 : c->recompute_method == 1 && c->recompute_layers < n ? c->recompute_layers : n;
        again += n;
        s->chunks += (double)((n + chunk - 1) / chunk);
    }
    s->again = s->layers ? (double)again / (double)s->layers : 0;
}

/* How often a micro-batch fetches what comes and goes of each of so many layers of a stage: forward and backward, and in between
 * if chunks of layers are run again; but where a pass turns, and where the next one begins, the last `held` of a part are there
 * yet.  anew: those of a step before are old. */
static double fetches(const struct train_config *c, const struct plan_share *s, int64_t layers, int64_t held, bool anew)
{
    double part = (double)layers / (double)c->stages.chunks, kept = (double)held < part ? (double)held : part;
    double chunk = s->chunks > 0 ? s->again * (double)s->layers / s->chunks : 0;
    double more = chunk > (double)held ? s->again * part * (1 - (double)held / chunk) : 0;

    return part > 0 ? (2 * part + more - kept * (more > 0 ? 1 : 2) + (anew ? kept / (double)c->micro_batches : 0)) / part : 0;
}

/* How many units of a rank's weights stay where they were gathered, and copies of how many in FP8 (train/param_buffer.c,
 * model_fp8.c). */
enum { GATHERED = 2, CONVERTED = 1 };

struct plan_share plan_share_of(const struct train_config *c, const struct train_memory *m, int64_t stage)
{
    int64_t replicas = c->sharding == SHARD_OPTIM_GRADS_PARAMS ? train_config_replicas(c) : 1;
    struct plan_share s = {
        .model = &c->model, .b = c->micro_batch, .t = c->model.seq, .context = c->layout.context,
        .tensor = c->layout.tensor, .expert = c->layout.expert, .sequence = c->layout.sequence,
        .head = stage == c->layout.pipe - 1, .embeds = stage == 0, .bf16 = c->bf16, .fp8 = c->fp8.format != 0,
        .recipe = c->fp8.recipe, .selective = c->recompute == RECOMPUTE_SELECTIVE,
    };
    double passing, once = 1 / (double)c->micro_batches;

    count_layers(c, stage, &s);
    passing = fetches(c, &s, s.layers - s.low, CONVERTED, true);
    s.converts = replicas > 1 ? passing : once;
    s.expert_converts = replicas > c->layout.expert ? passing : once;
    if (replicas > 1 && c->bf16 && !c->offload && c->main_params != MAIN_BF16) {
        double each = fetches(c, &s, s.layers, GATHERED, true);

        s.cast = (double)m->shard * each;
        s.casts = (double)s.layers * each;
    }
    return s;
}

/* What all micro-batches take of the slowest stage's device, to p->ops; s gets which one that is.  Those between the first and
 * the last stage are alike. */
static double ops_of_passes(const struct train_config *c, struct shape *s, struct plan_step *p)
{
    const int64_t last = c->layout.pipe - 1, stages[] = {0, last > 1 ? 1 : last, last};

    for (int i = 0; i < 3; i++) {
        struct plan_sum sum = {.rates = p->ops.rates, .bf16 = c->bf16};
        const struct plan_share share = plan_share_of(c, &p->memory, stages[i]);

        plan_micro_batch(&share, plan_sum_add, &sum);
        if (i == 0 || sum.all > p->ops.all) {
            p->ops = sum;
            s->stage = stages[i];
            s->layers = share.layers;
            s->again = 1 + share.again;
        }
    }
    plan_sum_times(&p->ops, (double)c->micro_batches);
    return p->ops.all;
}

/* Bytes that an update reads and writes of a parameter, over AdamW's with fp32 moments: 30, 8 of them of each. */
static double update_share(const struct optim_conf *o)
{
    double bytes = 30;

    for (int i = 0; i < PARAM_STATES; i++)
        bytes -= i >= optim_of(o->kind)->states ? 8 : 2 * (4 - (double)dtype_size((enum dtype)o->moment[i]));
    return bytes / 30;
}

/* The update of the weights that a rank has in its optimizer. */
static double ops_of_update(const struct train_config *c, const struct shape *s, struct plan_step *p)
{
    struct plan_share share = plan_share_of(c, &p->memory, s->stage);
    double before = p->ops.all, shard = (double)p->memory.shard;

    if (optim_of(c->optim.kind)->momentum) /* of what it makes matrix products */
        share.whole = (struct plan_whole){
            c->optim.muon.steps, c->layout.tensor * train_config_replicas(c), c->optim.muon.precision, c->optim.muon.whole_qkv,
        };
    plan_update(&share, p->memory.tensors, shard, c->offload ? 0 : shard * update_share(&c->optim), plan_sum_add, &p->ops);
    return p->ops.all - before;
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
    const struct plan_dims d = {.m = c->micro_batch, .n = c->model.seq, .k = c->model.heads / c->layout.tensor,
                                .d = c->model.head_dim, .kv = c->model.groups / c->layout.tensor,
                                .keys = layer_attention_keys(&c->model, c->model.seq)};
    double attention = (plan_op_seconds(&m->rates, PLAN_ATTENTION, &d, c->bf16, NULL) +
                        plan_op_seconds(&m->rates, PLAN_ATTENTION_BACK, &d, c->bf16, NULL)) / (double)n;

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
 * gradients are scattered every micro-batch, and of divided weights so many gathered (fetched).  stage: seconds of a micro-batch,
 * the last one's backward and the first one's forward pass of which may hide them.  n: replicas. */
static double reduction(const struct train_config *c, const struct plan_machine *m, double trained, double fetched, int64_t n,
                        double stage)
{
    double per_second = bandwidth(m, n * c->layout.tensor), scatter = ring((c->reduce_bf16 ? 2 : 4) * trained, n, per_second);
    double gather = ring((c->bf16 ? 2 : 4) * trained, n, per_second), micro = (double)c->micro_batches;

    if (c->sharding == NO_SHARD)
        return beyond(2 * scatter, c->overlap_reduce, stage * 2 / 3);
    if (c->sharding == SHARD_OPTIM)
        return beyond(scatter, c->overlap_reduce, stage * 2 / 3) + beyond(gather, c->overlap_gather, stage / 3);
    if (c->sharding == SHARD_OPTIM_GRADS)
        return micro * beyond(scatter, c->overlap_reduce, stage * 2 / 3) + beyond(gather, c->overlap_gather, stage / 3);
    gather = ring((c->bf16 ? 2 : 4) * fetched / 2, n, per_second); /* of either pass */
    return micro * (beyond(scatter + (c->overlap_gather ? gather : 0), c->overlap_reduce, stage * 2 / 3) +
                    beyond(gather, c->overlap_gather, stage / 3) + (c->overlap_gather ? 0 : gather));
}

/* Of all weights, and of those of experts by themselves. */
static double reductions(const struct train_config *c, const struct plan_machine *m, const struct train_memory *w,
                         const struct shape *s, double stage)
{
    const struct plan_share share = plan_share_of(c, w, s->stage);
    double trained = fetches(c, &share, share.layers, GATHERED, true), frozen = fetches(c, &share, share.layers, GATHERED, false);
    int64_t replicas = train_config_replicas(c);
    double all = 0;

    for (int i = 0; i < 2; i++)
        all += reduction(c, m, (double)w->trained[i], trained * (double)w->trained[i] + frozen * (double)w->frozen[i],
                         i ? replicas / c->layout.expert : replicas, stage);
    return all;
}

int plan_step(const struct train_config *c, const struct plan_machine *m, struct plan_step *p, struct err *e)
{
    struct shape s = shape_of(c);
    double parts = (double)c->stages.chunks, stages = (double)c->layout.pipe, n = (double)c->micro_batches, stage;

    memset(p, 0, sizeof *p);
    TRY(trainer_plan(c, &p->memory, e));
    p->ops = (struct plan_sum){.rates = &m->rates, .bf16 = c->bf16};
    p->compute = ops_of_passes(c, &s, p);
    p->tensor = n * tensor_sums(c, m, &s);
    p->context = n * context_ring(c, m, &s);
    p->experts = n * expert_rows(c, m, &s);
    if (c->layout.pipe > 1)
        p->stream = n * 2 * parts * s.stream / (c->layout.sequence ? (double)c->layout.tensor : 1) / bandwidth(m, c->world);
    stage = p->compute + p->tensor + p->context + p->experts + p->stream;
    p->bubble_share = (stages - 1) / (n * parts);
    p->bubble = stage * p->bubble_share;
    p->reduce = reductions(c, m, &p->memory, &s, stage / n);
    p->optimizer = ops_of_update(c, &s, p);
    p->seconds = stage + p->bubble + p->reduce + p->optimizer;
    p->mfu = model_config_flops(&c->model, c->model.seq) * (double)(c->global_batch * c->model.seq) / p->seconds /
             (m->rates.flops[PLAN_BF16] * (double)c->world);
    return 0;
}
