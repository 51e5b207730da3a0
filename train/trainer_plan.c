/* What a rank has of the model, how it is used, and the memory that this takes. */
#include <string.h>

#include "kernels/eight_bit.h"
#include "train/fp8.h"
#include "train/trainer.h"

/* That of flat buffers; state in blocks is not cut by shards. */
static size_t align_of(const struct train_config *c)
{
    size_t align = bucketing_align(model_config_params(&c->model));
    bool blocks = c->optim.moment[0] == DTYPE_8BIT || c->optim.moment[1] == DTYPE_8BIT;

    return blocks && align < EIGHT_BIT_BLOCK ? EIGHT_BIT_BLOCK : align;
}

/* replicas, model: the groups of those names (train/layout.h), of which for a plan the size is enough. */
static struct model_run config_run(const struct train_config *c, struct comm *replicas, struct comm *model)
{
    return (struct model_run){
        .dt = c->bf16 ? DTYPE_BF16 : DTYPE_F32, .use = MODEL_TRAIN, .b = c->micro_batch, .t = c->model.seq,
        .optim = &c->optim, .freeze = c->freeze.v, .n_freeze = c->freeze.n,
        .reset_positions = c->documents.positions, .reset_attention = c->documents.attention,
        .recompute = (enum recompute)c->recompute, .block = c->recompute_method == 1, .layers = c->recompute_layers,
        .fp8 = c->fp8,
        .dense = {
            .sharding = (enum sharding)c->sharding, .replicas = replicas, .model = model,
            .state = {(enum dtype)c->optim.moment[0], (enum dtype)c->optim.moment[1]},
            .offload = c->offload, .bf16_alone = c->main_params == MAIN_BF16,
            .align = align_of(c), .bucket = c->bucket,
            .micro_batches = c->micro_batches, .tree = c->deterministic, .overlap_reduce = c->overlap_reduce,
            .overlap_gather = c->overlap_gather, .reduce_bf16 = c->reduce_bf16,
        },
    };
}

/* What a stage has of the model in its i-th part, and how it is used. */
void trainer_part(const struct train_config *c, const struct layout *l, int stage, int i, struct model_part *part,
                  struct model_run *run)
{
    const struct stages *s = &c->stages;
    const struct pipeline_shape shape = {(int)s->stages, (int)s->chunks, c->micro_batches, false};

    *part = (struct model_part){
        .embeds = stage == 0 && i == 0, .heads = stage == s->stages - 1 && i == s->chunks - 1, .tensor = l->tensor,
        .apart = c->deterministic, .sequence = c->layout.sequence, .context = l->context, .expert = l->expert,
    };
    stages_layers(s, stage, i, &part->first, &part->layers);
    *run = config_run(c, l->replicas, l->model);
    run->world = l->world;
    run->adapters = run->experts = run->dense;
    /* What is not trained needs no fp32 weights. */
    run->dense.bf16_alone |= c->model.lora_rank && c->bf16 && !c->offload;
    run->experts.bf16_alone = run->dense.bf16_alone;
    run->experts.replicas = l->expert_replicas;
    run->experts.model = l->expert_model;
    run->experts.copies = c->deterministic ? l->expert->size : 0;
    run->expert_adapters = run->experts;
    run->expert_adapters.bf16_alone = run->adapters.bf16_alone;
    run->slots = pipeline_slots(&shape, stage);
}

/* Elements that a checkpoint has of a param buffer. */
static size_t saved_elements(const struct param_buffer_memory *b, const struct param_buffer_conf *conf)
{
    size_t n = b->elements;

    for (int k = 0; k < PARAM_STATES; k++)
        n += (b->state[k] + (conf->state[k] == DTYPE_8BIT ? b->state[k] / EIGHT_BIT_BLOCK + 1 : 0)) *
             (size_t)param_buffer_ranks(conf);
    return n;
}

/* Adds what the optimizer keeps of a param buffer, which may be of experts. */
static void add_shard(const struct train_config *c, const struct param_buffer_memory *b, const struct param_buffer_conf *conf,
                      bool experts, struct train_memory *m)
{
    const struct zero_memory z = zero_plan(b, conf, c->bf16 ? DTYPE_BF16 : DTYPE_F32);

    m->model.weights += z.weights;
    m->optimizer += z.optimizer;
    matrix_size_fit(&m->matrix, &b->matrix);
    m->host += z.host;
    (b->trained ? m->trained : m->frozen)[experts] += b->elements;
    if (b->trained) {
        m->shard += b->elements / (size_t)param_buffer_ranks(conf);
        m->tensors += (double)b->tensors / param_buffer_ranks(conf);
    }
    if (c->async_save)
        m->save += saved_elements(b, conf) * sizeof(float) / (size_t)conf->replicas->size;
}

/* Adds what the i-th part of a stage takes. */
static int add_part(const struct train_config *c, int stage, int i, struct train_memory *m, struct err *e)
{
    struct comm tensor = {.size = (int)c->layout.tensor}, context = {.size = (int)c->layout.context}; /* one of them */
    struct comm replicas = {.size = (int)train_config_replicas(c)};
    struct comm expert = {.size = (int)c->layout.expert}, expert_replicas = {.size = replicas.size / expert.size};
    const struct layout l = {.tensor = &tensor, .context = &context, .replicas = &replicas, .expert = &expert,
                             .expert_replicas = &expert_replicas};
    struct model_part part;
    struct model_run run;
    struct model_memory one;
    int adapters = c->model.experts ? 2 : 1;

    trainer_part(c, &l, stage, i, &part, &run);
    TRY(model_plan(&one, &c->model, &part, &run, e));
    add_shard(c, &one.buffer[0], &run.dense, false, m);
    if (c->model.experts)
        add_shard(c, &one.buffer[1], &run.experts, true, m);
    if (c->model.lora_rank)
        add_shard(c, &one.buffer[adapters], &run.adapters, false, m);
    if (c->model.lora_targets & LORA_TARGET_EXPERTS)
        add_shard(c, &one.buffer[adapters + 1], &run.expert_adapters, true, m);
    m->model.weights += one.weights;
    m->model.low += one.low;
    m->model.grads += one.grads;
    m->model.activations += one.alone;
    model_pool_fit(&m->model.pool, &one.pool);
    if (i == 0)
        m->model.activations += passes_bytes(c->stages.stages, &c->model, &part, &run);
    m->model.tables += one.tables;
    m->model.fp8 += one.fp8;
    return 0;
}

int trainer_plan_stage(const struct train_config *c, int stage, struct train_memory *m, struct err *e)
{
    *m = (struct train_memory){.optimizer = optimizer_bytes()};
    for (int i = 0; i < c->stages.chunks; i++)
        TRY(add_part(c, stage, i, m, e));
    m->optimizer += matrices_bytes(&c->optim, &m->matrix, (int)c->layout.tensor, (int)train_config_replicas(c));
    m->save += c->async_save ? matrices_lines(&c->optim, &m->matrix) : 0;
    m->model.activations += model_pool_bytes(&m->model.pool);
    if (c->save || c->async_save)
        m->save += sizeof(float) * (c->async_save ? 1 : SAVER_STAGE + 1);
    m->total = m->model.weights + m->model.low + m->model.fp8 + m->model.grads + m->model.activations + m->model.tables +
               m->optimizer;
    return 0;
}

int trainer_plan(const struct train_config *c, struct train_memory *m, struct err *e)
{
    memset(m, 0, sizeof *m);
    for (int stage = 0; stage < c->stages.stages; stage++) {
        struct train_memory s;

        TRY(trainer_plan_stage(c, stage, &s, e));
        if (s.total > m->total)
            *m = s;
    }
    return 0;
}
