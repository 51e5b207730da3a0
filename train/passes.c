#include "train/passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "train/exchange.h"

const char *const train_phase_name[PHASES] = {"data", "forward", "backward", "wait", "reduce", "optimizer"};

/* Elements of the ids of a micro-batch: tokens, then targets. */
static size_t ids_of(const struct model_run *run)
{
    return 2 * (size_t)(run->b * run->t);
}

/* Places for micro-batches: a million tokens, but 8 to 256, and as many as a stage may run before another part's turn. */
static size_t room_of(const struct model_run *run, int64_t stages)
{
    int64_t n = (1 << 20) / (run->b * run->t), least = stages < 8 ? 8 : stages;

    return n > 256 && least < 256 ? 256 : n < least ? (size_t)least : (size_t)n;
}

/* Losses of a micro-batch: of the next token, and of those further on. */
static size_t losses_of(const struct model_config *c)
{
    return 1 + (size_t)c->mtp_layers;
}

/* Bytes of all places in pinned memory. */
static size_t places_bytes(const struct model_run *run, const struct model_config *c, size_t room)
{
    bool documents = run->reset_positions || run->reset_attention;

    size_t further = room * (size_t)c->mtp_layers * (size_t)(MTP_ROWS * run->b * run->t);

    return room * sizeof(struct model_dropout) + (((documents ? 2 : 1) * room + 1) * ids_of(run) + further) * sizeof(int32_t);
}

size_t passes_bytes(int64_t stages, const struct model_config *c, const struct model_part *part, const struct model_run *run)
{
    int64_t rows = run->b * run->t / (part->context ? part->context->size : 1);
    size_t room = room_of(run, stages);

    if (part->sequence && part->tensor)
        rows /= part->tensor->size;
    return pipeline_bytes((int)stages, (size_t)(rows * c->hidden), exchange_type(run->dt)) +
           places_bytes(run, c, room) + (2 * room + 1) * losses_of(c) * sizeof(double);
}

int passes_open(struct passes *p, const struct layout *layout, struct train_part *parts, int n, struct data *data,
                struct err *e)
{
    const struct model *m = parts->model;
    bool documents = m->run.reset_positions || m->run.reset_attention;
    size_t room = room_of(&m->run, layout ? layout->pipe->size : 1), bytes = places_bytes(&m->run, &m->whole, room);
    size_t each = losses_of(&m->whole);

    *p = (struct passes){.layout = layout, .parts = parts, .n = n, .data = data, .dev = m->dev, .room = (int64_t)room,
                         .each = (int64_t)each};
    TRY(device_alloc_host(p->dev, (void **)&p->drop, bytes, e));
    TRY(device_alloc_host(p->dev, (void **)&p->host_loss, room * each * sizeof *p->host_loss, e));
    TRY(device_alloc(p->dev, (void **)&p->loss, (room + 1) * each * sizeof *p->loss, e));
    memset(p->drop, 0, bytes);
    p->ids = (int32_t *)(void *)(p->drop + room);
    p->here = documents ? p->ids + (room + 1) * ids_of(&m->run) : NULL;
    p->further = p->ids + ((documents ? 2 : 1) * room + 1) * ids_of(&m->run);
    p->weight = malloc(room * each * sizeof *p->weight);
    p->held = calloc((size_t)m->run.slots, sizeof *p->held);
    if (documents)
        p->starts = calloc((size_t)(m->b * m->run.t), sizeof *p->starts);
    if (!p->held || !p->weight || (documents && !p->starts))
        return err_set(e, ERR_NOMEM, "out of memory");
    return pipeline_open(&p->pipe, layout ? layout->pipe : NULL, n, m->dev, (size_t)(m->own * m->config.hidden),
                         exchange_type(m->dt), e);
}

/* Whether collectives get on while a pass is under way. */
static bool overlaps(const struct model *m)
{
    const struct param_buffer_conf *c = &m->dense.conf;

    return c->replicas && c->replicas->size > 1 && (c->overlap_reduce || c->overlap_gather);
}

void passes_use_graphs(struct passes *p, bool must)
{
    const struct model *m = p->parts->model;
    const char *why = p->n > 1 ? "a stage has several parts" : model_graph_refuses(m);

    if (!why && overlaps(m))
        why = "collectives run beside the passes (--overlap-grad-reduce, --overlap-param-gather)";
    if (!must && m->run.reset_attention && m->run.dt == DTYPE_BF16) /* cuDNN takes documents launch by launch alone */
        return;
    if (!why)
        model_graph_open(&p->graph, p->parts->model, p->loss + p->room * p->each);
    else if (must && (!p->layout || p->layout->world->rank == 0))
        log_msg(LOG_WARN, "--cuda-graph-impl: no CUDA graphs, for %s", why);
}

void passes_close(struct passes *p)
{
    model_graph_close(&p->graph);
    pipeline_close(&p->pipe);
    free(p->held);
    free(p->starts);
    free(p->weight);
    if (p->dev) {
        device_free_host(p->dev, p->drop);
        device_free_host(p->dev, p->host_loss);
        device_free(p->dev, p->loss);
    }
    *p = (struct passes){0};
}

/* ---- one micro-batch through one part ---- */

/* What the operations of a run share. */
struct under_way {
    struct passes *p;
    const struct passes_step *step; /* NULL: evaluation, */
    const struct passes_rows *rows; /* of these; NULL: of samples */
    int split;
    int64_t first, n;      /* samples */
    int64_t share;         /* micro-batches of each data-parallel rank */
    double *losses;        /* (micro-batches, p->each) of all ranks; 0 where they have not come */
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

/* Which micro-batch of the step is this rank's i-th: ranks have neighbours each; or, where each is summed over ranks by
 * itself, or what is trained on depends on the micro-batches before it, take them by turns. */
static int64_t batch_of(const struct under_way *u, const struct model *m, int64_t i)
{
    const struct comm *batch = u->p->layout ? u->p->layout->batch : NULL;

    if (!batch)
        return i;
    if (param_buffer_shares(&m->dense.conf, SHARD_OPTIM_GRADS) || model_aux_global(&m->whole))
        return i * batch->size + batch->rank;
    return batch->rank * u->share + i;
}

/* The part whose losses this rank tells; tensor ranks have the same. */
static const struct model *head_of(const struct passes *p)
{
    const struct model *m = p->parts[p->n - 1].model;

    return m->part.heads && !(p->layout && p->layout->tensor->rank > 0) ? m : NULL;
}

/* The first micro-batch of those before `end`, of which there is one, that still has its place. */
static int64_t kept_from(const struct passes *p, int64_t end)
{
    return (end - 1) / p->room * p->room;
}

/* The losses of those set out for the host. */
static int send_losses(struct passes *p, int64_t end, struct err *e)
{
    size_t n = (size_t)(end - kept_from(p, end));

    return head_of(p) ? device_get_later(p->dev, p->host_loss, p->loss, n * (size_t)p->each * sizeof *p->loss, e) : 0;
}

/* They have come. */
static void take_losses(const struct under_way *u, int64_t end)
{
    const struct passes *p = u->p;
    const struct model *m = head_of(p);

    for (int64_t i = kept_from(p, end); m && i < end; i++) {
        const double *from = p->host_loss + i % p->room * p->each, *weight = p->weight + i % p->room * p->each;
        double *to = u->losses + batch_of(u, m, i) * p->each;

        to[0] = from[0];
        for (int64_t k = 0; k < m->mtp.n && u->step; k++)
            to[1 + k] = from[1 + k] * weight[k];
    }
}

/* Where tokens of this rank's i-th micro-batch are, and the targets behind them; room: those that the device does not get. */
static int32_t *place_of(const struct passes *p, const struct model *m, int64_t i)
{
    return p->ids + (size_t)i * ids_of(&m->run);
}

/* Tokens and targets of this rank's i-th micro-batch, in a place; starts, unless NULL, gets where their documents begin. */
static int read_ids(struct under_way *u, const struct model *m, int64_t i, int32_t *tokens, int32_t *starts, struct err *e)
{
    int64_t done = batch_of(u, m, i) * m->b, take = u->n - done < m->b ? u->n - done : m->b, ids = m->b * m->run.t;

    if (take < 0)
        take = 0;
    for (int64_t k = take * m->run.t; k < ids; k++) { /* a last batch that is not full */
        tokens[ids + k] = -1;
        if (starts)
            starts[k] = 0;
    }
    const struct data_rows rows = {tokens, tokens + ids, starts};

    return u->rows ? u->rows->fill(u->rows->arg, done, take, &rows, e)
                   : data_batch(u->p->data, u->split, u->first + done, take, &rows, e);
}

/* What the part needs of tokens, targets, documents and dropout of this rank's i-th micro-batch; when all places have been used,
 * the device is to be done with them. */
static int read_batch(struct under_way *u, const struct model *m, struct model_batch *b, int64_t i, struct err *e)
{
    struct passes *p = u->p;
    int64_t at = i % p->room;
    int32_t *tokens = place_of(p, m, at), *targets = tokens + m->b * m->run.t;

    if (i && at == 0) {
        TRY(send_losses(p, i, e));
        TRY(device_sync(p->dev, e));
        take_losses(u, i);
    }
    if (b->drop) {
        p->drop[at] = *b->drop;
        b->drop = &p->drop[at];
    }
    if (!model_looks_up(m) && !m->part.heads && !p->starts)
        return 0;
    TRY(read_ids(u, m, i, tokens, p->starts, e));
    if (p->starts)
        b->here = p->here + (size_t)at * ids_of(&m->run);
    b->tokens = tokens;
    b->targets = targets;
    b->starts = p->starts;
    if (m->mtp.n && u->step) {
        mtp_rows(m, b, p->further + at * m->mtp.n * MTP_ROWS * m->b * m->run.t, p->rows, p->weight + at * p->each);
        b->further = p->rows;
    }
    model_ids_here(m, tokens);
    model_ids_here(m, targets);
    return 0;
}

static int forward(struct under_way *u, struct model *m, struct model_batch *b, int64_t i, const void *in, void *out,
                   struct err *e)
{
    const struct model *head = head_of(u->p);

    TRY(read_batch(u, m, b, i, e));
    lap(u, PHASE_DATA);
    if (in)
        TRY(pipeline_take(&u->p->pipe, model_stream_in(m, b->slot), in, e));
    TRY(model_take(m, b, e));
    TRY(model_forward(m, b, u->p->loss + i % u->p->room * u->p->each, e));
    if (u->rows && head && m == head)
        TRY(u->rows->headed(u->rows->arg, m, batch_of(u, m, i) * m->b, e));
    if (out)
        TRY(pipeline_give(&u->p->pipe, out, model_stream_out(m, b->slot), e));
    lap(u, PHASE_FORWARD);
    return 0;
}

/* The losses of tokens further on of this rank's i-th micro-batch, which has gone back. */
static int keep_further(struct passes *p, const struct model *m, int64_t i, struct err *e)
{
    if (!m->mtp.n)
        return 0;
    return device_copy(p->dev, p->loss + i % p->room * p->each + 1, m->mtp.loss, (size_t)m->mtp.n * sizeof *p->loss, e);
}

static int backward(struct under_way *u, struct train_part *part, const struct model_batch *b, int64_t i, const void *in,
                    void *out, struct err *e)
{
    struct model *m = part->model;

    if (in)
        TRY(pipeline_take(&u->p->pipe, model_stream_grad(m), in, e));
    model_backward_begin(m, i, u->share);
    TRY(model_backward(m, b, e));
    TRY(keep_further(u->p, m, i, e));
    if (out)
        TRY(pipeline_give(&u->p->pipe, out, model_stream_grad(m), e));
    TRY(model_backward_end(m, e));
    lap(u, PHASE_BACKWARD);
    return 0;
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
        b->grad_scale = (float)(1 / fmax(u->tokens, 1));
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
        int64_t ids = m->b * m->run.t;
        int32_t *tokens = place_of(u->p, m, u->p->room);

        TRY(read_ids(u, m, i, tokens, NULL, e));
        for (int64_t j = 0; j < ids; j++)
            u->counted[batch_of(u, m, i)] += tokens[ids + j] >= 0;
    }
    if (l)
        TRY(data_parallel_gather(l->world, u->counted, all, e));
    for (int64_t k = 0; k < all; k++)
        sum += u->counted[k];
    u->tokens = sum;
    return 0;
}

/* What a step says of this rank's i-th micro-batch. */
static void of_step(const struct under_way *u, const struct model *m, int64_t i, struct model_dropout *drop,
                    struct model_batch *b)
{
    int64_t k = batch_of(u, m, i);

    *drop = (struct model_dropout){u->step->seed, {u->step->step, k * m->b}};
    b->drop = drop;
    weigh(u, m, k, b);
}

static int one(void *arg, const struct pipeline_op *op, const void *in, void *out, struct err *e)
{
    struct under_way *u = arg;
    struct train_part *part = &u->p->parts[op->chunk];
    struct model *m = part->model;
    struct model_dropout drop;
    struct model_batch b = {.slot = slot_of(u->p, op->chunk, op->back ? op->micro : -1)};
    const char *what = op->back ? "backward of micro-batch" : "forward of micro-batch";
    double from;
    int rc;

    lap(u, PHASE_WAIT);
    if (u->step)
        of_step(u, m, op->micro, &drop, &b);
    u->p->held[b.slot] = (struct pipeline_op){.chunk = op->chunk, .micro = u->step && !op->back ? op->micro : -1};
    from = trace_begin(u->p->trace, what, op->micro);
    rc = op->back ? backward(u, part, &b, op->micro, in, out, e) : forward(u, m, &b, op->micro, in, out, e);
    trace_end(u->p->trace, TRACE_PROFILER, what, op->micro, from);
    if (rc == 0 && !u->step && op->chunk == u->p->n - 1 && u->p->evaluated)
        u->p->evaluated(u->p->evaluated_arg, op->micro + 1, u->share);
    return rc;
}

/* Forward and backward of this rank's i-th micro-batch in one. */
static int both(struct under_way *u, int64_t i, struct err *e)
{
    struct passes *p = u->p;
    struct model *m = p->parts->model;
    struct model_dropout drop;
    struct model_batch b = {0};
    double from;

    of_step(u, m, i, &drop, &b);
    from = trace_begin(p->trace, "micro-batch", i);
    TRY(read_batch(u, m, &b, i, e));
    lap(u, PHASE_DATA);
    model_backward_begin(m, i, u->share);
    TRY(model_graph_run(&p->graph, &b, i > 0, e));
    TRY(device_copy(p->dev, p->loss + i % p->room * p->each, p->graph.loss, sizeof *p->loss, e));
    TRY(keep_further(p, m, i, e));
    TRY(model_backward_end(m, e));
    lap(u, PHASE_FORWARD);
    trace_end(p->trace, TRACE_PROFILER, "micro-batch", i, from);
    return 0;
}

static int pass_all(struct under_way *u, int64_t all, struct err *e)
{
    memset(u->losses, 0, (size_t)(all * u->p->each) * sizeof *u->losses);
    for (int i = 0; i < u->p->n; i++)
        model_fp8_begin(u->p->parts[i].model, false);
    for (int i = 0; i < u->p->parts->model->run.slots; i++)
        u->p->held[i].micro = -1;
    u->at = log_seconds();
    u->tokens = (double)(u->n * u->p->parts->model->run.t);
    if (u->counted)
        TRY(count(u, all, e));
    if (u->step && u->p->graph.model) {
        for (int64_t i = 0; i < u->share; i++)
            TRY(both(u, i, e));
    } else {
        TRY(pipeline_pass(&u->p->pipe, u->share, !u->step, one, u, e));
    }
    lap(u, PHASE_WAIT);
    return send_losses(u->p, u->share, e);
}

/* Those of all ranks, when what was run is done; the ones that were taken before stay. */
static int gather_losses(const struct under_way *u, struct err *e)
{
    const struct layout *l = u->p->layout;

    take_losses(u, u->share);
    return l ? data_parallel_gather(l->world, u->losses, u->share * l->data * u->p->each, e) : 0;
}

static struct under_way step_of(struct passes *p, const struct passes_step *s, double *losses, double *phase)
{
    int64_t each = p->parts->model->b * (p->layout ? p->layout->data : 1);

    return (struct under_way){
        .p = p, .step = s, .split = GPT_TRAIN, .first = s->first, .n = s->batch, .share = s->batch / each, .losses = losses,
        .phase = phase,
    };
}

/* All micro-batches of this rank; their losses are on the way. */
static int run(struct under_way *u, struct err *e)
{
    int64_t all = u->share * (u->p->layout ? u->p->layout->data : 1);
    int rc = 0;

    if (!u->rows && data_masked(u->p->data)) {
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
    struct under_way u = step_of(p, s, losses, phase);

    TRY(run(&u, e));
    *tokens = fmax(u.tokens, 1);
    return 0;
}

int passes_losses(struct passes *p, const struct passes_step *s, double *losses, struct err *e)
{
    struct under_way u = step_of(p, s, losses, NULL);

    return gather_losses(&u, e);
}

int passes_look(struct passes *p, const struct passes_rows *rows, struct err *e)
{
    int64_t ranks = p->layout ? p->layout->data : 1, each = p->parts->model->b * ranks;
    double unused[PHASES];
    struct under_way u = {.p = p, .rows = rows, .n = rows->n, .share = (rows->n + each - 1) / each, .phase = unused};
    int rc;

    u.losses = malloc((size_t)((u.share * ranks + 1) * p->each) * sizeof *u.losses);
    rc = u.losses ? run(&u, e) : err_set(e, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = device_sync(p->dev, e);
    free(u.losses);
    return rc;
}

int passes_evaluate(struct passes *p, int split, int64_t first, int64_t n, double *loss, double *tokens, struct err *e)
{
    int64_t ranks = p->layout ? p->layout->data : 1, each = p->parts->model->b * ranks, share = (n + each - 1) / each;
    double unused[PHASES], sum = 0;
    struct under_way u = {
        .p = p, .split = split, .first = first, .n = n, .share = share, .phase = unused,
        .losses = malloc((size_t)((share * ranks + 1) * p->each) * sizeof *u.losses),
    };
    int rc = u.losses ? run(&u, e) : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0)
        rc = device_sync(p->dev, e);
    if (rc == 0)
        rc = gather_losses(&u, e);
    for (int64_t k = 0; rc == 0 && k < share * ranks; k++)
        sum += u.losses[k * p->each];
    free(u.losses);
    if (tokens)
        *tokens = u.tokens;
    *loss = sum / fmax(u.tokens, 1);
    return rc;
}
