#include "train/plan_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "train/plan_check.h"

void plan_options_init(struct plan_options *p)
{
    *p = (struct plan_options){.ranks = 1, .device = "h100"};
}

/* GB, GB/s, if given. */
static void set(double *to, double given)
{
    *to = given > 0 ? given * 1e9 : *to;
}

/* A name, or else a file, of which measured becomes how many ops it has. */
static int machine_of(struct plan_machine *m, const struct plan_options *p, int *measured, struct err *e)
{
    struct plan_rates *r = &m->rates;
    double more;

    *measured = 0;
    if (strpbrk(p->device, "./"))
        TRY(plan_device_load(m, p->device, measured, e));
    else if (!plan_machine_named(m, p->device))
        return err_set(e, ERR_ARG, "--plan-device: '%s' is none of %s, and no file", p->device, plan_machine_names());
    more = p->tflops > 0 ? p->tflops * 1e12 / r->flops[PLAN_BF16] : 1;
    for (int i = 0; i < PLAN_TYPES; i++) {
        r->flops[i] *= more;
        r->reach[i] = p->efficiency > 0 ? p->efficiency : r->reach[i];
    }
    set(&r->bytes, p->memory_bandwidth);
    set(&m->memory, p->memory);
    set(&m->node_bandwidth, p->node_bandwidth);
    set(&m->network_bandwidth, p->network_bandwidth);
    if (p->node)
        m->node = p->node;
    return 0;
}

/* The ops, the one that takes most first. */
static int put_ops(struct buf *b, const struct plan_sum *s, int measured)
{
    char line[160];

    TRY(buf_printf(b, "rates: measured of %d ops, else calculated\n", measured));
    TRY(buf_puts(b, "op                          times      seconds   share  bound by\n"));
    for (int i = 0; plan_sum_line(s, i, line, sizeof line); i++)
        TRY(buf_printf(b, "%s\n", line));
    return 0;
}

static int put_step(struct buf *b, const struct train_config *c, const struct plan_machine *m, const struct plan_step *s,
                    int measured)
{
    const double gb = 1e9;
    size_t kind[MEMORY_KINDS];

    TRY(buf_printf(b, "model: %.4g billion parameters", (double)model_config_params(&c->model) / 1e9));
    if (c->model.experts)
        TRY(buf_printf(b, ", of which a token meets %.4g", (double)model_config_active(&c->model) / 1e9));
    TRY(buf_printf(b, ", %.4g FLOP a token\n", model_config_flops(&c->model, c->model.seq)));
    TRY(buf_printf(b, "layout: %" PRId64 " ranks = tensor %" PRId64 "%s x context %" PRId64 " x pipeline %" PRId64 " (%" PRId64
           " parts each) x data %" PRId64 "; %" PRId64 " micro-batches of %" PRId64,
           c->world, c->layout.tensor, c->layout.sequence ? " (sequence)" : "", c->layout.context, c->layout.pipe,
           c->stages.chunks, c->ranks, c->micro_batches, c->micro_batch));
    if (c->layout.expert > 1)
        TRY(buf_printf(b, "; experts shared by %" PRId64, c->layout.expert));
    TRY(buf_putc(b, '\n'));
    plan_memory_kinds(&s->memory, kind);
    TRY(buf_printf(b, "memory of the fullest rank: weights %.2f + gradients %.2f + optimizer %.2f + activations %.2f"
                   " = %.2f GB of %.0f (%zu bytes)%s\n",
                   (double)kind[MEMORY_WEIGHTS] / gb, (double)kind[MEMORY_GRADIENTS] / gb, (double)s->memory.optimizer / gb,
                   (double)kind[MEMORY_ACTIVATIONS] / gb, (double)s->memory.total / gb, m->memory / gb, s->memory.total,
                   (double)s->memory.total > m->memory ? ": DOES NOT FIT" : ""));
    if (s->memory.model.pool.most > s->memory.model.pool.rows)
        TRY(buf_printf(b, "experts: with even use; if all tokens choose those of one rank, its activations take %.2f GB more"
                       " (--moe-expert-capacity-factor bounds them)\n",
                       (double)(model_pool_most(&s->memory.model.pool) - model_pool_bytes(&s->memory.model.pool)) / gb));
    if (s->memory.host + s->memory.save)
        TRY(buf_printf(b, "memory of its host: optimizer %.2f + copy for saving %.2f GB\n", (double)s->memory.host / gb,
                       (double)s->memory.save / gb));
    TRY(buf_printf(b, "step: %.3f s = ops %.3f + tensor %.3f + context %.3f + experts %.3f + stream %.3f + bubble %.3f"
                   " + reduce %.3f + optimizer %.3f\n",
                   s->seconds, s->compute, s->tensor, s->context, s->experts, s->stream, s->bubble, s->reduce, s->optimizer));
    TRY(buf_printf(b, "bubble: %.1f %% of a step without it; %.0f tokens/s, %.0f TFLOP/s a device, mfu %.1f %%\n",
                   100 * s->bubble_share, (double)(c->global_batch * c->model.seq) / s->seconds,
                   s->mfu * m->rates.flops[PLAN_BF16] / 1e12, 100 * s->mfu));
    return put_ops(b, &s->ops, measured);
}

static const char *const again_name[] = {"none", "full", "selective"};
static const char *const sharding_name[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};

static int put_choice(struct buf *b, const struct plan_choice *v)
{
    static const char *const counting[] = {"layers", "embedding", "loss", "both"};

    return buf_printf(b, "%6" PRId64 "  %7" PRId64 "  %8" PRId64 "  %-9s  %5" PRId64 "  %6" PRId64 "  %4" PRId64
                      "  %-18s  %11" PRId64 "  %-9s  %6.2f  %8.1f  %8.3f  %5.1f\n",
                      v->layout.tensor, v->layout.context, v->layout.pipe, counting[v->embedding + 2 * v->head], v->chunks,
                      v->layout.expert, v->data, sharding_name[v->sharding], v->micro_batch, again_name[v->recompute],
                      (double)v->step.memory.total / 1e9, 100 * v->step.bubble_share, v->step.seconds, 100 * v->step.mfu);
}

/* A size that is not 1, as a flag. */
static int put_size(struct buf *b, const char *flag, int64_t n)
{
    return n > 1 ? buf_printf(b, " --%s %" PRId64, flag, n) : 0;
}

/* What to tell a run for it. */
static int put_flags(struct buf *b, const struct plan_choice *v)
{
    const struct layout_sizes *l = &v->layout;

    TRY(buf_puts(b, "flags of the first:"));
    TRY(put_size(b, "tensor-model-parallel-size", l->tensor));
    TRY(buf_puts(b, l->sequence ? " --sequence-parallel" : ""));
    TRY(put_size(b, "context-parallel-size", l->context));
    TRY(put_size(b, "pipeline-model-parallel-size", l->pipe));
    TRY(buf_puts(b, v->embedding ? " --account-for-embedding-in-pipeline-split" : ""));
    TRY(buf_puts(b, v->head ? " --account-for-loss-in-pipeline-split" : ""));
    TRY(put_size(b, "num-virtual-stages-per-pipeline-rank", v->chunks));
    TRY(put_size(b, "expert-model-parallel-size", l->expert));
    if (v->sharding)
        TRY(buf_printf(b, " --data-parallel-sharding-strategy %s", sharding_name[v->sharding]));
    TRY(buf_puts(b, v->overlap ? " --overlap-grad-reduce" : ""));
    TRY(buf_puts(b, v->overlap && v->sharding ? " --overlap-param-gather" : ""));
    if (v->recompute)
        TRY(buf_printf(b, " --recompute-granularity %s", again_name[v->recompute]));
    return buf_printf(b, " --micro-batch-size %" PRId64 "\n", v->micro_batch);
}

static int put_layouts(struct buf *b, const struct train_config *c, const struct plan_machine *m, int64_t n, struct err *e)
{
    struct plan_choice *v = calloc((size_t)n, sizeof *v);
    int have = v ? plan_search(c, m, v, (int)n) : ERR_NOMEM, rc = have < 0 ? have : 0;

    if (have == 0)
        rc = buf_printf(b, "no layout of %" PRId64 " ranks fits into %.0f GB each\n", c->world, m->memory / 1e9);
    else if (have > 0)
        rc = buf_puts(b, "tensor  context  pipeline  counting   parts  expert  data  sharding            micro-batch  recompute"
                         "      GB  bubble %   seconds  mfu %\n");
    for (int i = 0; i < have && rc == 0; i++)
        rc = put_choice(b, &v[i]);
    if (have > 0 && rc == 0)
        rc = put_flags(b, v);
    free(v);
    return rc < 0 ? err_set(e, rc, "out of memory") : 0;
}

int plan_run(struct train_config *c, const struct plan_options *p, struct buf *out, struct err *e)
{
    struct plan_machine m;
    struct plan_step s;
    int measured;

    TRY(machine_of(&m, p, &measured, e));
    c->world = p->ranks;
    c->mock_data = true;
    opt_list_free(&c->data_path);
    for (int i = 0; i < 3; i++)
        opt_list_free(&c->part_path[i]);
    c->valid_sets = false;
    if (!c->train_iters && !c->train_samples)
        c->train_iters = 1;
    if (c->lr <= 0)
        c->lr = 1;
    if (p->layouts) {
        struct train_config whole = *c; /* what any layout needs: the model, by its own check */

        whole.layout = LAYOUT_ALONE;
        whole.world = 1;
        whole.micro_batch = 1;
        TRY(train_config_check(&whole, e));
        whole.world = c->world;
        return put_layouts(out, &whole, &m, p->layouts, e);
    }
    TRY(train_config_check(c, e));
    TRY(plan_step(c, &m, &s, e));
    return put_step(out, c, &m, &s, measured) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}
