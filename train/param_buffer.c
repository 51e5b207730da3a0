#include "train/param_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/eight_bit.h"

int param_buffer_turn(const struct param_buffer *b, int unit)
{
    const struct params *p = &b->params;

    if (unit > 0 && unit < p->units - 1)
        return unit % 2;
    return unit > 0 && (p->output == p->word || p->n_mtp) ? 3 : 2;
}

/* ---- sizes ---- */

/* Elements of the i-th buffer of bf16 gradients. */
static size_t wire_elements(const struct param_buffer_conf *c, const struct param_buffer_memory *m, int i)
{
    if (!c->reduce_bf16 || !c->replicas || c->replicas->size == 1)
        return 0;
    return param_buffer_shares(c, SHARD_OPTIM_GRADS) ? m->unit[i] : i < COMM_UNDER_WAY ? m->bucket : 0;
}

/* What lies beside the flat buffers. */
static void measure_communication(const struct param_buffer_conf *c, enum dtype dt, struct param_buffer_memory *m)
{
    bool divided = param_buffer_shares(c, SHARD_OPTIM_GRADS);
    size_t shard = m->elements / (size_t)param_buffer_ranks(c), units = 0;
    size_t levels = c->tree ? (size_t)data_parallel_levels(c->micro_batches) : 0, copies = (size_t)param_buffer_copies(c);

    for (int i = 0; i < COMM_BUFFERS; i++) {
        units += m->unit[i];
        m->reduced += m->trained ? wire_elements(c, m, i) * sizeof(uint16_t) : 0;
    }
    if (m->trained && divided)
        m->reduced += (units * copies + shard * (1 + levels)) * sizeof(float);
    else if (m->trained)
        m->reduced += m->elements * sizeof(float) * levels * (param_buffer_by_turns(c) ? 1 : copies);
    if (param_buffer_shares(c, SHARD_OPTIM_GRADS_PARAMS))
        m->gathered = units * dtype_size(dt);
}

/* The largest bucket, and the largest unit of each communication buffer. */
static void measure_largest(const struct param_buffer *b, struct param_buffer_memory *m)
{
    for (int i = 0; i < b->buckets.n; i++) {
        size_t n = b->buckets.at[i + 1] - b->buckets.at[i];

        m->bucket = n > m->bucket ? n : m->bucket;
    }
    for (int i = 0; i < b->params.units; i++) {
        size_t n = b->unit[i + 1].at - b->unit[i].at, *most = &m->unit[param_buffer_turn(b, i)];

        *most = n > *most ? n : *most;
    }
}

/* Whether some of the optimizer's state is in blocks, which are not to be cut. */
static bool has_blocks(const struct param_buffer_conf *c)
{
    return c->state[0] == DTYPE_8BIT || c->state[1] == DTYPE_8BIT;
}

/* What tensor ranks have of each parameter begins and ends with a block of it, row by row. */
static int check_blocks(const struct params *p, struct err *e)
{
    for (int i = 0; i < p->n; i++) {
        const struct param *q = &p->v[i];
        int64_t cols = q->dims > 1 ? q->shape[1] : 1;
        bool cut = q->split == 1 && cols < q->whole[1] && cols % EIGHT_BIT_BLOCK;

        for (int k = 0; k < q->parts && q->split == 0 && q->shape[0] < q->whole[0]; k++)
            cut |= q->part[k] * cols % EIGHT_BIT_BLOCK != 0;
        if (cut)
            return err_set(e, ERR_ARG, "moments of 8bit: --tensor-model-parallel-size cuts '%s' within a block of %d elements",
                           q->name, EIGHT_BIT_BLOCK);
    }
    return 0;
}

int param_buffer_plan(struct param_buffer *b, const struct param_buffer_conf *conf, enum dtype dt, bool trained, struct err *e)
{
    struct params *p = &b->params;
    struct param_buffer_memory *m = &b->memory;
    int ranks = param_buffer_ranks(conf);
    bool divided = param_buffer_shares(conf, SHARD_OPTIM_GRADS);
    size_t align = conf->align ? conf->align : 1, flat = align * (size_t)ranks;

    b->conf = *conf;
    b->dt = dt;
    if (b->conf.micro_batches < 1)
        b->conf.micro_batches = 1;
    for (int i = 0; i < p->n && !trained; i++)
        p->v[i].frozen = true;
    p->experts_apart = conf->tree;
    if (has_blocks(conf) && trained)
        TRY(check_blocks(p, e));
    params_round(p, has_blocks(conf) ? EIGHT_BIT_BLOCK : 1, align, divided ? flat : align, flat);
    b->unit = calloc((size_t)p->units + 1, sizeof *b->unit);
    if (!b->unit)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i <= p->units; i++)
        b->unit[i].at = params_unit_at(p, i);
    TRY(bucketing_open(&b->buckets, p, conf->align ? align : p->elements, ranks, ranks > 1 ? conf->replicas->rank : 0,
                     divided ? 0 : conf->bucket ? conf->bucket : p->elements, e));
    *m = (struct param_buffer_memory){.elements = p->elements, .tensors = p->n, .trained = trained};
    measure_largest(b, m);
    m->matrix = params_matrices(p);
    for (int k = 0; k < PARAM_STATES; k++)
        m->state[k] = trained ? bucketing_state(&b->buckets, p, k) : 0;
    /* In bf16 the fp32 weights are the optimizer's, when it has them by shards or elsewhere. */
    if (!param_buffer_shares(conf, dt == DTYPE_BF16 ? SHARD_OPTIM : SHARD_OPTIM_GRADS_PARAMS) &&
        !(conf->offload && dt == DTYPE_BF16) && !conf->bf16_alone)
        m->weights = p->elements * sizeof(float);
    if (dt == DTYPE_BF16 && !param_buffer_shares(conf, SHARD_OPTIM_GRADS_PARAMS))
        m->low = p->elements * sizeof(uint16_t);
    b->trained = trained;
    if (trained && !divided)
        m->grads = p->elements * sizeof(float) * (size_t)param_buffer_copies(conf);
    measure_communication(&b->conf, dt, m);
    return 0;
}

/* ---- memory ---- */

/* Zeroed where ranks share it or it is trained: padding between tensors is never written, but gathered, and added up. */
static int alloc(struct param_buffer *b, enum memory_kind kind, void **p, size_t bytes, const char *what, struct err *e)
{
    if (!bytes)
        return 0;
    if (device_alloc_as(b->dev, kind, p, bytes, e) < 0)
        return err_wrap(e, "%s: %zu MiB", what, bytes >> 20);
    return b->trained || b->conf.replicas ? device_zero(b->dev, *p, bytes, e) : 0;
}

static int open_flat(struct param_buffer *b, struct err *e)
{
    const struct param_buffer_memory *m = &b->memory;
    char *used;

    TRY(alloc(b, MEMORY_WEIGHTS, (void **)&b->weights, m->weights, "weights", e));
    TRY(alloc(b, MEMORY_WEIGHTS, (void **)&b->low, m->low, "bf16 weights", e));
    TRY(alloc(b, MEMORY_GRADIENTS, (void **)&b->grads, m->grads, "gradients", e));
    used = b->low ? (char *)b->low : b->dt == DTYPE_BF16 ? NULL : (char *)b->weights;
    for (int i = 0; i < b->params.units; i++) {
        struct param_unit *u = &b->unit[i];

        u->weights = used ? used + u->at * dtype_size(b->dt) : NULL;
        u->grads = b->grads ? b->grads + u->at : NULL;
    }
    return 0;
}

/* What gradients and weights go through; memory.reduced and .gathered are its sum. */
static int open_communication(struct param_buffer *b, struct err *e)
{
    const struct param_buffer_conf *c = &b->conf;
    bool divided = param_buffer_shares(c, SHARD_OPTIM_GRADS);
    size_t shard = bucketing_own(&b->buckets), copies = (size_t)param_buffer_copies(c);
    size_t summed = divided ? shard : b->params.elements * (param_buffer_by_turns(c) ? 1 : copies);

    if (divided && b->trained)
        TRY(alloc(b, MEMORY_GRADIENTS, (void **)&b->shard_grads, shard * sizeof(float), "gradients of a shard", e));
    if (b->trained)
        TRY(data_parallel_open(&b->sums, b->dev, summed, c->micro_batches, c->tree, e));
    for (int i = 0; i < COMM_BUFFERS; i++) {
        size_t n = b->memory.unit[i];

        if (divided && b->trained)
            TRY(alloc(b, MEMORY_GRADIENTS, &b->reduce[i].p, n * copies * sizeof(float), "gradients of a unit", e));
        if (param_buffer_shares(c, SHARD_OPTIM_GRADS_PARAMS))
            TRY(alloc(b, MEMORY_WEIGHTS, &b->gather[i].p, n * dtype_size(b->dt), "weights of a unit", e));
        if (b->trained)
            TRY(alloc(b, MEMORY_GRADIENTS, (void **)&b->wire[i], wire_elements(c, &b->memory, i) * sizeof(uint16_t),
                      "bf16 gradients", e));
    }
    return 0;
}

int param_buffer_open(struct param_buffer *b, struct device *dev, struct err *e)
{
    b->dev = dev;
    for (int i = 0; i < COMM_BUFFERS; i++)
        b->gather[i].unit = b->reduce[i].unit = -1;
    b->asked = b->gathered = b->buckets.n;
    b->calls = calloc((size_t)b->buckets.n + 1, sizeof *b->calls);
    if (!b->calls)
        return err_set(e, ERR_NOMEM, "out of memory");
    TRY(open_flat(b, e));
    return open_communication(b, e);
}

void param_buffer_close(struct param_buffer *b)
{
    for (int i = 0; b->dev && i < COMM_BUFFERS; i++) {
        device_free(b->dev, b->gather[i].p);
        device_free(b->dev, b->reduce[i].p);
        device_free(b->dev, b->wire[i]);
    }
    if (b->dev) {
        device_free(b->dev, b->weights);
        device_free(b->dev, b->low);
        device_free(b->dev, b->grads);
        device_free(b->dev, b->shard_grads);
    }
    data_parallel_close(&b->sums);
    params_free(&b->params);
    bucketing_close(&b->buckets);
    free(b->unit);
    free(b->calls);
    memset(b, 0, sizeof *b);
}
