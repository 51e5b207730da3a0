/* Memory of the model. */
#include "train/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/layer_attention.h"
#include "train/model_pass.h"
#include "train/model_room.h"

/* What of config a tensor rank has of a layer, and how many layers there are. */
static struct model_config share_of(const struct model_config *config, const struct model_part *part)
{
    struct model_config c = *config;
    int64_t n = part->tensor ? part->tensor->size : 1;

    c.layers = part->layers;
    c.heads /= n;
    c.groups /= n;
    c.ffn /= n;
    c.moe_ffn /= n;
    c.moe_shared /= n;
    c.padded_vocab /= n;
    return c;
}

/* The parameters of a buffer, those that m->part.of says. */
static int lay_out(const struct model *m, struct param_buffer *b, struct err *e)
{
    TRY(params_init(&b->params, &m->whole, &m->part, e));
    for (int i = 0; i < m->run.n_freeze; i++)
        params_freeze(&b->params, m->run.freeze[i]);
    if (m->run.optim)
        optim_rules(m->run.optim, &b->params);
    return 0;
}

static int measure_experts(struct model *m, struct err *e)
{
    size_t n = (size_t)m->config.experts, sets = (size_t)m->run.slots * (size_t)pass_layers(m);

    m->part.of = PART_EXPERTS;
    m->buffers[m->n_buffers++] = &m->experts;
    TRY(lay_out(m, &m->experts, e));
    TRY(param_buffer_plan(&m->experts, &m->run.experts, m->dt, m->run.use == MODEL_TRAIN && !m->whole.lora_rank, e));
    m->part.of = PART_DENSE;
    m->moe.counts = calloc((sets * 2 + 1) * n + 1, sizeof *m->moe.counts);
    m->moe.rows_here = m->moe.counts ? m->moe.counts + sets * 2 * n : NULL;
    m->moe.moved = calloc(2 * n, sizeof *m->moe.moved);
    m->moe.bias.host = calloc((size_t)pass_layers(m) * n + 1, sizeof *m->moe.bias.host);
    m->moe.bias.name = calloc((size_t)pass_layers(m) + 1, sizeof *m->moe.bias.name);
    if (!m->moe.counts || !m->moe.moved || !m->moe.bias.host || !m->moe.bias.name)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int64_t i = 0; i < m->config.layers; i++)
        snprintf(m->moe.bias.name[i], sizeof *m->moe.bias.name, "decoder.layers.%lld.mlp.router.expert_bias",
                 (long long)(m->part.first + i));
    for (int64_t i = 0; i < m->mtp.n; i++)
        snprintf(m->moe.bias.name[m->config.layers + i], sizeof *m->moe.bias.name,
                 "mtp.layers.%lld.transformer_layer.mlp.router.expert_bias", (long long)i);
    return 0;
}

static int measure_adapters(struct model *m, enum part_of of, struct param_buffer *b, const struct param_buffer_conf *conf,
                            struct err *e)
{
    m->part.of = of;
    m->buffers[m->n_buffers++] = b;
    TRY(lay_out(m, b, e));
    m->part.of = PART_DENSE;
    return param_buffer_plan(b, conf, m->dt, m->run.use == MODEL_TRAIN, e);
}

/* Numbers that the cache has of a token in a layer; and bytes of those of them that come first, of all tokens. */
static int64_t cache_width(const struct model_config *c)
{
    return c->latent ? model_latent_width(c) : 2 * model_kv_width(c);
}
static size_t cache_first(const struct model *m)
{
    int64_t width = cache_width(&m->config), first = m->config.latent ? m->config.kv_rank : width / 2;

    return m->memory.cache / (size_t)width * (size_t)first;
}

/* Sets up the table of parameters and measures; no slab is allocated. */
static int measure(struct model *m, const struct model_config *config, const struct model_part *part,
                   const struct model_run *run, struct err *e)
{
    struct carves c = {0};

    m->whole = *config;
    if (run->use != MODEL_TRAIN)
        m->whole.mtp_layers = 0;
    m->part = part ? *part : model_part_whole(config);
    m->run = *run;
    if (m->run.layers < 1)
        m->run.layers = 1;
    if (m->run.slots < 1)
        m->run.slots = 1;
    m->dt = run->dt;
    m->b = run->b;
    m->t = run->t;
    if (pass_ring(m)) {
        if (m->t % (2 * m->part.context->size))
            return err_set(e, ERR_ARG, "--context-parallel-size: %d ranks cut a sequence in %d equal parts; its %lld tokens"
                           " are no multiple of that", m->part.context->size, 2 * m->part.context->size, (long long)m->t);
        m->t /= m->part.context->size;
    }
    if (!pass_shared(m))
        m->part.sequence = false;
    m->buffers[m->n_buffers++] = &m->dense;
    m->part.of = PART_DENSE;
    TRY(lay_out(m, &m->dense, e));
    TRY(param_buffer_plan(&m->dense, &run->dense, m->dt, run->use == MODEL_TRAIN && !config->lora_rank, e));
    m->config = share_of(config, &m->part);
    m->mtp.n = m->dense.params.n_mtp;
    m->mtp.depth = calloc((size_t)m->mtp.n + 1, sizeof *m->mtp.depth);
    if (!m->mtp.depth)
        return err_set(e, ERR_NOMEM, "out of memory");
    if (config->experts)
        TRY(measure_experts(m, e));
    if (config->lora_rank)
        TRY(measure_adapters(m, PART_ADAPTERS, &m->adapters, &m->run.adapters, e));
    if (config->lora_targets & LORA_TARGET_EXPERTS)
        TRY(measure_adapters(m, PART_EXPERT_ADAPTERS, &m->expert_adapters, &m->run.expert_adapters, e));
    m->own = m->b * m->t;
    if (m->part.sequence) {
        if (m->own % m->part.tensor->size)
            return err_set(e, ERR_ARG, "--sequence-parallel: %d ranks cannot share the %lld tokens of a micro-batch",
                           m->part.tensor->size, (long long)m->own);
        m->own /= m->part.tensor->size;
    }
    m->slot = calloc((size_t)m->run.slots, sizeof *m->slot);
    if (!m->slot)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < m->run.slots; i++) {
        m->slot[i].layers = calloc((size_t)(pass_layers(m) + 1), sizeof *m->slot[i].layers);
        if (!m->slot[i].layers)
            return err_set(e, ERR_NOMEM, "out of memory");
        for (int64_t k = 0; k < pass_layers(m) && m->moe.counts; k++) {
            m->slot[i].layers[k].experts.counts = m->moe.counts + (i * pass_layers(m) + k) * 2 * m->config.experts;
            m->slot[i].layers[k].experts.heard = m->slot[i].layers[k].experts.counts + m->config.experts;
        }
    }
    if (run->fp8.format)
        TRY(model_fp8_plan(m, e));
    model_room(m, &c);
    for (int i = 0; i < m->n_buffers; i++) {
        const struct param_buffer_memory *b = &m->buffers[i]->memory;

        m->memory.buffer[i] = *b;
        m->memory.weights += b->weights + b->gathered;
        m->memory.low += b->low;
        m->memory.grads += b->grads + b->reduced;
    }
    m->memory.fp8 = m->fp8 ? model_fp8_bytes(m->fp8) : 0;
    m->memory.alone = c.alone.used;
    m->memory.pool = (struct model_pool_size){.slots = m->run.slots, .slot = c.slot.used, .work = c.work.used,
                                              .slot_rooms = c.slot_rooms, .work_rooms = c.work_rooms};
    if (c.slot_rooms + c.work_rooms)
        pass_rooms(m, &m->memory.pool);
    m->memory.activations = c.alone.used + model_pool_bytes(&m->memory.pool);
    if (run->use == MODEL_GENERATE)
        m->memory.cache = (size_t)(m->config.layers * m->b * m->t * cache_width(&m->config)) * dtype_size(m->dt);
    m->memory.tables = (size_t)(rotary_tables(config) * run->t * model_rotary_width(config)) * sizeof(float);
    return 0;
}

static void free_tables(struct model *m)
{
    model_fp8_close(m);
    for (int i = 0; i < m->n_buffers; i++)
        param_buffer_close(m->buffers[i]);
    for (int i = 0; m->slot && i < m->run.slots; i++)
        free(m->slot[i].layers);
    free(m->slot);
    free(m->mtp.depth);
    free(m->moe.counts);
    free(m->moe.moved);
    free(m->moe.bias.host);
    free(m->moe.bias.name);
    free(m->moe.order_host);
}

int model_plan(struct model_memory *memory, const struct model_config *config, const struct model_part *part,
               const struct model_run *run, struct err *e)
{
    struct model m = {0};
    int rc = measure(&m, config, part, run, e);

    *memory = m.memory;
    free_tables(&m);
    return rc;
}

/* The angles of all positions. */
static int fill_turns(struct model *m, struct err *e)
{
    int64_t each = m->run.t * model_rotary_width(&m->config);
    float *host;
    int rc;

    if (!m->turns)
        return 0;
    host = malloc(m->memory.tables);
    if (!host)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < rotary_tables(&m->config); i++)
        rotary_fill(&m->config, i, m->run.t, host + i * each);
    rc = device_put(m->dev, m->turns, host, m->memory.tables, e);
    free(host);
    return rc;
}

static int allocate(struct model *m, struct err *e)
{
    const struct {
        void **p;
        size_t bytes;
        const char *what;
    } slabs[] = {
        {&m->slab, m->memory.alone, "activations"},
        {&m->cache_slab, m->memory.cache, "the key-value cache"},
        {(void **)&m->turns, m->memory.tables, "the rotary angles"},
    };

    for (int i = 0; i < m->n_buffers; i++)
        TRY(param_buffer_open(m->buffers[i], m->dev, e));
    for (size_t i = 0; i < sizeof slabs / sizeof *slabs; i++)
        if (slabs[i].bytes && device_alloc_as(m->dev, MEMORY_ACTIVATIONS, slabs[i].p, slabs[i].bytes, e) < 0)
            return err_wrap(e, "%s: %zu MiB", slabs[i].what, slabs[i].bytes >> 20);
    if (!m->run.pool)
        TRY(model_pool_open(&m->own_pool, m->dev, &m->memory.pool, e));
    m->pool = m->run.pool ? m->run.pool : &m->own_pool;
    return 0;
}

int model_open(struct model **out, struct device *dev, const struct model_config *config,
               const struct model_part *part, const struct model_run *run, struct err *e)
{
    struct model *m = calloc(1, sizeof *m);
    struct model_pool_size size;
    int rc;

    if (!m)
        return err_set(e, ERR_NOMEM, "out of memory");
    m->dev = dev;
    rc = measure(m, config, part, run, e);
    if (rc == 0)
        rc = allocate(m, e);
    if (rc == 0 && m->fp8)
        rc = model_fp8_open(m, e);
    if (rc == 0)
        rc = fill_turns(m, e);
    if (rc == 0) {
        size = m->memory.pool = m->pool->size;
        model_room(m, &(struct carves){.slot = {m->pool->slab, 0}, .work = {m->pool->slab + (size_t)size.slots * size.slot, 0},
                                 .alone = {m->slab, 0}});
        m->cache_k = m->cache_slab;
        m->cache_v = m->cache_slab ? (char *)m->cache_slab + cache_first(m) : NULL;
        if (m->moe.unevenness)
            rc = device_zero(dev, m->moe.unevenness, sizeof *m->moe.unevenness, e);
        if (rc == 0 && m->moe.bias.now)
            rc = device_zero(dev, m->moe.bias.now, (size_t)(pass_layers(m) * config->experts) * sizeof(float), e);
        if (rc == 0 && m->moe.bias.load)
            rc = device_zero(dev, m->moe.bias.load, (size_t)(pass_layers(m) * config->experts) * sizeof(int32_t), e);
        if (rc == 0 && run->use != MODEL_GENERATE)
            rc = pass_positions(m, m->b, m->t, 0, e);
    }
    if (rc < 0) {
        model_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

void model_close(struct model *m)
{
    if (!m)
        return;
    device_free(m->dev, m->slab);
    device_free(m->dev, m->cache_slab);
    device_free(m->dev, m->turns);
    model_pool_close(&m->own_pool);
    free_tables(m);
    free(m);
}

int model_weights_changed(struct model *m, struct err *e)
{
    for (int i = 0; i < m->n_buffers; i++)
        TRY(param_buffer_weights_changed(m->buffers[i], e));
    return 0;
}
