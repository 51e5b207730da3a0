/* Whole steps of models. */
#include "bench/gpu_train/gpu_train.h"
#include "tests/jobs.h"
#include "tests/steps.h"

enum { STEPS_WARM = 3, STEPS = 4 };

struct sized {
    int64_t b;
    struct model_config c;
    int micro_batches; /* of an update, as in life; 0: STEPS_MICRO_BATCHES */
};
static int micro_batches(const struct sized *x)
{
    return x->micro_batches ? x->micro_batches : STEPS_MICRO_BATCHES;
}

#define GPT2(l, h, n) {.layers = l, .hidden = h, .heads = n, .seq = 1024, .positions = 1024, .vocab = 50257, .init_std = 0.02}
#define LLAMA(l, h, n, g, f, s)                                                                                          \
    {.layers = l, .hidden = h, .heads = n, .groups = g, .ffn = f, .seq = s, .positions = s, .vocab = 32000, .norm = NORM_RMS, \
     .position = POSITION_ROPE, .untie = true, .mlp = MLP_SWIGLU, .no_bias = true, .init_std = 0.02}
#define MOE                                                                                                                \
    {.layers = 32, .hidden = 4096, .heads = 32, .groups = 8, .ffn = 14336, .seq = 4096, .positions = 4096, .vocab = 32000, \
     .norm = NORM_RMS, .position = POSITION_ROPE, .untie = true, .mlp = MLP_SWIGLU, .no_bias = true, .init_std = 0.02,        \
     .experts = 8, .topk = 2, .aux_loss = 0.01}
static const struct sized models[] = {
    [GPT2_124M] = {32, GPT2(12, 768, 12)},
    [GPT2_124M_NANOGPT] = {12, GPT2(12, 768, 12), 5}, /* train_gpt2.py: 40 of 12 on 8 devices */
    [GPT2_124M_LLMC] = {64, GPT2(12, 768, 12)},       /* 524,288 tokens an update */
    [GPT2_350M] = {24, GPT2(24, 1024, 16)},
    [GPT2_774M] = {16, GPT2(36, 1280, 20)},
    [GPT2_1_5B] = {16, GPT2(48, 1600, 25)},
    [LLAMA_1B] = {8, LLAMA(16, 2048, 32, 8, 8192, 2048)},
    [LLAMA_7B] = {4, LLAMA(16, 4096, 32, 32, 11008, 4096)},
    [MIXTRAL] = {2, MOE},
};

/* Takes layers off until it fits into bytes. */
static size_t fit(struct model_config *c, const struct model_run *run, double bytes)
{
    for (;; c->layers--) {
        struct model_config whole = *c;
        struct model_memory m;
        size_t all;
        must(model_config_check(&whole, 128, &err));
        must(model_plan(&m, &whole, NULL, run, &err));
        all = m.weights * 3 + m.low + m.fp8 + m.grads + m.activations + m.tables;
        if ((double)all < bytes || c->layers == 1)
            return all;
    }
}

/* What the step would take by its plan, op by op. */
static void print_plan(const struct sized *x, const struct model_config *c, const struct model_fp8_run *fp8, double seconds)
{
    const struct plan_share share = {.model = c, .b = x->b, .t = c->seq, .layers = c->layers, .context = 1, .tensor = 1,
                                     .expert = 1, .head = true, .embeds = true, .bf16 = true,
                                     .fp8 = fp8->format != MODEL_FP8_NONE, .recipe = fp8->recipe,
                                     .converts = 1 / (double)micro_batches(x), .expert_converts = 1 / (double)micro_batches(x)};
    struct plan_sum s = {.rates = &machine.rates, .bf16 = true};
    double params = (double)model_config_params(c);
    char line[160];

    if (!(machine.rates.bytes > 0))
        return;
    plan_micro_batch(&share, plan_sum_add, &s);
    plan_sum_times(&s, micro_batches(x));
    plan_update(&share, 1, params, params, plan_sum_add, &s);
    printf("# planned: %.4f s (%.0f tokens/s); it took %.4f, %.2f of it\n", s.all,
           (double)(micro_batches(x) * x->b * c->seq) / s.all, seconds, seconds / s.all);
    for (int i = 0; plan_sum_line(&s, i, line, sizeof line); i++)
        printf("#   %s\n", line);
}

void bench_step(enum bench_model which, enum bench_how how, const char *name)
{
    const struct sized *x = &models[which];
    static bool begun;
    struct model_config c = x->c;
    struct model_run run = {.dt = DTYPE_BF16, .use = MODEL_TRAIN, .b = x->b, .t = c.seq,
                            .fp8 = {.format = how == FP8 ? MODEL_FP8_HYBRID : how == BLOCKS ? MODEL_FP8_E4M3 : MODEL_FP8_NONE,
                                    .recipe = how == BLOCKS ? FP8_BLOCKWISE : FP8_DELAYED, .algo = FP8_LARGEST, .history = 16}};
    size_t bytes = fit(&c, &run, (c.experts ? 0.85 : 0.92) * (double)info.memory); /* rows of experts are never even */
    struct train_steps s;
    double loss, norm, start = 0, seconds, rate, flops;
    int rc = steps_open(&s, dev, c, &run, true, &err);

    if (!begun)
        printf("model\tmicro-batches\tlayers\tparameters\ttokens/s\tTFLOP/s\tof the peak\tMiB\n");
    begun = true;
    s.micro_batches = micro_batches(x);
    if (rc == 0 && how != NO_GRAPHS && !model_graph_refuses(s.model))
        model_graph_open(&s.graph, s.model, s.loss);
    for (int i = 0; i < STEPS_WARM + STEPS && rc == 0; i++) {
        if (i == STEPS_WARM) {
            rc = device_sync(dev, &err);
            start = jobs_clock();
        }
        if (rc == 0)
            rc = steps_one(&s, &loss, &norm, &err);
    }
    rc = rc < 0 ? rc : device_sync(dev, &err);
    if (rc < 0) {
        printf("%s\tdoes not run: %s\n", name, err.msg);
        failed++;
        steps_close(&s);
        return;
    }
    seconds = (jobs_clock() - start) / STEPS;
    rate = (double)(s.micro_batches * x->b * c.seq) / seconds;
    flops = rate * model_config_flops(&s.model->whole, c.seq);
    printf("%s\t%d of %lld x %lld\t%lld\t%.0fM\t%.0f\t%.0f\t%.0f %%\t%zu\n", name, s.micro_batches, (long long)x->b,
           (long long)c.seq, (long long)c.layers, 1e-6 * (double)model_config_params(&s.model->whole), rate, 1e-12 * flops,
           100 * flops / peak, bytes >> 20);
    print_plan(x, &s.model->whole, &run.fp8, seconds);
    steps_close(&s);
}
