/* The ops of training on the GPU against what its memory and its matrix units do, and whole steps of models in bf16 and FP8.
 * make gpu-bench; two tables with tabs:
 *     model  micro-batches  layers  parameters  tokens/s  TFLOP/s  share  MiB
 *     op  shape  seconds  GB/s  share of a copy's  TFLOP/s  share of the largest product's (of FP8 where it is FP8)  planned
 * After each step its plan stands, op by op (train/plan_ops.h); the ops that plans know are kept in $QUERN_DEVICE_FILE.
 * Seconds are of the best of seven runs after two, by events; updates of some micro-batches the mean of four
 * after three, by the clock, with CUDA graphs where the model allows them and nothing else is said.
 *     gpu_train_bench [SECONDS [TOKENS [NAME]]]
 * What is not done after SECONDS (0: no limit) is left out, what matters most comes first; NAME: that job alone, in this process,
 * as profilers like it.
 * What does not run leaves the others alone (tests/jobs.h). */
#include <unistd.h>

#include "bench/gpu_train/gpu_train.h"
#include "tests/jobs.h"

enum { LIMIT = 100 };

/* In order: what matters most comes first. */
struct measured {
    const char *name;
    void (*ops)(int64_t arg); /* NULL: steps of model arg */
    int64_t arg;
    enum bench_how how;
};
static const struct measured all[] = {
    {"GPT-2 124M", NULL, GPT2_124M, BF16},
    {"GPT-2 1.5B", NULL, GPT2_1_5B, BF16},
    {"GPT-2 1.5B, FP8", NULL, GPT2_1_5B, FP8},
    {"Llama 7B, 16 layers", NULL, LLAMA_7B, BF16},
    {"Llama 7B, 16 layers, FP8", NULL, LLAMA_7B, FP8},
    {"Llama 7B, 16 layers, FP8 by blocks", NULL, LLAMA_7B, BLOCKS},
    {"FP8 by blocks", bench_blocks, 0, BLOCKS},
    {"attention", bench_attentions, 0, BF16},
    {"products", bench_products, 0, BF16},
    {"Llama 1B", NULL, LLAMA_1B, BF16},
    {"ops bound by memory", bench_by_memory, 0, BF16},
    {"products in FP8", bench_products, 1, FP8},
    {"GPT-2 124M, nanoGPT's step", NULL, GPT2_124M_NANOGPT, BF16},
    {"GPT-2 124M, llm.c's step", NULL, GPT2_124M_LLMC, BF16},
    {"experts", bench_experts, 0, BF16},
    {"Mixtral", NULL, MIXTRAL, BF16},
    {"FP8 conversions", bench_fp8_casts, 0, BF16},
    {"GPT-2 124M, FP8", NULL, GPT2_124M, FP8},
    {"Llama 1B, FP8", NULL, LLAMA_1B, FP8},
    {"GPT-2 124M, without graphs", NULL, GPT2_124M, NO_GRAPHS},
    {"GPT-2 1.5B, without graphs", NULL, GPT2_1_5B, NO_GRAPHS},
    {"GPT-2 1.5B, deterministic", NULL, GPT2_1_5B, DETERMINISTIC},
    {"GPT-2 774M", NULL, GPT2_774M, BF16},
    {"GPT-2 350M", NULL, GPT2_350M, BF16},
    {"GPT-2 774M, FP8", NULL, GPT2_774M, FP8},
    {"GPT-2 350M, FP8", NULL, GPT2_350M, FP8},
};

static const char *measured_name(int i) { return all[i].name; }

static int measure(int i)
{
    failed = 0;
    if ((all[i].how == FP8 || all[i].how == BLOCKS) && !dev->fast_fp8)
        return 0;
    if (!all[i].ops) {
        give_places();
        dev->deterministic = all[i].how == DETERMINISTIC;
        if (info.memory) /* else kernels run on the CPU */
            bench_step((enum bench_model)all[i].arg, all[i].how, all[i].name);
        dev->deterministic = false;
        return failed != 0;
    }
    take_places();
    all[i].ops(all[i].arg);
    return failed != 0;
}

static int open_gpu(void)
{
    const struct cuda_backend *b;

    setvbuf(stdout, NULL, _IOLBF, 0);
    must(device_open(&dev, "cuda", 0, &err));
    must(cuda_backend_open(&b, &err));
    must(b->info(0, &info, &err));
    plan_machine_named(&machine, dev->name);
    place_bytes = (size_t)tokens * 50304 * 2;
    take_places();
    copy_rate = 2.0 * (double)place_bytes / best_of(run_copy, (const int64_t[]){(int64_t)place_bytes});
    peak = measure_peak(false);
    peak_fp8 = dev->fast_fp8 ? measure_peak(true) : peak;
    printf("# %s: a copy moves %.0f GB/s, a large product does %.0f TFLOP/s of bf16, %.0f of FP8\n", dev->name, 1e-9 * copy_rate,
           1e-12 * peak, 1e-12 * peak_fp8);
    return 0;
}

int main(int argc, char **argv)
{
    const struct job_set jobs = {.n = sizeof all / sizeof *all, .name = measured_name, .open = open_gpu, .run = measure,
                                 .dev = &dev, .limit = LIMIT, .budget = argc > 1 ? atof(argv[1]) : 0};
    struct jobs_result r;
    int rc;

    dup2(STDOUT_FILENO, STDERR_FILENO); /* what the backend notes stands where it belongs */
    tokens = argc > 2 ? atoll(argv[2]) : tokens;
    if (argc > 3) {
        int i = 0;
        while (i < jobs.n && strcmp(all[i].name, argv[3]) != 0)
            i++;
        return i == jobs.n || open_gpu() < 0 ? 2 : measure(i);
    }
    rc = jobs_run(&jobs, &r);
    return rc < 0 ? 2 : r.failed > 0;
}
