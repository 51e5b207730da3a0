/* Training: options, refusals, derived numbers, schedules, parameter layout, groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "comm/comm.h"
#include "tests/words.h"
#include "train/params.h"
#include "train/schedule.h"
#include "train/trainer.h"

static int64_t world = 1; /* ranks */

/* Returns check's code. */
static int config(struct train_config *c, struct err *e, const char *const *set)
{
    return words_config(c, world, (const char *const[]){NULL}, set, e);
}

#define BASE "num-layers=2", "hidden-size=64", "num-attention-heads=4", "seq-length=32", "vocab-size=211", \
    "mock-data=true", "train-iters=100", "lr=0.001"
#define CONFIG(c, e, ...) config(c, e, (const char *const[]){BASE, ##__VA_ARGS__, NULL})

static void defaults_are_megatrons(void **state)
{
    struct train_config c;
    struct err e;

    (void)state;
    assert_int_equal(CONFIG(&c, &e, "micro-batch-size=4", "global-batch-size=12"), 0);
    assert_int_equal(c.model.ffn, 256);
    assert_int_equal(c.model.positions, 32);
    assert_int_equal(c.model.padded_vocab, 256);
    assert_int_equal(train_config_batch(&c, 0), 12);
    assert_int_equal(c.seed, 1234);
    assert_int_equal(c.lr_style, LR_LINEAR);
    assert_true(c.optim.adam_beta1 == 0.9 && c.optim.adam_beta2 == 0.999 && c.optim.adam_eps == 1e-8 && c.clip_grad == 1 &&
                c.optim.weight_decay == 0.01);
    assert_true(c.model.init_std == 0.02 && c.model.hidden_dropout == 0.1 && c.model.attention_dropout == 0.1);
    assert_string_equal(c.split, "969,30,1");
    assert_int_equal(CONFIG(&c, &e, "train-iters=0", "train-samples=1001", "global-batch-size=10"), 0);
    assert_int_equal(c.iters, 100);
    train_config_free(&c);
}

static void refusals_name_the_flag(void **state)
{
    static const struct {
        const char *set, *flag;
        int code;
    } bad[] = {
        {"num-attention-heads=5", "--num-attention-heads", ERR_ARG},
        {"micro-batch-size=3", "--global-batch-size", ERR_ARG},
        {"max-position-embeddings=31", "--max-position-embeddings", ERR_ARG},
        {"train-iters=0", "--train-iters", ERR_ARG},
        {"train-samples=5", "--train-iters", ERR_ARG},
        {"lr=0", "--lr", ERR_ARG},
        {"min-lr=1", "--min-lr", ERR_ARG},
        {"lr-warmup-iters=100", "--lr-warmup-iters", ERR_ARG},
        {"lr-decay-style=WSD", "--lr-wsd-decay-iters", ERR_ARG},
        {"lr-decay-style=exponential", "--lr-decay-style", ERR_ARG},
        {"mock-data=false", "--data-path", ERR_ARG},
        {"data-path=x", "--mock-data", ERR_ARG},
        {"save-interval=5", "--save", ERR_ARG},
        {"hidden-dropout=1", "--hidden-dropout", ERR_ARG},
        {"preset=llama9", "llama3-70b", ERR_ARG},
        {"num-query-groups=2", "--group-query-attention", ERR_ARG},
        {"kv-channels=300", "--kv-channels", ERR_ARG},
        {"recompute-num-layers=2", "--recompute-granularity", ERR_ARG},
        {"use-rope-scaling=true", "--use-rope-scaling", ERR_ARG},
        {"rope-scaling-type=yarn", "--rope-scaling-type needs", ERR_ARG},
        {"tensor-model-parallel-size=2", "(tensor)", ERR_ARG},
        {"pipeline-model-parallel-size=2", "(pipeline)", ERR_ARG},
        {"num-virtual-stages-per-pipeline-rank=2", "needs --pipeline-model-parallel-size", ERR_ARG},
        {"num-layers-per-virtual-pipeline-stage=1", "needs --pipeline-model-parallel-size", ERR_ARG},
        {"overlap-param-gather=true", "--overlap-param-gather needs", ERR_ARG},
        {"fp8-format=hybrid", "--fp8-format needs --bf16", ERR_ARG},
        {"fp8-block-scaling-fp32-scales=true", "needs --fp8-recipe blockwise", ERR_ARG},
        {"fp8-recipe=mxfp8", "--fp8-recipe mxfp8", ERR_UNSUPPORTED},
        {"async-save=true", "--async-save", ERR_ARG},
        {"nan-action=rollback", "--nan-action rollback", ERR_ARG},
        {"multiple-validation-sets=true", "--valid-data-path", ERR_ARG},
        {"rampup-batch-size=4", "--rampup-batch-size", ERR_ARG},
        {"rampup-batch-size=1,1,10", "--train-samples", ERR_ARG},
        {"rampup-batch-size=1,2,10", "multiples of the micro-batch", ERR_ARG},
        {"rampup-batch-size=8,1,10", "a ramp to 4", ERR_ARG},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct train_config c;
        struct err e = {0};

        assert_int_equal(CONFIG(&c, &e, "global-batch-size=4", bad[i].set), bad[i].code);
        if (!strstr(e.msg, bad[i].flag))
            fail_msg("%s: '%s' does not name %s", bad[i].set, e.msg, bad[i].flag);
        train_config_free(&c);
    }
}

static void parameters_are_counted(void **state)
{
    /* GPT-2 124M as published: 124,439,808 with a vocabulary of 50257. */
    struct model_config m = {.layers = 12, .hidden = 768, .heads = 12, .seq = 1024, .vocab = 50257};
    struct params p;
    struct err e;
    size_t n = 0;

    (void)state;
    assert_int_equal(model_config_check(&m, 1, &e), 0);
    assert_int_equal(model_config_params(&m), 124439808);
    assert_int_equal(params_init(&p, &m, NULL, &e), 0);
    for (int i = 0; i < p.n; i++) {
        assert_int_equal(p.v[i].at % 16, 0);
        assert_true(i == 0 || p.v[i].at >= p.v[i - 1].at + p.v[i - 1].n);
        n += p.v[i].n;
    }
    assert_int_equal(n, 124439808);
    assert_int_equal(p.n, 2 + 12 * 12 + 2);
    params_free(&p);
    assert_int_equal(model_config_check(&m, 128, &e), 0);
    assert_int_equal(m.padded_vocab, 50304);
    /* 6 * (12 * 12 * 768^2 + 50304 * 768) + 6 * 12 * 768 * 1024 */
    assert_true(model_config_flops(&m, 1024) == 6.0 * (12 * 12 * 589824.0 + 50304 * 768.0) + 56623104.0);
    m.untie = true;
    assert_int_equal(params_init(&p, &m, NULL, &e), 0);
    assert_string_equal(p.v[p.output].name, "output_layer.weight");
    params_free(&p);
}

/* The published numbers of parameters; GPT-3's by the formula, its paper rounds them. */
static void presets_have_the_published_sizes(void **state)
{
    static const struct {
        const char *name;
        int64_t params;
    } want[] = {
        {"gpt2-124m", 124439808}, {"gpt2-355m", 354823168}, {"gpt2-774m", 774030080}, {"gpt2-1.5b", 1557611200},
        {"gpt3-125m", 125226240}, {"gpt3-175b", 174604259328},
        {"llama-7b", 6738415616}, {"llama-13b", 13015864320}, {"llama-30b", 32528943616}, {"llama-65b", 65285660672},
        {"llama2-7b", 6738415616}, {"llama2-13b", 13015864320}, {"llama2-70b", 68976648192},
        {"llama3-8b", 8030261248}, {"llama3-70b", 70553706496}, {"llama3.1-405b", 405853388800},
        {"llama3.2-1b", 1235814400}, {"llama3.2-3b", 3212749824},
    };

    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct train_config c;
        struct params p;
        struct err e;
        char preset[64];
        int64_t n = 0;

        snprintf(preset, sizeof preset, "preset=%s", want[i].name);
        if (config(&c, &e, (const char *const[]){preset, "make-vocab-size-divisible-by=1", "mock-data=true",
                                                 "train-iters=1", "lr=1", NULL}) < 0)
            fail_msg("%s: %s", want[i].name, e.msg);
        if (model_config_params(&c.model) != want[i].params)
            fail_msg("%s: %lld parameters, not %lld", want[i].name, (long long)model_config_params(&c.model),
                     (long long)want[i].params);
        assert_int_equal(params_init(&p, &c.model, NULL, &e), 0);
        for (int k = 0; k < p.n; k++) {
            int64_t rows = 0;

            for (int q = 0; q < p.v[k].parts; q++)
                rows += p.v[k].part[q];
            assert_int_equal(rows, p.v[k].shape[0]);
            n += (int64_t)p.v[k].n;
        }
        assert_int_equal(n, want[i].params);
        params_free(&p);
        train_config_free(&c);
    }
}

/* Without a preset Megatron's defaults. */
static void presets_are_without_dropout(void **state)
{
    struct train_config c;
    struct err e;

    (void)state;
    for (const char *const *name = model_preset_names(); *name; name++) {
        char preset[64];

        snprintf(preset, sizeof preset, "preset=%s", *name);
        assert_int_equal(config(&c, &e, (const char *const[]){preset, "mock-data=true", "train-iters=1", "lr=1", NULL}), 0);
        if (c.model.attention_dropout != 0 || c.model.hidden_dropout != 0)
            fail_msg("%s: dropout %g, %g", *name, c.model.attention_dropout, c.model.hidden_dropout);
        train_config_free(&c);
    }
    assert_int_equal(CONFIG(&c, &e, "preset=gpt2-124m", "hidden-dropout=0.2"), 0);
    assert_true(c.model.attention_dropout == 0 && c.model.hidden_dropout == 0.2);
    train_config_free(&c);
    assert_int_equal(CONFIG(&c, &e, NULL), 0);
    assert_true(c.model.attention_dropout == 0.1 && c.model.hidden_dropout == 0.1);
    train_config_free(&c);
}

static void flags_go_before_the_preset(void **state)
{
    struct train_config c;
    struct err e;

    (void)state;
    assert_int_equal(CONFIG(&c, &e, "preset=llama2-70b", "num-query-groups=2", "kv-channels=32",
                            "normalization=LayerNorm", "attention-dropout=0.2"), 0);
    assert_int_equal(c.model.hidden, 64); /* BASE gives it */
    assert_int_equal(c.model.head_dim, 32);
    assert_int_equal(c.model.groups, 2);
    assert_int_equal(c.model.norm, NORM_LAYER);
    assert_int_equal(c.model.ffn, 28672); /* the preset's */
    assert_int_equal(c.model.position, POSITION_ROPE);
    assert_true(c.model.attention_dropout == 0.2 && c.model.hidden_dropout == 0);
    train_config_free(&c);
}

static void initial_weights_do_not_depend_on_the_layout(void **state)
{
    struct model_config small = {.layers = 2, .hidden = 32, .heads = 2, .seq = 8, .vocab = 64}, deep = small;
    struct params p, q;
    struct err e;
    float *a, *b;
    double sum = 0, squares = 0;

    (void)state;
    small.init_std = deep.init_std = 0.02;
    deep.layers = 3;
    assert_int_equal(model_config_check(&small, 1, &e) | model_config_check(&deep, 1, &e), 0);
    assert_int_equal(params_init(&p, &small, NULL, &e) | params_init(&q, &deep, NULL, &e), 0);
    a = malloc(p.elements * sizeof *a);
    b = malloc(q.elements * sizeof *b);
    params_fill(&p, 7, a);
    params_fill(&q, 7, b);
    int i = params_layer(&p, 1, QKV_W), j = params_layer(&q, 1, QKV_W);
    assert_memory_equal(a + p.v[i].at, b + q.v[j].at, p.v[i].n * sizeof *a);
    for (size_t k = 0; k < p.v[i].n; k++) {
        sum += a[p.v[i].at + k];
        squares += (double)a[p.v[i].at + k] * a[p.v[i].at + k];
    }
    double n = (double)p.v[i].n, std = sqrt(squares / n);
    assert_true(fabs(sum / n) < 4 * 0.02 / sqrt(n));
    assert_true(fabs(std - 0.02) < 4 * 0.02 / sqrt(2 * n));
    i = params_layer(&p, 0, PROJ_W);
    assert_true(fabs(p.v[i].std - 0.02 / sqrt(4)) < 1e-12);
    assert_true(a[p.v[params_layer(&p, 0, LN1_W)].at] == 1 && a[p.v[params_layer(&p, 0, LN1_B)].at] == 0);
    params_fill(&p, 8, b);
    assert_memory_not_equal(a, b, p.v[0].n * sizeof *a);
    free(a);
    free(b);
    params_free(&p);
    params_free(&q);
}

/* Values of Megatron's OptimizerParamScheduler.get_lr by its formulae, worked out in
 * Python: max 1e-3, min 1e-4, 100 steps of decay and 10 of warm-up, batches of 4. */
static void schedules_follow_megatron(void **state)
{
    static const struct {
        const char *style, *wsd;
        double at[6]; /* before steps 1, 6, 11, 56, 91 and 101 + 1 */
    } want[] = {
        {"constant", "exponential", {0, 5e-4, 1e-3, 1e-3, 1e-3, 1e-3}},
        {"linear", "exponential", {0, 5e-4, 1e-3, 5.5e-4, 2e-4, 1e-4}},
        {"cosine", "exponential", {0, 5e-4, 1e-3, 5.5e-4, 1.2713832064634127e-4, 1e-4}},
        {"inverse-square-root", "exponential", {0, 5e-4, 1e-3, 4.264014327112209e-4, 3.333333333333333e-4, 1e-4}},
        {"WSD", "linear", {0, 5e-4, 1e-3, 1e-3, 5.5e-4, 1e-4}},
        {"WSD", "exponential", {0, 5e-4, 1e-3, 1e-3, 4.727922061357856e-4, 1e-4}},
        {"WSD", "cosine", {0, 5e-4, 1e-3, 1e-3, 5.5e-4, 1e-4}},
        {"WSD", "minus_sqrt", {0, 5e-4, 1e-3, 1e-3, 3.636038969321072e-4, 1e-4}},
    };
    static const int64_t step[] = {0, 5, 10, 55, 90, 101};

    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct train_config c;
        struct err e;
        char style[64], wsd[64];

        snprintf(style, sizeof style, "lr-decay-style=%s", want[i].style);
        snprintf(wsd, sizeof wsd, "lr-wsd-decay-style=%s", want[i].wsd);
        assert_int_equal(CONFIG(&c, &e, style, wsd, "lr-wsd-decay-iters=20", "min-lr=0.0001", "lr-warmup-iters=10",
                                "global-batch-size=4"), 0);
        struct schedule s = schedule_of(&c);
        for (int k = 0; k < 6; k++)
            if (!(fabs(schedule_lr(&s, step[k] * 4) - want[i].at[k]) <= 1e-12))
                fail_msg("%s %s: step %d: %.15g, not %.15g", want[i].style, want[i].wsd, (int)step[k] + 1,
                         schedule_lr(&s, step[k] * 4), want[i].at[k]);
    }
}

/* Megatron: from 2 by 2 to 8 in 60 samples: 20 samples each. */
static void batches_ramp_up(void **state)
{
    struct train_config c;
    struct err e;
    int64_t consumed = 0, steps = 0;

    (void)state;
    assert_int_equal(CONFIG(&c, &e, "train-iters=0", "train-samples=200", "global-batch-size=8", "micro-batch-size=2",
                            "rampup-batch-size=2,2,60"), 0);
    assert_int_equal(train_config_batch(&c, 0), 2);
    assert_int_equal(train_config_batch(&c, 19), 2);
    assert_int_equal(train_config_batch(&c, 20), 4);
    assert_int_equal(train_config_batch(&c, 40), 6);
    assert_int_equal(train_config_batch(&c, 60), 8);
    assert_int_equal(train_config_batch(&c, 100000), 8);
    assert_int_equal(c.samples, 200);
    for (; consumed + train_config_batch(&c, consumed) <= 200; steps++)
        consumed += train_config_batch(&c, consumed);
    assert_int_equal(c.iters, steps); /* 10 of 2, 5 of 4, 4 of 6, then of 8 */
    assert_int_equal(steps, 10 + 5 + 4 + (200 - 64) / 8);
    struct schedule s = schedule_of(&c);
    assert_true(s.decay == 200);
    assert_int_equal(CONFIG(&c, &e, "train-iters=0", "train-samples=9", "global-batch-size=8", "micro-batch-size=2",
                            "rampup-batch-size=2,2,60"), 0);
    assert_int_equal(c.iters, 4);
    assert_int_equal(CONFIG(&c, &e, "train-iters=0", "train-samples=64", "global-batch-size=8", "micro-batch-size=2",
                            "rampup-batch-size=8 2 60"), 0);
    assert_int_equal(c.iters, 8);
    /* 40 samples in 3: 13.33 each, not 13 */
    assert_int_equal(CONFIG(&c, &e, "train-iters=0", "train-samples=200", "global-batch-size=8", "micro-batch-size=2",
                            "rampup-batch-size=2,2,40"), 0);
    assert_int_equal(train_config_batch(&c, 26), 4);
    assert_int_equal(train_config_batch(&c, 27), 6);
    assert_int_equal(train_config_batch(&c, 39), 6);
    assert_int_equal(train_config_batch(&c, 40), 8);
}

/* Megatron lays out and decays over all samples, also those that make no whole batch. */
static void samples_need_make_no_whole_batches(void **state)
{
    struct train_config c;
    struct err e;

    (void)state;
    assert_int_equal(CONFIG(&c, &e, "train-iters=0", "train-samples=203", "global-batch-size=8", "micro-batch-size=2"), 0);
    assert_int_equal(c.iters, 25);
    assert_int_equal(c.samples, 203);
    struct schedule s = schedule_of(&c);
    assert_true(s.decay == 203);
}

static void warm_up_can_be_a_fraction(void **state)
{
    struct train_config c;
    struct err e;

    (void)state;
    assert_int_equal(CONFIG(&c, &e, "lr-warmup-fraction=0.1"), 0);
    struct schedule s = schedule_of(&c);
    assert_true(fabs(schedule_lr(&s, 5) - 5e-4) < 1e-12);
    assert_int_equal(CONFIG(&c, &e, "lr-warmup-fraction=0.1", "lr-warmup-iters=3"), ERR_ARG);
    assert_int_equal(CONFIG(&c, &e, "lr-warmup-samples=20"), ERR_ARG);
    assert_int_equal(CONFIG(&c, &e, "lr-warmup-samples=20", "lr-decay-samples=101", "train-iters=0", "train-samples=400",
                            "global-batch-size=8"), 0);
    s = schedule_of(&c);
    assert_true(fabs(schedule_lr(&s, 5) - c.lr / 4) < 1e-12 && s.decay == 101);
}

static void settings_are_listed_for_the_checkpoint(void **state)
{
    struct train_config c;
    struct checkpoint_arg *args;
    struct arena a = {0};
    struct err e;
    int n, seen = 0;

    (void)state;
    assert_int_equal(CONFIG(&c, &e, "lr-decay-style=cosine"), 0);
    assert_int_equal(train_config_args(&c, &a, &args, &n, &e), 0);
    for (int i = 0; i < n; i++) {
        seen += strcmp(args[i].name, "lr-decay-style") == 0 && strcmp(args[i].text, "cosine") == 0;
        seen += strcmp(args[i].name, "hidden-size") == 0 && strcmp(args[i].text, "64") == 0;
    }
    assert_int_equal(seen, 2);
    arena_free(&a);
}

/* A resume compares every setting but those that say how ranks divide the work. */
static void only_the_division_is_not_compared(void **state)
{
    static const char *const division[] = {
        "distributed-backend", "tensor-model-parallel-size", "sequence-parallel", "context-parallel-size",
        "expert-model-parallel-size", "pipeline-model-parallel-size", "num-layers-per-virtual-pipeline-stage",
        "num-virtual-stages-per-pipeline-rank", "decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers",
        "account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split",
        "data-parallel-sharding-strategy", "use-distributed-optimizer", "overlap-grad-reduce", "overlap-param-gather",
        "grad-reduce-in-bf16", "optimizer-cpu-offload", "ddp-bucket-size",
    };
    struct train_config c;
    struct checkpoint_arg *args;
    struct arena a = {0};
    struct err e;
    int n, marked = 0;

    (void)state;
    assert_int_equal(CONFIG(&c, &e, "hidden-size=64"), 0);
    assert_int_equal(train_config_args(&c, &a, &args, &n, &e), 0);
    for (int i = 0; i < n; i++) {
        bool is = false;

        for (size_t k = 0; k < sizeof division / sizeof *division; k++)
            is = is || strcmp(args[i].name, division[k]) == 0;
        if (args[i].division != is)
            fail_msg("%s: %s", args[i].name, is ? "is compared" : "is not compared");
        marked += is;
    }
    assert_int_equal(marked, sizeof division / sizeof *division);
    arena_free(&a);
}

/* The stage that takes most is planned, with activations of as many micro-batches as there are stages,
 * however many a step has. */
static void stages_bound_memory(void **state)
{
    struct train_config c;
    struct train_memory whole, few, many, interleaved;
    struct err e;

    (void)state;
    assert_int_equal(CONFIG(&c, &e, "num-layers=8"), 0);
    assert_int_equal(trainer_plan(&c, &whole, &e), 0);
    world = 4;
    assert_int_equal(CONFIG(&c, &e, "num-layers=8", "pipeline-model-parallel-size=4", "global-batch-size=4"), 0);
    assert_int_equal(trainer_plan(&c, &few, &e), 0);
    assert_int_equal(CONFIG(&c, &e, "num-layers=8", "pipeline-model-parallel-size=4", "global-batch-size=64"), 0);
    assert_int_equal(trainer_plan(&c, &many, &e), 0);
    assert_int_equal(CONFIG(&c, &e, "num-layers=8", "pipeline-model-parallel-size=4", "global-batch-size=64",
                            "num-layers-per-virtual-pipeline-stage=1"), 0);
    assert_int_equal(c.stages.chunks, 2);
    assert_int_equal(trainer_plan(&c, &interleaved, &e), 0);
    world = 1;
    assert_memory_equal(&few, &many, sizeof few);
    assert_true(few.model.weights < whole.model.weights / 2 && few.model.activations < 2 * whole.model.activations);
    assert_true(interleaved.model.activations > many.model.activations);
}

/* Activations by equation 5 of arXiv:2205.05198 (34 bytes an element of the stream, a layer and micro-batch, of which
 * two are masks of dropout that are not kept here), interleaved ones too, and bytes a parameter by Megatron-LM's README. */
static void memory_is_the_published(void **state)
{
    static const struct {
        const char *layers, *hidden, *heads, *micro, *pipe, *part;
        int64_t ranks;
        double bytes;
    } t[] = {
        {"num-layers=48", "hidden-size=6144", "num-attention-heads=64", "micro-batch-size=4", "pipeline-model-parallel-size=1",
         "bf16=true", 8, 10.27e9},
        {"num-layers=96", "hidden-size=12288", "num-attention-heads=96", "micro-batch-size=1", "pipeline-model-parallel-size=8",
         "num-layers-per-virtual-pipeline-stage=4", 64, 13.26e9},
        {"num-layers=105", "hidden-size=20480", "num-attention-heads=128", "micro-batch-size=1",
         "pipeline-model-parallel-size=35", "num-layers-per-virtual-pipeline-stage=1", 280, 24.77e9},
        {"num-layers=128", "hidden-size=25600", "num-attention-heads=160", "micro-batch-size=1",
         "pipeline-model-parallel-size=64", "bf16=true", 512, 28.52e9},
    };

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (int shared = 0; shared < 2; shared++) {
            struct train_config c;
            struct train_memory m;
            struct err e;
            double parameters, each;
            const int64_t d = shared ? 16 : 1;

            world = t[i].ranks * d;
            assert_int_equal(CONFIG(&c, &e, t[i].layers, t[i].hidden, t[i].heads, t[i].micro, t[i].pipe, "seq-length=2048",
                                    "max-position-embeddings=2048", "vocab-size=51200", "bf16=true", "sequence-parallel=true",
                                    "tensor-model-parallel-size=8", t[i].part, "global-batch-size=8960",
                                    shared ? "use-distributed-optimizer=true" : "bf16=true"), 0);
            assert_int_equal(trainer_plan(&c, &m, &e), 0);
            world = 1;
            parameters = (double)m.model.low / 2;
            each = (double)(m.model.weights + m.model.low + m.model.grads + m.optimizer) / parameters;
            assert_true(fabs(each - (shared ? 6 + 12.0 / (double)d : 18)) < 0.01);
            assert_in_range((int64_t)(1000 * (double)m.model.activations / t[i].bytes), 1000 * 32 / 34, 1000);
        }
}

static void a_group_of_one_copies(void **state)
{
    struct comm *c;
    struct err e;
    float v[3] = {1, 2, 3}, w[3] = {0};
    struct comm_handle h = {0};
    struct comm_call call = {.kind = COMM_ALL_GATHER, .send = v, .recv = w, .n = 3, .type = COMM_F32};

    (void)state;
    assert_int_equal(comm_open_self(&c, &e), 0);
    assert_int_equal(c->size, 1);
    assert_int_equal(comm_wait(&h, &e), 0); /* nothing in flight */
    assert_int_equal(comm_all_reduce(c, v, 3, COMM_F32, COMM_SUM, &e), 0);
    assert_true(v[0] == 1 && v[2] == 3);
    assert_int_equal(comm_start(c, &call, &h, &e), 0);
    assert_int_equal(comm_wait(&h, &e), 0);
    assert_memory_equal(v, w, sizeof v);
    call.kind = COMM_SEND;
    assert_int_equal(comm_start(c, &call, &h, &e), ERR_ARG);
    assert_non_null(strstr(e.msg, "own peer"));
    call.kind = COMM_BROADCAST;
    call.peer = 1;
    assert_int_equal(comm_start(c, &call, &h, &e), ERR_ARG);
    comm_close(c);
    comm_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_megatrons),
        cmocka_unit_test(refusals_name_the_flag),
        cmocka_unit_test(parameters_are_counted),
        cmocka_unit_test(presets_have_the_published_sizes),
        cmocka_unit_test(presets_are_without_dropout),
        cmocka_unit_test(flags_go_before_the_preset),
        cmocka_unit_test(initial_weights_do_not_depend_on_the_layout),
        cmocka_unit_test(schedules_follow_megatron),
        cmocka_unit_test(batches_ramp_up),
        cmocka_unit_test(samples_need_make_no_whole_batches),
        cmocka_unit_test(warm_up_can_be_a_fraction),
        cmocka_unit_test(settings_are_listed_for_the_checkpoint),
        cmocka_unit_test(only_the_division_is_not_compared),
        cmocka_unit_test(stages_bound_memory),
        cmocka_unit_test(memory_is_the_published),
        cmocka_unit_test(a_group_of_one_copies),
    };

    return cmocka_run_group_tests_name("train_config", tests, NULL, NULL);
}
