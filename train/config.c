#include "train/data.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "indexed_dataset/sft_dataset.h"

const char *const train_config_device[] = {"auto", "cpu", "cuda"};
const char *const train_config_fp8[] = {"none", "e4m3", "hybrid"};
const char *const train_config_backend[] = {"auto", "mpi", "tcp", "nccl"};
enum { BACKEND_NCCL = 3 };

void train_config_init(struct train_config *c)
{
    memset(c, 0, sizeof *c);
    c->model.attention_dropout = c->model.hidden_dropout = 0.1;
    c->model.init_std = 0.02;
    c->model.mtp_scale = 0.1;
    c->model.norm_eps = 1e-5;
    c->model.rotary_base = 10000;
    c->model.rotary_percent = 1;
    c->model.rope_factor = 8;
    c->model.bias_rate = 1e-3;
    c->vocab_divisor = 128;
    c->micro_batch = 1;
    c->recompute_layers = 1;
    c->spike_window = 64;
    c->max_bad_steps = 10;
    c->spike_action = BAD_SKIP;
    c->seed = 1234;
    c->lr_style = LR_LINEAR;
    optim_conf_init(&c->optim);
    c->clip_grad = 1.0;
    c->split = "969,30,1";
    c->eval_interval = 1000;
    c->eval_iters = 100;
    c->log_interval = 100;
    c->ckpt_step = -1;
    c->documents.eod = -1;
    c->timeout_minutes = 10;
    c->world = c->ranks = 1;
    c->layout = LAYOUT_ALONE;
    c->fp8 = (struct model_fp8_run){.history = 1, .start_bf16 = 1, .end_bf16 = 1};
}

void train_config_free(struct train_config *c)
{
    opt_list_free(&c->data_path);
    opt_list_free(&c->freeze);
    opt_list_free(&c->lora_target);
    for (int i = 0; i < 3; i++)
        opt_list_free(&c->part_path[i]);
}

/* What documents are told apart by must be known; packed whole, they always are. */
static int check_documents(struct train_config *c, struct err *e)
{
    struct documents *d = &c->documents;

    if (c->packing && !c->sft)
        return err_set(e, ERR_ARG, "--packing-strategy needs --sft");
    if (c->sft && c->mock_data)
        return err_set(e, ERR_ARG, "--sft: --mock-data has no documents");
    if (c->sft && c->packing != SFT_WRAPPED)
        d->positions = d->attention = true;
    if ((((d->positions || d->attention) && !c->sft) || d->mask_loss) && d->eod < 0)
        return err_set(e, ERR_ARG, "--%s needs --eod-id, the token that ends a document", d->positions ? "reset-position-ids"
                       : d->attention ? "reset-attention-mask" : "eod-mask-loss");
    if (d->eod >= c->model.vocab)
        return err_set(e, ERR_ARG, "--eod-id: %" PRId64 " is not in a vocabulary of %" PRId64 " (--vocab-size)", d->eod,
                       c->model.vocab);
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

/* Without --vocab-size, from a flag or a preset, the model has the ids that the datasets' tokenizers have. */
static int find_vocabulary(struct train_config *c, struct err *e)
{
    TRY(data_vocabulary(c, &c->tokenizer_ids, &c->tokenizer_of, e));
    c->tokenizer_vocab = c->model.vocab == 0 && c->tokenizer_ids > 0;
    if (c->tokenizer_vocab)
        c->model.vocab = c->tokenizer_ids;
    return c->model.vocab ? 0 : data_present(c, e); /* a name that is wrong would be taken for one that does not say it */
}

/* Megatron's flags for what is one setting here: the groups, the kind of MLP. */
static int apply_megatrons(struct train_config *c, struct err *e)
{
    struct model_config *m = &c->model;

    if (!c->group_query && m->groups && m->groups != m->heads)
        return err_set(e, ERR_ARG, "--num-query-groups: %" PRId64 " needs --group-query-attention", m->groups);
    if (c->swiglu && m->mlp != MLP_GELU && m->mlp != MLP_SWIGLU)
        return err_set(e, ERR_ARG, "--swiglu and --mlp-activation: give one of them");
    if (c->swiglu)
        m->mlp = MLP_SWIGLU;
    if (c->moe_layers)
        TRY(moe_layers_parse(c->moe_layers, m, e));
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
    c->ramp_each = (double)samples / (double)steps;
    return 0;
}

int64_t train_config_batch(const struct train_config *c, int64_t consumed)
{
    int64_t batch;

    if (c->ramp_each <= 0)
        return c->global_batch;
    batch = c->ramp_start + (int64_t)((double)consumed / c->ramp_each) * c->ramp_add;
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

/* Of a schedule in samples. */
static int check_samples(const struct train_config *c, struct err *e)
{
    int64_t decay = c->decay_samples ? c->decay_samples : c->decay_iters ? c->decay_iters * c->global_batch : c->samples;

    if ((c->warmup_samples || c->decay_samples) && !c->train_samples)
        return err_set(e, ERR_ARG, "--lr-%s-samples needs --train-samples", c->warmup_samples ? "warmup" : "decay");
    if (c->decay_samples && c->decay_iters)
        return err_set(e, ERR_ARG, "--lr-decay-iters and --lr-decay-samples: give one of them");
    if (c->warmup_samples >= decay && c->lr_style != LR_CONSTANT)
        return err_set(e, ERR_ARG, "--lr-warmup-samples: %" PRId64 " is not less than the %" PRId64 " samples of the decay",
                       c->warmup_samples, decay);
    return 0;
}

static int check_schedule(struct train_config *c, struct err *e)
{
    if (c->train_iters && c->train_samples)
        return err_set(e, ERR_ARG, "--train-iters and --train-samples: give one of them");
    if (!c->train_iters && !c->train_samples)
        return err_set(e, ERR_ARG, "--train-iters (or --train-samples) is needed");
    TRY(parse_rampup(c, e));
    c->iters = c->train_iters ? c->train_iters : steps_of(c, c->train_samples);
    c->samples = c->train_samples ? c->train_samples : c->iters * c->global_batch;
    if (c->iters < 1)
        return err_set(e, ERR_ARG, "--train-samples: %" PRId64 " is less than a global batch of %" PRId64,
                       c->train_samples, c->global_batch);
    if (c->lr <= 0)
        return err_set(e, ERR_ARG, "--lr is needed");
    if (c->min_lr > c->lr)
        return err_set(e, ERR_ARG, "--min-lr: %g is more than --lr %g", c->min_lr, c->lr);
    if ((c->warmup_iters > 0) + (c->warmup_fraction > 0) + (c->warmup_samples > 0) > 1)
        return err_set(e, ERR_ARG, "--lr-warmup-iters, --lr-warmup-samples and --lr-warmup-fraction: give one of them");
    TRY(check_samples(c, e));
    if (!c->decay_iters)
        c->decay_iters = c->decay_samples ? (c->decay_samples + c->global_batch - 1) / c->global_batch : c->iters;
    if (c->warmup_iters >= c->decay_iters && c->lr_style != LR_CONSTANT)
        return err_set(e, ERR_ARG,
                       "--lr-warmup-iters: %" PRId64 " is not less than the %" PRId64 " steps of the decay",
                       c->warmup_iters, c->decay_iters);
    if (c->lr_style == LR_WSD && (!c->wsd_iters || c->wsd_iters > c->decay_iters))
        return err_set(e, ERR_ARG, "--lr-decay-style WSD needs --lr-wsd-decay-iters of 1 to %" PRId64,
                       c->decay_iters);
    return 0;
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

static int no_target(const struct model_config *m, const char *pattern, struct err *e)
{
    char names[192] = "";
    size_t n = 0;

    for (int k = 0; k < LORA_TARGETS; k++)
        if (model_lora_targets(m) >> k & 1)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", model_lora_target(m, k));
    return err_set(e, ERR_ARG, "--lora-target: '%s' is none of %s", pattern, names);
}

/* Which linear layers have adapters; what does not go with them. */
static int check_adapters(struct train_config *c, struct err *e)
{
    struct model_config *m = &c->model;

    if (!m->lora_rank && (m->lora_alpha > 0 || m->lora_rslora || c->lora_target.n))
        return err_set(e, ERR_ARG, "--lora-%s needs --lora-rank",
                       m->lora_alpha > 0 ? "alpha" : m->lora_rslora ? "rslora" : "target");
    for (int i = 0; i < c->lora_target.n; i++) {
        int64_t bits = 0;

        for (int k = 0; k < LORA_TARGETS; k++)
            if (model_lora_targets(m) >> k & 1)
                bits |= (int64_t)(fnmatch(c->lora_target.v[i], model_lora_target(m, k), 0) == 0) << k;
        if (!bits)
            return no_target(m, c->lora_target.v[i], e);
        m->lora_targets |= bits;
    }
    if (m->latent && c->fp8.format)
        return err_set(e, ERR_UNSUPPORTED, "--multi-latent-attention: quern cannot do this with --fp8-format yet");
    return 0;
}

/* What --qk-clip is of. */
static int check_qk_clip(const struct train_config *c, struct err *e)
{
    const struct model_config *m = &c->model;
    double alpha = c->optim.qk_clip.alpha;

    if (!c->optim.qk_clip.on)
        return 0;
    if (!(alpha > 0 && alpha < 1) || !(c->optim.qk_clip.threshold > 0))
        return err_set(e, ERR_ARG, "--qk-clip: --qk-clip-alpha is above 0 and below 1, --qk-clip-threshold above 0");
    if (m->softcap > 0)
        return err_set(e, ERR_ARG, "--qk-clip: --attn-logit-softcapping bounds logits already");
    if (m->qk_norm && !m->latent)
        return err_set(e, ERR_ARG, "--qk-clip: behind --qk-layernorm logits do not grow with the weights");
    if (m->lora_rank)
        return err_set(e, ERR_ARG, "--qk-clip scales weights that --lora-rank leaves as they are");
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
    if (n > 1 && c->deterministic && ((n & (n - 1)) || c->layout.context > 1 || c->fp8.format))
        return err_set(e, ERR_ARG, "--deterministic: with --expert-model-parallel-size it needs a power of two of these ranks,"
                       " and neither --context-parallel-size nor --fp8-format");
    return 0;
}

int train_config_check_data(struct train_config *c, struct err *e)
{
    if (!c->mock_data && !c->data_path.n && !c->part_path[0].n)
        return err_set(e, ERR_ARG, "--data-path (or --train-data-path, or --mock-data) is needed");
    if (c->mock_data + (c->data_path.n > 0) + (c->part_path[0].n > 0) > 1)
        return err_set(e, ERR_ARG, "--data-path, --train-data-path and --mock-data: give one of them");
    if ((c->part_path[1].n || c->part_path[2].n) && !c->part_path[0].n)
        return err_set(e, ERR_ARG, "--valid-data-path and --test-data-path need --train-data-path");
    if (c->valid_sets && !c->part_path[1].n)
        return err_set(e, ERR_ARG, "--multiple-validation-sets needs --valid-data-path");
    return check_documents(c, e);
}

static int check_checkpoints(const struct train_config *c, struct err *e)
{
    const struct {
        bool given;
        const char *flag;
    } saves[] = {
        {c->async_save, "async-save"},
        {c->nan_action == BAD_ROLLBACK, "nan-action rollback"},
        {c->spike_factor > 0 && c->spike_action == BAD_ROLLBACK, "spike-action rollback"},
        {c->save_interval > 0, "save-interval"},
        {c->keep_last > 0, "keep-last"},
    };

    for (size_t i = 0; i < sizeof saves / sizeof *saves; i++)
        if (saves[i].given && !c->save)
            return err_set(e, ERR_ARG, "--%s needs --save", saves[i].flag);
    if (c->keep_every && !c->keep_last)
        return err_set(e, ERR_ARG, "--keep-every needs --keep-last: without it all checkpoints stay");
    return c->ckpt_step >= 0 && !c->load ? err_set(e, ERR_ARG, "--ckpt-step needs --load") : 0;
}

/* What an optimizer does not go with. */
static int check_optimizer(const struct train_config *c, struct err *e)
{
    const struct optim *o = optim_of(c->optim.kind);
    int first = c->optim.moment[0], second = c->optim.moment[1];

    if (o->lines[0] && c->offload)
        return err_set(e, ERR_UNSUPPORTED, "--optimizer-cpu-offload: this --optimizer keeps rows and columns, on the device");
    if (o->no_mup && c->model.mup)
        return err_set(e, ERR_UNSUPPORTED, "--use-mup: its rates are not known for this --optimizer");
    if ((first == DTYPE_8BIT || second == DTYPE_8BIT) &&
        (o->direct || first == DTYPE_BF16 || second == DTYPE_BF16 || c->main_params == MAIN_BF16))
        return err_set(e, ERR_UNSUPPORTED, "--exp-avg-dtype, --exp-avg-sq-dtype: 8bit goes with adam, lion and sgd, beside fp32"
                       " moments and weights");
    if (o->direct && first != DTYPE_F32)
        return err_set(e, ERR_UNSUPPORTED, "--exp-avg-dtype: the momentum of whole matrices is fp32");
    return 0;
}

/* Each pattern names a parameter of the model. */
static int check_freeze(const struct train_config *c, struct err *e)
{
    struct params p;
    int rc;

    if (!c->freeze.n)
        return 0;
    rc = params_init(&p, &c->model, NULL, e);
    for (int i = 0; i < c->freeze.n && rc == 0; i++)
        if (params_freeze(&p, c->freeze.v[i]) == 0)
            rc = err_set(e, ERR_ARG, "--freeze: no parameter's name matches '%s' (one is '%s')", c->freeze.v[i],
                         p.v[p.n / 2].name);
    params_free(&p);
    return rc;
}

/* What predicting tokens further on does not go with: it is the last stage's, and has the embedding there. */
static int check_mtp(const struct train_config *c, struct err *e)
{
    const struct model_config *m = &c->model;
    const char *with = c->fp8.format ? "--fp8-format" : NULL;

    if (c->layout.pipe > 1 && m->untie)
        with = "--pipeline-model-parallel-size and --untie-embeddings-and-output-weights";
    if (c->layout.pipe > 1 && m->position == POSITION_LEARNED)
        with = "--pipeline-model-parallel-size and learned positions";
    return m->mtp_layers && with ? err_set(e, ERR_UNSUPPORTED, "--mtp-num-layers: quern cannot do this with %s yet", with) : 0;
}

int train_config_check(struct train_config *c, struct err *e)
{
    if (c->fp8.recipe == FP8_MXFP8)
        return err_set(e, ERR_UNSUPPORTED, "--fp8-recipe mxfp8: quern cannot do this yet");
    TRY(layout_data(&c->layout, c->world, &c->ranks, e));
    if (c->deterministic && c->backend == BACKEND_NCCL)
        return err_set(e, ERR_UNSUPPORTED, "--deterministic needs sums in an order that NCCL's do not have:"
                       " --distributed-backend mpi or tcp");
    c->bucket = (size_t)(c->bucket_size ? c->bucket_size : c->ranks > 40 ? c->ranks * 1000000 : 40000000);
    TRY(train_config_take_model(c, e));
    TRY(apply_preset(c, e));
    TRY(find_vocabulary(c, e));
    TRY(apply_megatrons(c, e));
    if (c->main_params == MAIN_BF16 && (!c->bf16 || c->offload))
        return err_set(e, ERR_ARG, "--main-params-dtype bf16 %s",
                       c->bf16 ? "goes without --optimizer-cpu-offload" : "needs --bf16");
    if (c->fp8.format && !c->bf16)
        return err_set(e, ERR_ARG, "--fp8-format needs --bf16");
    if (c->fp8.fp32_scales && c->fp8.recipe != FP8_BLOCKWISE)
        return err_set(e, ERR_ARG, "--fp8-block-scaling-fp32-scales needs --fp8-recipe blockwise");
    if (c->recompute != RECOMPUTE_FULL && (c->recompute_method || c->recompute_layers > 1))
        return err_set(e, ERR_ARG, "--recompute-method and --recompute-num-layers need --recompute-granularity full");
    TRY(check_adapters(c, e));
    TRY(check_qk_clip(c, e));
    TRY(model_config_check(&c->model, c->vocab_divisor, e));
    TRY(check_freeze(c, e));
    TRY(check_optimizer(c, e));
    TRY(check_experts(c, e));
    TRY(check_mtp(c, e));
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
    TRY(train_config_check_data(c, e));
    return check_checkpoints(c, e);
}
