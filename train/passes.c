#include "train/passes.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "train/exchange.h"

const char *const train_phase_name[PHASES] = {"data", "forward", "backward", "wait", "reduce", "optimizer"};

size_t passes_bytes(int64_t stages, const struct model_config *c, const struct model_part *part, const struct model_run *run)
{
    int64_t rows = run->b * run->t / (part->context ? part->context->size : 1);

    if (part->sequence && part->tensor)
        rows /= part->tensor->size;
    return pipeline_bytes((int)stages, (size_t)(rows * c->hidden), exchange_type(run->dt));
}

/* Whoever else watches a part, and messages between stages that get on while it works. */
struct passes_watch {
    struct passes *p;
    struct model_watch next;
};

static int on_point(void *arg, enum model_point point, int section, struct err *e)
{
    struct passes_watch *w = arg;

    if (w->next.fn)
        TRY(w->next.fn(w->next.arg, point, section, e));
    return pipeline_poke(&w->p->pipe, e);
}

static int watch_parts(struct passes *p, struct err *e)
{
    p->watch = calloc((size_t)p->n, sizeof *p->watch);
    if (!p->watch)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < p->n; i++) {
        struct model *m = p->parts[i].model;

        p->watch[i] = (struct passes_watch){p, m->watch};
        m->watch = (struct model_watch){on_point, &p->watch[i]};
    }
    return 0;
}

int passes_open(struct passes *p, const struct layout *layout, struct train_part *parts, int n, struct data *data,
                struct err *e)
{
    const struct model *m = parts->model;
    size_t ids = (size_t)(m->b * m->run.t) * sizeof *p->tokens;

    *p = (struct passes){.layout = layout, .parts = parts, .n = n, .data = data};
    p->tokens = calloc(1, ids);
    p->targets = calloc(1, ids);
    p->held = calloc((size_t)m->run.slots, sizeof *p->held);
    if (m->run.reset_positions || m->run.reset_attention)
        p->starts = calloc(1, ids);
    if (!p->tokens || !p->targets || !p->held || ((m->run.reset_positions || m->run.reset_attention) && !p->starts))
        return err_set(e, ERR_NOMEM, "out of memory");
    if (layout && layout->pipe->size > 1)
        TRY(watch_parts(p, e));
    return pipeline_open(&p->pipe, layout ? layout->pipe : NULL, n, m->dev, (size_t)(m->own * m->config.hidden),
                         exchange_type(m->dt), e);
}

void passes_close(struct passes *p)
{
    pipeline_close(&p->pipe);
    for (int i = 0; p->watch && i < p->n; i++)
        p->parts[i].model->watch = p->watch[i].next;
    free(p->watch);
    free(p->held);
    free(p->tokens);
    free(p->targets);
    free(p->starts);
    *p = (struct passes){0};
}

/* ---- one micro-batch through one part ---- */

/* What the operations of a run share. */
struct under_way {
    struct passes *p;
    const struct passes_step *step; /* NULL: evaluation */
    int split;
    int64_t first, n;      /* samples */
    int64_t share;         /* micro-batches of each data-parallel rank */
    double *losses;        /* by micro-batch, of all ranks */
    double *counted;       /* likewise, tokens that have a loss; NULL: all have */
    double tokens;         /* that have one, of all; at least 1 */
    double *phase, at;
};

static void lap(struct under_way *u, enum train_phase phase)
{
    double now = log_seconds();

    u->phase[phase] += now - u->at;
    trace_span(u->p->trace, TRACE_PHASES, train_phase_name[phase], -1, u->at, now);
    u->at = now;
}

/* Tokens, targets and documents of micro-batch k, where the part needs them. */
static int read_batch(struct under_way *u, const struct model *m, int64_t k, struct err *e)
{
    struct passes *p = u->p;
    int64_t done = k * m->b, take = u->n - done < m->b ? u->n - done : m->b;

    if (!m->part.embeds && !m->part.heads && !p->starts)
        return 0;
    if (take < 0)
        take = 0;
    for (int64_t i = take * m->run.t; i < m->b * m->run.t; i++) /* a last batch that is not full */
        p->targets[i] = -1;
    TRY(data_batch(p->data, u->split, u->first + done, take, p->tokens, p->targets, e));
    if (p->starts)
        documents_starts(p->tokens, m->b, m->run.t, data_documents(p->data)->eod, p->starts);
    return 0;
}

static int forward(struct under_way *u, struct model *m, const struct model_batch *b, int64_t k, const void *in, void *out,
                   struct err *e)
{
    double loss;

    TRY(read_batch(u, m, k, e));
    lap(u, PHASE_DATA);
    if (in)
        TRY(pipeline_take(&u->p->pipe, model_stream_in(m, b->slot), in, e));
    TRY(model_forward(m, b, &loss, e));
    if (m->part.heads)
        u->losses[k] = loss;
    if (out)
        TRY(pipeline_give(&u->p->pipe, out, model_stream_out(m, b->slot), e));
    lap(u, PHASE_FORWARD);
    return 0;
}

static int backward(struct under_way *u, struct train_part *part, const struct model_batch *b, int64_t i, const void *in,
                    void *out, struct err *e)
{
    struct model *m = part->model;
    bool overwrite;

    if (in)
        TRY(pipeline_take(&u->p->pipe, model_stream_grad(m), in, e));
    optimizer_before(part, i, u->share, &overwrite);
    TRY(model_backward(m, b, overwrite, e));
    if (out)
        TRY(pipeline_give(&u->p->pipe, out, model_stream_grad(m), e));
    TRY(optimizer_after(part, e));
    lap(u, PHASE_BACKWARD);
    return 0;
}

/* Which micro-batch of the step is this rank's i-th: ranks have neighbours each; or, where each is summed over ranks by
 * itself, take them by turns. */
static int64_t batch_of(const struct under_way *u, const struct model *m, int64_t i)
{
    const struct comm *batch = u->p->layout ? u->p->layout->batch : NULL;

    if (!batch)
        return i;
    return store_shares(&m->dense.conf, SHARD_OPTIM_GRADS) ? i * batch->size + batch->rank : batch->rank * u->share + i;
}

/* The first slot that chunk and micro have; micro -1: that is free. */
static int slot_of(const struct passes *p, int chunk, int64_t micro)
{
    int i = 0;

    while (p->held[i].micro != micro || (micro >= 0 && p->held[i].chunk != chunk))
        i++;
    return i;
}

/* Says how much the losses of micro-batch k count: for a mean over all tokens, or over those of the micro-batch and over
 * micro-batches. */
static void weigh(const struct under_way *u, const struct model *m, int64_t k, struct model_batch *b)
{
    if (u->counted && !u->step->per_token) {
        b->counted = u->counted[k] > 0 ? (int64_t)u->counted[k] : 1;
        b->grad_scale = (float)(1.0 / (double)(u->n / m->b * b->counted));
    } else {
        b->grad_scale = (float)(1.0 / u->tokens);
    }
}

/* How many tokens of each micro-batch have a loss: each is counted by one rank. */
static int count(struct under_way *u, int64_t all, struct err *e)
{
    const struct layout *l = u->p->layout;
    const struct model *m = u->p->parts->model;
    double sum = 0;

    memset(u->counted, 0, (size_t)all * sizeof *u->counted);
    for (int64_t i = 0; i < u->share && !(l && (l->model->rank || l->context->rank)); i++) {
        int64_t k = batch_of(u, m, i);

        TRY(read_batch(u, m, k, e));
        for (int64_t j = 0; j < m->b * m->run.t; j++)
            u->counted[k] += u->p->targets[j] >= 0;
    }
    if (l)
        TRY(data_parallel_gather(l->world, u->counted, all, e));
    for (int64_t k = 0; k < all; k++)
        sum += u->counted[k];
    u->tokens = sum > 0 ? sum : 1;
    return 0;
}

static int one(void *arg, const struct pipeline_op *op, const void *in, void *out, struct err *e)
{
    struct under_way *u = arg;
    struct train_part *part = &u->p->parts[op->chunk];
    struct model *m = part->model;
    int64_t k = batch_of(u, m, op->micro);
    struct model_dropout drop;
    struct model_batch b = {
        .slot = slot_of(u->p, op->chunk, op->back ? op->micro : -1), .tokens = u->p->tokens, .targets = u->p->targets,
        .starts = u->p->starts,
    };
    const char *what = op->back ? "backward of micro-batch" : "forward of micro-batch";
    double from;
    int rc;

    lap(u, PHASE_WAIT);
    if (u->step) {
        drop = (struct model_dropout){u->step->seed, u->step->step, k * m->b};
        b.drop = &drop;
        weigh(u, m, k, &b);
    }
    u->p->held[b.slot] = (struct pipeline_op){.chunk = op->chunk, .micro = u->step && !op->back ? op->micro : -1};
    from = trace_begin(u->p->trace, what, op->micro);
    rc = op->back ? backward(u, part, &b, op->micro, in, out, e) : forward(u, m, &b, k, in, out, e);
    trace_end(u->p->trace, TRACE_PROFILER, what, op->micro, from);
    return rc;
}

static int pass_all(struct under_way *u, int64_t all, struct err *e)
{
    const struct layout *l = u->p->layout;

    memset(u->losses, 0, (size_t)all * sizeof *u->losses);
    for (int i = 0; i < u->p->n; i++)
        model_fp8_begin(u->p->parts[i].model);
    for (int i = 0; i < u->p->parts->model->run.slots; i++)
        u->p->held[i].micro = -1;
    u->at = log_seconds();
    u->tokens = (double)(u->n * u->p->parts->model->run.t);
    if (u->counted)
        TRY(count(u, all, e));
    TRY(pipeline_pass(&u->p->pipe, u->share, !u->step, one, u, e));
    lap(u, PHASE_WAIT);
    if (!l)
        return 0;
    if (l->tensor->rank > 0) /* each of them has it */
        memset(u->losses, 0, (size_t)all * sizeof *u->losses);
    return data_parallel_gather(l->world, u->losses, all, e);
}

/* All micro-batches of this rank; then losses are those of all ranks. */
static int run(struct under_way *u, struct err *e)
{
    int64_t all = u->share * (u->p->layout ? u->p->layout->data : 1);
    int rc = 0;

    if (data_documents(u->p->data)->mask_loss) {
        u->counted = malloc((size_t)(all + 1) * sizeof *u->counted);
        rc = u->counted ? 0 : err_set(e, ERR_NOMEM, "out of memory");
    }
    if (rc == 0)
        rc = pass_all(u, all, e);
    free(u->counted);
    return rc;
}

int passes_step(struct passes *p, const struct passes_step *s, double *losses, double *tokens, double *phase,
                struct err *e)
{
    int64_t each = p->parts->model->b * (p->layout ? p->layout->data : 1);
    struct under_way u = {
        .p = p, .step = s, .split = GPT_TRAIN, .first = s->first, .n = s->batch, .share = s->batch / each, .losses = losses,
        .phase = phase,
    };

    TRY(run(&u, e));
    *tokens = u.tokens;
    return 0;
}

int passes_evaluate(struct passes *p, int split, int64_t first, int64_t n, double *loss, struct err *e)
{
    int64_t ranks = p->layout ? p->layout->data : 1, each = p->parts->model->b * ranks, share = (n + each - 1) / each;
    double unused[PHASES], sum = 0;
    struct under_way u = {
        .p = p, .split = split, .first = first, .n = n, .share = share, .phase = unused,
        .losses = malloc((size_t)(share * ranks + 1) * sizeof *u.losses),
    };
    int rc = u.losses ? run(&u, e) : err_set(e, ERR_NOMEM, "out of memory");

    for (int64_t k = 0; rc == 0 && k < share * ranks; k++)
        sum += u.losses[k];
    free(u.losses);
    *loss = sum / u.tokens;
    return rc;
}
