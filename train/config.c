#include "train/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt_map.h"

const char *const train_config_device[] = {"auto", "cpu", "cuda"};
const char *const train_config_fp8[] = {"none", "e4m3", "hybrid"};
const char *const train_config_backend[] = {"auto", "mpi", "tcp", "nccl"};
enum { BACKEND_NCCL = 3 };

void train_config_init(struct train_config *c)
{
    memset(c, 0, sizeof *c);
    c->model.attention_dropout = c->model.hidden_dropout = 0.1;
    c->model.init_std = 0.02;
    c->model.norm_eps = 1e-5;
    c->model.rotary_base = 10000;
    c->model.rotary_percent = 1;
    c->model.rope_factor = 8;
    c->vocab_divisor = 128;
    c->micro_batch = 1;
    c->recompute_layers = 1;
    c->spike_window = 64;
    c->max_bad_steps = 10;
    c->spike_action = BAD_SKIP;
    c->seed = 1234;
    c->lr_style = LR_LINEAR;
    c->weight_decay = 0.01;
    c->beta1 = 0.9;
    c->beta2 = 0.999;
    c->eps = 1e-8;
    c->clip_grad = 1.0;
    c->split = "969,30,1";
    c->eval_interval = 1000;
    c->eval_iters = 100;
    c->log_interval = 100;
    c->ckpt_step = -1;
    c->timeout_minutes = 10;
    c->world = c->ranks = 1;
    c->layout = LAYOUT_ALONE;
    c->fp8 = (struct train_fp8){.history = 1, .start_bf16 = 1, .end_bf16 = 1};
}

void train_config_free(struct train_config *c)
{
    opt_list_free(&c->data_path);
    for (int i = 0; i < 3; i++)
        opt_list_free(&c->part_path[i]);
}

#define MAX_N INT64_C(1000000000000)

/* The heading of what may differ from run to run with nothing to be said of it. */
#define DIVISION "Parallelism"

struct opt *train_config_options(struct train_config *c, const struct opt *more)
{
    struct model_config *m = &c->model;
    struct train_later *l = &c->later;
    const struct opt own[] = {
        OPT_HEAD("Model"),
        OPT_STR(0, "preset", &c->preset, "NAME", "gpt2-124m, gpt3-175b, llama3-8b, ...: the model's flags, where not given"),
        OPT_INT(0, "num-layers", &m->layers, 1, 100000, "transformer layers"),
        OPT_INT(0, "hidden-size", &m->hidden, 1, 1 << 20, "width of the residual stream"),
        OPT_INT(0, "num-attention-heads", &m->heads, 1, 1 << 16, "attention heads"),
        OPT_INT(0, "kv-channels", &m->head_dim, 0, 256, "width of a head; 0: hidden size / heads"),
        OPT_FLAG(0, "group-query-attention", &c->group_query, "heads share keys and values"),
        OPT_INT(0, "num-query-groups", &m->groups, 0, 1 << 16, "groups of heads that share; 0: one"),
        OPT_INT(0, "ffn-hidden-size", &m->ffn, 0, 1 << 24, "width inside the MLP; 0: 4 (gated: 8/3) * hidden size"),
        OPT_INT(0, "seq-length", &m->seq, 1, 1 << 24, "tokens of a sample"),
        OPT_INT(0, "max-position-embeddings", &m->positions, 0, 1 << 24, "the longest sequence; 0: seq-length"),
        OPT_ENUM(0, "position-embedding-type", &m->position, "learned_absolute|rope|none", "how positions are told"),
        OPT_NUM(0, "rotary-base", &m->rotary_base, 1, 1e12, "base of the rotary angles"),
        OPT_NUM(0, "rotary-percent", &m->rotary_percent, 1e-6, 1, "share of a head that is rotated"),
        OPT_FLAG(0, "use-rope-scaling", &m->rope_scaling, "Llama 3.1's rotary angles"),
        OPT_NUM(0, "rope-scaling-factor", &m->rope_factor, 1, 1e6, "how much longer its context is than 8192"),
        OPT_ENUM(0, "normalization", &m->norm, "LayerNorm|RMSNorm", "kind of norm"),
        OPT_NUM(0, "norm-epsilon", &m->norm_eps, 1e-30, 1, "added to the variance"),
        OPT_FLAG(0, "swiglu", &m->swiglu, "a gated MLP"),
        OPT_FLAG(0, "qk-layernorm", &m->qk_norm, "normalise queries and keys, head by head"),
        OPT_FLAG(0, "disable-bias-linear", &m->no_bias, "no biases in linear layers"),
        OPT_FLAG(0, "add-qkv-bias", &m->qkv_bias, "a bias of queries, keys and values even then"),
        OPT_INT(0, "vocab-size", &m->vocab, 0, INT32_MAX, "ids that the tokenizer gives, end of document included"),
        OPT_INT(0, "make-vocab-size-divisible-by", &c->vocab_divisor, 1, 1 << 20, "pad the vocabulary to a multiple"),
        OPT_FLAG(0, "untie-embeddings-and-output-weights", &m->untie, "an output layer of its own"),
        OPT_INT(0, "num-experts", &m->experts, 0, MODEL_EXPERTS_MOST, "a mixture of so many experts for an MLP; 0: none"),
        OPT_INT(0, "moe-router-topk", &m->topk, 0, ROUTE_MOST, "experts of a token; 0: 2"),
        OPT_INT(0, "moe-ffn-hidden-size", &m->moe_ffn, 0, 1 << 24, "width inside an expert; 0: ffn-hidden-size"),
        OPT_INT(0, "moe-layer-freq", &m->moe_freq, 0, 100000, "every so many layers have experts, the first one too; 0: 1"),
        OPT_FLAG(0, "moe-router-pre-softmax", &m->pre_softmax, "weights by softmax over all experts, not over the chosen"),
        OPT_ENUM(0, "moe-router-load-balancing-type", &m->balancing, "aux_loss|none", "what keeps experts evenly used"),
        OPT_NUM(0, "moe-aux-loss-coeff", &m->aux_loss, 0, 1e6, "of the loss that does; 0.01 is usual"),
        OPT_NUM(0, "moe-z-loss-coeff", &m->z_loss, 0, 1e6, "of a loss that keeps the router's logits small"),
        OPT_NUM(0, "attention-dropout", &m->attention_dropout, 0, 0.999, "drop attention probabilities"),
        OPT_NUM(0, "hidden-dropout", &m->hidden_dropout, 0, 0.999, "drop embeddings and what a layer adds"),
        OPT_NUM(0, "init-method-std", &m->init_std, 0, 10, "standard deviation of initial weights"),
        OPT_HEAD("Training"),
        OPT_INT(0, "micro-batch-size", &c->micro_batch, 1, 1 << 20, "samples of one forward pass"),
        OPT_INT(0, "global-batch-size", &c->global_batch, 0, 1 << 24, "samples of one step; 0: one micro-batch"),
        OPT_STR(0, "rampup-batch-size", &c->rampup, "S,I,N", "begin with S samples, reach the global batch by I at a time in N"),
        OPT_INT(0, "train-iters", &c->train_iters, 0, MAX_N, "steps in all"),
        OPT_INT(0, "train-samples", &c->train_samples, 0, MAX_N, "samples in all, instead of steps"),
        OPT_INT(0, "exit-interval", &c->exit_interval, 0, MAX_N, "save and exit after a step divisible by this"),
        OPT_INT(0, "exit-duration-in-mins", &c->exit_minutes, 0, 1 << 30, "save and exit after this long; 0: never"),
        OPT_ENUM(0, "nan-action", &c->nan_action, "stop|skip|rollback", "when a loss or gradient is not finite"),
        OPT_NUM(0, "spike-factor", &c->spike_factor, 0, 1e6, "a loss or norm so many times its mean is a spike; 0: none is"),
        OPT_INT(0, "spike-window", &c->spike_window, 2, MAX_N, "steps of that mean"),
        OPT_ENUM(0, "spike-action", &c->spike_action, "stop|skip|rollback", "when there is one"),
        OPT_INT(0, "max-bad-steps", &c->max_bad_steps, 1, MAX_N, "stop after so many without a good one between"),
        OPT_INT(0, "seed", &c->seed, 0, UINT32_MAX, "of weights, dropout and data order"),
        OPT_ENUM(0, "recompute-granularity", &c->recompute, "none|full|selective",
                 "compute activations again in backward"),
        OPT_ENUM(0, "recompute-method", &c->recompute_method, "uniform|block", "full: all in chunks, or the first layers"),
        OPT_INT(0, "recompute-num-layers", &c->recompute_layers, 1, 100000, "layers of a chunk; block: how many layers"),
        OPT_FLAG(0, "bf16", &c->bf16, "bf16 matrix products and activations, fp32 master weights"),
        OPT_ENUM(0, "fp8-format", &c->fp8.format, "none|e4m3|hybrid", "the layers' products in FP8; hybrid: gradients E5M2"),
        OPT_ENUM(0, "fp8-recipe", &c->fp8.recipe, "delayed|tensorwise|mxfp8", "scales from past steps, or of the tensor at hand"),
        OPT_INT(0, "fp8-margin", &c->fp8.margin, 0, 100, "scales are smaller by this power of two"),
        OPT_INT(0, "fp8-amax-history-len", &c->fp8.history, 1, 1 << 20, "steps whose largest values are kept"),
        OPT_ENUM(0, "fp8-amax-compute-algo", &c->fp8.algo, "most_recent|max", "which of them makes the scale"),
        OPT_FLAG(0, "first-last-layers-bf16", &c->fp8.ends_bf16, "leave the first and last layers in bf16"),
        OPT_INT(0, "num-layers-at-start-in-bf16", &c->fp8.start_bf16, 0, 100000, "how many at the start"),
        OPT_INT(0, "num-layers-at-end-in-bf16", &c->fp8.end_bf16, 0, 100000, "how many at the end"),
        OPT_ENUM(0, "device", &c->device, "auto|cpu|cuda", "where to run"),
        OPT_HEAD("Optimizer"),
        OPT_NUM(0, "lr", &c->lr, 0, 1e6, "highest learning rate"),
        OPT_NUM(0, "min-lr", &c->min_lr, 0, 1e6, "lowest learning rate after the decay"),
        OPT_ENUM(0, "lr-decay-style", &c->lr_style, "constant|linear|cosine|inverse-square-root|WSD", "schedule"),
        OPT_INT(0, "lr-decay-iters", &c->decay_iters, 0, MAX_N, "steps until the lowest rate; 0: all"),
        OPT_INT(0, "lr-warmup-iters", &c->warmup_iters, 0, MAX_N, "steps of linear warm-up"),
        OPT_NUM(0, "lr-warmup-fraction", &c->warmup_fraction, 0, 1, "warm-up as a share of the decay steps"),
        OPT_ENUM(0, "lr-wsd-decay-style", &c->wsd_style, "exponential|linear|cosine|minus_sqrt", "last part of WSD"),
        OPT_INT(0, "lr-wsd-decay-iters", &c->wsd_iters, 0, MAX_N, "steps of the last part of WSD"),
        OPT_NUM(0, "weight-decay", &c->weight_decay, 0, 1e3, "AdamW's, on parameters of two dimensions"),
        OPT_NUM(0, "adam-beta1", &c->beta1, 0, 0.9999999, "decay of the first moment"),
        OPT_NUM(0, "adam-beta2", &c->beta2, 0, 0.9999999, "decay of the second moment"),
        OPT_NUM(0, "adam-eps", &c->eps, 0, 1, "added to the root of the second moment"),
        OPT_NUM(0, "clip-grad", &c->clip_grad, 0, 1e12, "clip the gradient to this norm; 0: never"),
        OPT_HEAD("Data"),
        OPT_LIST(0, "data-path", &c->data_path, "PREFIX", "PREFIX.bin and .idx; a blend: weight, prefix, ..."),
        OPT_LIST(0, "train-data-path", &c->part_path[0], "PREFIX", "data for training alone; no split then"),
        OPT_LIST(0, "valid-data-path", &c->part_path[1], "PREFIX", "data for validation alone"),
        OPT_LIST(0, "test-data-path", &c->part_path[2], "PREFIX", "data for the test alone"),
        OPT_STR(0, "split", &c->split, "A,B,C", "shares for train, valid and test"),
        OPT_STR(0, "data-cache-path", &c->cache_path, "DIR", "keep the sample order here, as Megatron does"),
        OPT_FLAG(0, "mock-data", &c->mock_data, "random tokens instead of a dataset"),
        OPT_HEAD("Checkpoints"),
        OPT_STR(0, "save", &c->save, "DIR", "write checkpoints here; go on from the last one found here"),
        OPT_STR(0, "load", &c->load, "DIR", "start from the last checkpoint here (default: the one of --save)"),
        OPT_INT(0, "save-interval", &c->save_interval, 0, MAX_N, "steps between checkpoints; 0: at the end only"),
        OPT_INT(0, "ckpt-step", &c->ckpt_step, -1, MAX_N, "load the checkpoint of this step; -1: the last whole one"),
        OPT_FLAG(0, "async-save", &c->async_save, "write checkpoints while training goes on, from a copy in memory"),
        OPT_FLAG(0, "finetune", &c->finetune, "load weights only and start at step 0"),
        OPT_FLAG(0, "no-load-optim", &c->no_load_optim, "load weights and step, not the optimizer's moments"),
        OPT_HEAD("Evaluation and log"),
        OPT_INT(0, "eval-interval", &c->eval_interval, 0, MAX_N, "steps between evaluations; 0: never"),
        OPT_INT(0, "eval-iters", &c->eval_iters, 0, MAX_N, "global batches of an evaluation; 0: no evaluation"),
        OPT_INT(0, "log-interval", &c->log_interval, 1, MAX_N, "steps between lines on standard output"),
        OPT_FLAG(0, "multiple-validation-sets", &c->valid_sets, "each valid-data-path is a set of its own, no blend"),
        OPT_STR(0, "tensorboard-dir", &c->tensorboard, "DIR", "write TensorBoard event files here"),
        OPT_STR(0, "log-file", &c->log_file, "FILE", "append a JSON line a step"),
        OPT_STR(0, "trace", &c->trace, "FILE", "write a timeline for Chrome's tracing, a file a rank"),
        OPT_INT(0, "distributed-timeout-minutes", &c->timeout_minutes, 1, 1 << 20, "name a collective that hangs"),
        OPT_FLAG(0, "deterministic", &c->deterministic, "the same bits for any number of data-parallel ranks"),
        OPT_HEAD(DIVISION),
        OPT_ENUM(0, "distributed-backend", &c->backend, "auto|mpi|tcp|nccl", "what ranks go by"),
        OPT_INT(0, "tensor-model-parallel-size", &c->layout.tensor, 1, 1 << 20, "ranks that share each layer"),
        OPT_FLAG(0, "sequence-parallel", &c->layout.sequence, "they share the rows of norms and dropout too"),
        OPT_INT(0, "context-parallel-size", &c->layout.context, 1, 1 << 20, "ranks that share each sequence"),
        OPT_INT(0, "expert-model-parallel-size", &c->layout.expert, 1, 1 << 20, "ranks that share the experts"),
        OPT_INT(0, "pipeline-model-parallel-size", &c->layout.pipe, 1, 1 << 20, "stages: ranks that share the depth"),
        OPT_INT(0, "num-layers-per-virtual-pipeline-stage", &c->virtual_layers, 0, 100000,
                "interleaved stages: layers of each of a stage's parts; 0: one part a stage"),
        OPT_INT(0, "num-virtual-stages-per-pipeline-rank", &c->virtual_stages, 0, 100000, "the same, as how many parts"),
        OPT_INT(0, "decoder-first-pipeline-num-layers", &c->stages.first, 0, 100000, "layers of the first stage; 0: as others"),
        OPT_INT(0, "decoder-last-pipeline-num-layers", &c->stages.last, 0, 100000, "layers of the last stage; 0: as others"),
        OPT_FLAG(0, "account-for-embedding-in-pipeline-split", &c->stages.embedding, "the embedding counts as a layer"),
        OPT_FLAG(0, "account-for-loss-in-pipeline-split", &c->stages.head, "the output layer counts as a layer"),
        OPT_ENUM(0, "data-parallel-sharding-strategy", &c->sharding, "no_shard|optim|optim_grads|optim_grads_params",
                 "what data-parallel ranks share: nothing, or as ZeRO-1, 2, 3"),
        OPT_FLAG(0, "use-distributed-optimizer", &c->distributed_optimizer, "they share the optimizer's state (optim)"),
        OPT_FLAG(0, "overlap-grad-reduce", &c->overlap_reduce, "reduce gradients while backward runs"),
        OPT_FLAG(0, "overlap-param-gather", &c->overlap_gather, "gather parameters while forward runs"),
        OPT_FLAG(0, "grad-reduce-in-bf16", &c->reduce_bf16, "gradients leave a rank in bf16; summed in fp32"),
        OPT_FLAG(0, "optimizer-cpu-offload", &c->offload, "a GPU's optimizer state stays in the host's memory"),
        OPT_INT(0, "ddp-bucket-size", &c->bucket_size, 0, MAX_N, "parameters reduced in one call; 0: 40M, or 1M a rank"),
        OPT_HEAD("Known, but refused unless left as they are"),
        OPT_FLAG(0, "reset-position-ids", &l->reset_positions, "positions start again after a document"),
        OPT_FLAG(0, "reset-attention-mask", &l->reset_mask, "no attention across documents"),
        OPT_FLAG(0, "eod-mask-loss", &l->mask_eod, "no loss on the end of a document"),
    };
    _Static_assert(sizeof own / sizeof *own <= TRAIN_OPTIONS, "room for what was given");
    size_t n = 1;
    struct opt *all;

    while (more[n - 1].type != OPT_TYPE_END)
        n++;
    all = malloc(sizeof own + n * sizeof *more);
    if (all) {
        memcpy(all, own, sizeof own);
        memcpy(all + sizeof own / sizeof *own, more, n * sizeof *more);
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            all[i].given = &c->given[i];
    }
    return all;
}

int train_config_read(struct train_config *c, const char *path, struct arena *a, struct err *e)
{
    const struct opt none[] = {OPT_END};
    struct opt *opts;
    struct node *root;
    int rc;

    TRY(node_load_yaml(a, path, &root, e));
    opts = train_config_options(c, none);
    if (!opts)
        return err_set(e, ERR_NOMEM, "out of memory");
    rc = opt_set_map(opts, "train", root, path, a, e);
    free(opts);
    return rc;
}

/* Each of these must be as it came; kept as a table so that none is forgotten. */
static int check_later(const struct train_config *c, struct err *e)
{
    const struct train_later *l = &c->later;

    const struct {
        bool differs;
        const char *flag;
    } later[] = {
        {c->fp8.recipe == FP8_MXFP8, "fp8-recipe mxfp8"},
        {l->reset_positions, "reset-position-ids"},
        {l->reset_mask, "reset-attention-mask"},
        {l->mask_eod, "eod-mask-loss"},
    };

    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (later[i].differs)
            return err_set(e, ERR_UNSUPPORTED, "--%s: quern cannot do this yet", later[i].flag);
    return 0;
}

static int no_preset(const char *name, struct err *e)
{
    char all[480];
    size_t n = 0;

    for (const char *const *p = model_preset_names(); *p && n < sizeof all; p++)
        n += (size_t)snprintf(all + n, sizeof all - n, " %s", *p);
    return err_set(e, ERR_ARG, "--preset: '%s' is none of%s", name, all);
}

/* Sets the flags of the preset that were not given. */
static int apply_preset(struct train_config *c, struct err *e)
{
    const struct opt none[] = {OPT_END};
    const char *flags = c->preset ? model_preset(c->preset) : NULL;
    struct opt *opts;
    char name[64], value[64];
    int used, rc = 0;

    if (!c->preset)
        return 0;
    if (!flags)
        return no_preset(c->preset, e);
    opts = train_config_options(c, none);
    if (!opts)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (; rc == 0 && sscanf(flags, " %63s %63s%n", name, value, &used) == 2; flags += used) {
        const struct opt *o = opt_find(opts, name);

        if (!o || !*o->given)
            rc = opt_set(opts, name, value, e);
    }
    free(opts);
    return rc;
}

/* Megatron's two flags for the groups, one number here. */
static int check_groups(struct train_config *c, struct err *e)
{
    struct model_config *m = &c->model;

    if (!c->group_query && m->groups && m->groups != m->heads)
        return err_set(e, ERR_ARG, "--num-query-groups: %" PRId64 " needs --group-query-attention", m->groups);
    if (c->group_query && !m->groups)
        m->groups = 1;
    return 0;
}

/* Samples of the smallest step that can be. */
static int64_t least_batch(const struct train_config *c)
{
    return c->micro_batch * c->ranks * (c->stages.chunks > 1 ? c->layout.pipe : 1);
}

/* "S,I,N" or "S I N". */
static int parse_rampup(struct train_config *c, struct err *e)
{
    int64_t each = least_batch(c);
    long long start, add, samples, steps;
    int end = 0;

    if (!c->rampup)
        return 0;
    if (sscanf(c->rampup, "%lld%*1[, ]%lld%*1[, ]%lld%n", &start, &add, &samples, &end) != 3 || c->rampup[end] || start < 1 ||
        add < 1 || samples < 1 || start > c->global_batch)
        return err_set(e, ERR_ARG, "--rampup-batch-size: '%s' is not START,INCREMENT,SAMPLES of a ramp to %" PRId64,
                       c->rampup, c->global_batch);
    if (start % each || add % each || (c->global_batch - start) % add)
        return err_set(e, ERR_ARG, "--rampup-batch-size: from %lld by %lld to %" PRId64 " is no row of multiples of the"
                       " micro-batch of %" PRId64 " on %" PRId64 " ranks%s",
                       start, add, c->global_batch, c->micro_batch, c->ranks, c->stages.chunks > 1 ? ", times the stages" : "");
    if (c->deterministic && c->ranks > 1)
        return err_set(e, ERR_ARG, "--rampup-batch-size and --deterministic: on one rank only");
    if (!c->train_samples)
        return err_set(e, ERR_ARG, "--rampup-batch-size needs --train-samples");
    steps = (c->global_batch - start) / add;
    if (!steps)
        return 0;
    if (samples < steps)
        return err_set(e, ERR_ARG, "--rampup-batch-size: %lld samples are fewer than its %lld increments", samples, steps);
    c->ramp_start = start;
    c->ramp_add = add;
    c->ramp_each = samples / steps;
    return 0;
}

int64_t train_config_batch(const struct train_config *c, int64_t consumed)
{
    int64_t batch;

    if (!c->ramp_each)
        return c->global_batch;
    batch = c->ramp_start + consumed / c->ramp_each * c->ramp_add;
    return batch < c->global_batch ? batch : c->global_batch;
}

/* Whole steps that samples make. */
static int64_t steps_of(const struct train_config *c, int64_t samples)
{
    int64_t n = 0, used = 0;

    while (train_config_batch(c, used) < c->global_batch && used + train_config_batch(c, used) <= samples) {
        used += train_config_batch(c, used);
        n++;
    }
    if (train_config_batch(c, used) < c->global_batch)
        return n;
    return n + (samples - used) / c->global_batch;
}

static int check_schedule(struct train_config *c, struct err *e)
{
    if (c->train_iters && c->train_samples)
        return err_set(e, ERR_ARG, "--train-iters and --train-samples: give one of them");
    if (!c->train_iters && !c->train_samples)
        return err_set(e, ERR_ARG, "--train-iters (or --train-samples) is needed");
    TRY(parse_rampup(c, e));
    c->iters = c->train_iters ? c->train_iters : steps_of(c, c->train_samples);
    c->samples = c->ramp_each ? c->train_samples : c->iters * c->global_batch;
    if (c->iters < 1)
        return err_set(e, ERR_ARG, "--train-samples: %" PRId64 " is less than a global batch of %" PRId64,
                       c->train_samples, c->global_batch);
    if (c->lr <= 0)
        return err_set(e, ERR_ARG, "--lr is needed");
    if (c->min_lr > c->lr)
        return err_set(e, ERR_ARG, "--min-lr: %g is more than --lr %g", c->min_lr, c->lr);
    if (c->warmup_iters && c->warmup_fraction > 0)
        return err_set(e, ERR_ARG, "--lr-warmup-iters and --lr-warmup-fraction: give one of them");
    if (!c->decay_iters)
        c->decay_iters = c->iters;
    if (c->warmup_iters >= c->decay_iters && c->lr_style != LR_CONSTANT)
        return err_set(e, ERR_ARG,
                       "--lr-warmup-iters: %" PRId64 " is not less than the %" PRId64 " steps of the decay",
                       c->warmup_iters, c->decay_iters);
    if (c->lr_style == LR_WSD && (!c->wsd_iters || c->wsd_iters > c->decay_iters))
        return err_set(e, ERR_ARG, "--lr-decay-style WSD needs --lr-wsd-decay-iters of 1 to %" PRId64,
                       c->decay_iters);
    return 0;
}

int train_config_args(struct train_config *c, struct arena *a, struct checkpoint_arg **args, int *n, struct err *e)
{
    const struct opt none[] = {OPT_END};
    struct opt *opts = train_config_options(c, none);
    struct checkpoint_arg *v;
    char buf[1024];
    bool division = false;
    int rc = 0, count = 0;

    for (const struct opt *o = opts; o && o->type != OPT_TYPE_END; o++)
        count++;
    v = arena_calloc(a, (size_t)count + 1, sizeof *v);
    if (!opts || !v)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    *n = 0;
    for (const struct opt *o = opts; rc == 0 && o->type != OPT_TYPE_END; o++) {
        const char *text = opt_text(o, buf, sizeof buf);

        if (o->type == OPT_TYPE_HEAD)
            division = strcmp(o->help, DIVISION) == 0;
        if (!text[0])
            continue;
        v[*n].name = o->name;
        v[*n].division = division;
        v[*n].text = arena_dup(a, span_of(text)).p;
        if (!v[(*n)++].text)
            rc = err_set(e, ERR_NOMEM, "out of memory");
    }
    free(opts);
    *args = v;
    return rc;
}

/* How the layers are shared out; how many parts a stage has. */
static int check_stages(struct train_config *c, struct err *e)
{
    struct stages *s = &c->stages;
    int64_t counted = c->model.layers + s->embedding + s->head;

    s->layers = c->model.layers;
    s->stages = c->layout.pipe;
    s->chunks = c->virtual_stages ? c->virtual_stages : 1;
    if (c->virtual_layers && c->virtual_stages)
        return err_set(e, ERR_ARG, "--num-layers-per-virtual-pipeline-stage and --num-virtual-stages-per-pipeline-rank:"
                       " give one of them");
    if (c->virtual_layers && (s->first || s->last))
        return err_set(e, ERR_ARG, "--num-layers-per-virtual-pipeline-stage: with --decoder-%s-pipeline-num-layers give"
                       " --num-virtual-stages-per-pipeline-rank", s->first ? "first" : "last");
    if (c->virtual_layers && counted % (s->stages * c->virtual_layers))
        return err_set(e, ERR_ARG, "--num-layers-per-virtual-pipeline-stage: %" PRId64 " layers are no multiple of %" PRId64
                       " stages times %" PRId64, counted, s->stages, c->virtual_layers);
    if (c->virtual_layers)
        s->chunks = counted / s->stages / c->virtual_layers;
    if (s->chunks > 1 && s->stages == 1)
        return err_set(e, ERR_ARG, "--num-%s needs --pipeline-model-parallel-size",
                       c->virtual_layers ? "layers-per-virtual-pipeline-stage" : "virtual-stages-per-pipeline-rank");
    return stages_check(s, e);
}

/* A global batch is so many micro-batches of each rank. */
static int check_batch(struct train_config *c, struct err *e)
{
    int64_t n = c->micro_batch * c->ranks;

    if (c->global_batch % n)
        return err_set(e, ERR_ARG,
                       "--global-batch-size: %" PRId64 " is not a multiple of the micro-batch of %" PRId64 " on %" PRId64
                       " data-parallel rank%s", c->global_batch, c->micro_batch, c->ranks, c->ranks == 1 ? "" : "s");
    c->micro_batches = c->global_batch / n;
    if (c->stages.chunks > 1 && c->micro_batches % c->layout.pipe)
        return err_set(e, ERR_ARG, "--global-batch-size: %" PRId64 " micro-batches a step are no multiple of the %" PRId64
                       " stages, as interleaved stages need them", c->micro_batches, c->layout.pipe);
    if (c->deterministic && c->layout.context > 1 && (c->ranks & (c->ranks - 1)))
        return err_set(e, ERR_ARG, "--deterministic: with --context-parallel-size it needs a power of two of data-parallel ranks,"
                       " not %" PRId64, c->ranks);
    if (c->deterministic && c->sharding < SHARD_OPTIM_GRADS && c->ranks > 1 && (c->micro_batches & (c->micro_batches - 1)))
        return err_set(e, ERR_ARG,
                       "--deterministic: %" PRId64 " micro-batches a step of each of %" PRId64
                       " ranks; it needs a power of two", c->micro_batches, c->ranks);
    return 0;
}

/* What ranks share of weights, gradients and the optimizer's state. */
static int check_sharding(struct train_config *c, struct err *e)
{
    const char *flag = "--data-parallel-sharding-strategy optim_grads and optim_grads_params";

    if (c->distributed_optimizer && c->sharding < SHARD_OPTIM)
        c->sharding = SHARD_OPTIM;
    if (c->overlap_gather && (!c->sharding || !c->overlap_reduce)) /* as Megatron has it */
        return err_set(e, ERR_ARG, "--overlap-param-gather needs --use-distributed-optimizer and --overlap-grad-reduce");
    if (c->deterministic && c->reduce_bf16)
        return err_set(e, ERR_ARG, "--deterministic: not with --grad-reduce-in-bf16: what is rounded depends on the"
                       " number of ranks");
    if (c->offload && c->fp8.format)
        return err_set(e, ERR_ARG, "--optimizer-cpu-offload: not with --fp8-format: a checkpoint is written from one"
                       " memory, and its scales are the GPU's");
    if (c->sharding < SHARD_OPTIM_GRADS)
        return 0;
    if (c->layout.pipe > 1 && !c->model.untie)
        return err_set(e, ERR_ARG, "%s: with stages they need --untie-embeddings-and-output-weights, since the first and"
                       " the last stage would divide the matrix that both have differently", flag);
    /* Micro-batches are summed over ranks one by one: a tree whose lower part is the ranks'. */
    if (c->deterministic && (c->ranks & (c->ranks - 1)))
        return err_set(e, ERR_ARG, "--deterministic: with %s it needs a power of two of data-parallel ranks, not %" PRId64, flag,
                       c->ranks);
    if (c->deterministic && c->layout.context > 1)
        return err_set(e, ERR_ARG, "--deterministic: not with %s and --context-parallel-size: the sum over parts of a"
                       " sequence would come before or after that over samples by the number of ranks", flag);
    return 0;
}

static int check_experts(const struct train_config *c, struct err *e)
{
    int64_t n = c->layout.expert;

    if (n > 1 && !c->model.experts)
        return err_set(e, ERR_ARG, "--expert-model-parallel-size: the model has no experts (--num-experts)");
    if (c->model.experts % n)
        return err_set(e, ERR_ARG, "--expert-model-parallel-size: %" PRId64 " ranks cannot share %" PRId64 " experts", n,
                       c->model.experts);
    if (n > 1 && c->deterministic) /* an expert adds up the tokens of several ranks in one product */
        return err_set(e, ERR_ARG, "--deterministic: not with --expert-model-parallel-size");
    return 0;
}

int train_config_check(struct train_config *c, struct err *e)
{
    TRY(check_later(c, e));
    TRY(layout_data(&c->layout, c->world, &c->ranks, e));
    if (c->deterministic && c->backend == BACKEND_NCCL)
        return err_set(e, ERR_UNSUPPORTED, "--deterministic needs sums in an order that NCCL's do not have:"
                       " --distributed-backend mpi or tcp");
    c->bucket = (size_t)(c->bucket_size ? c->bucket_size : c->ranks > 40 ? c->ranks * 1000000 : 40000000);
    TRY(apply_preset(c, e));
    TRY(check_groups(c, e));
    if (c->fp8.format && !c->bf16)
        return err_set(e, ERR_ARG, "--fp8-format needs --bf16");
    if (c->fp8.format && c->model.experts)
        return err_set(e, ERR_UNSUPPORTED, "--fp8-format: quern cannot do this with --num-experts yet");
    if (c->recompute != RECOMPUTE_FULL && (c->recompute_method || c->recompute_layers > 1))
        return err_set(e, ERR_ARG, "--recompute-method and --recompute-num-layers need --recompute-granularity full");
    TRY(model_config_check(&c->model, c->vocab_divisor, e));
    TRY(check_experts(c, e));
    TRY(check_stages(c, e));
    TRY(check_sharding(c, e));
    if (c->layout.context > 1 && c->model.seq % (2 * c->layout.context))
        return err_set(e, ERR_ARG, "--context-parallel-size: %" PRId64 " ranks cut a sequence in %" PRId64 " equal parts;"
                       " --seq-length %" PRId64 " is no multiple of that",
                       c->layout.context, 2 * c->layout.context, c->model.seq);
    if (!c->global_batch)
        c->global_batch = least_batch(c);
    TRY(check_batch(c, e));
    if (c->micro_batch * c->model.seq > INT32_MAX)
        return err_set(e, ERR_ARG, "--micro-batch-size: %" PRId64 " samples of %" PRId64 " tokens are too many",
                       c->micro_batch, c->model.seq);
    TRY(check_schedule(c, e));
    if (!c->mock_data && !c->data_path.n && !c->part_path[0].n)
        return err_set(e, ERR_ARG, "--data-path (or --train-data-path, or --mock-data) is needed");
    if (c->mock_data + (c->data_path.n > 0) + (c->part_path[0].n > 0) > 1)
        return err_set(e, ERR_ARG, "--data-path, --train-data-path and --mock-data: give one of them");
    if ((c->part_path[1].n || c->part_path[2].n) && !c->part_path[0].n)
        return err_set(e, ERR_ARG, "--valid-data-path and --test-data-path need --train-data-path");
    if (c->valid_sets && !c->part_path[1].n)
        return err_set(e, ERR_ARG, "--multiple-validation-sets needs --valid-data-path");
    if ((c->async_save || c->nan_action == BAD_ROLLBACK || (c->spike_factor > 0 && c->spike_action == BAD_ROLLBACK)) && !c->save)
        return err_set(e, ERR_ARG, "--%s needs --save", c->async_save ? "async-save" : c->nan_action == BAD_ROLLBACK ?
                       "nan-action rollback" : "spike-action rollback");
    if (c->save_interval && !c->save)
        return err_set(e, ERR_ARG, "--save-interval needs --save");
    if (c->ckpt_step >= 0 && !c->load)
        return err_set(e, ERR_ARG, "--ckpt-step needs --load");
    return 0;
}
