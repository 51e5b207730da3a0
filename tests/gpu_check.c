/* Runs every op of the CUDA backend against its CPU twin, on the GPU, and trains small models on both.  make gpu-check
 *     gpu_check [SCALE]     1: small (default 50) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/steps.h"
#include "tests/twins.h"
#include "train/exchange.h"

static int passed, failed;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void say(const char *name, const char *wrong, double start)
{
    passed += !wrong[0];
    failed += wrong[0] != 0;
    printf("%s - %s%s%s (%.1f s)\n", wrong[0] ? "not ok" : "ok", name, wrong[0] ? ": " : "", wrong, now() - start);
}

static void run_cases(struct twins *t, const struct twins_case *c)
{
    for (; c->name; c++) {
        double start = now();
        t->wrong[0] = '\0';
        c->run(t);
        say(c->name, t->wrong, start);
    }
}

/* ---- training ---- */

enum { STEPS = 50 };
struct curve {
    double loss[STEPS], norm[STEPS];
};

static void train(struct device *dev, const struct model_config *config, enum dtype dt, enum model_fp8_format fp8, int steps,
                  struct curve *c, char *wrong)
{
    struct model_run run = {.dt = dt, .use = MODEL_TRAIN, .b = 2, .t = config->seq, .fp8 = {.format = fp8, .history = 4}};
    struct steps s;
    struct err e;
    int rc = steps_open(&s, dev, *config, &run, false, &e);

    for (int i = 0; rc == 0 && i < steps; i++)
        rc = steps_one(&s, &c->loss[i], &c->norm[i], &e);
    if (rc < 0)
        snprintf(wrong, 256, "%.60s: %.150s", dev->name, e.msg);
    steps_close(&s);
}

/* Losses of both devices step by step; then the GPU once more, which must give the same bits. */
static void parity(struct device *cpu, struct device *gpu, const char *name, const struct model_config *config, enum dtype dt,
                   enum model_fp8_format fp8, double tol, int steps)
{
    struct curve a = {.loss = {0}}, b = a, c = a;
    char wrong[256] = "", title[100];
    double start = now(), most = 0;

    train(cpu, config, dt, fp8, steps, &a, wrong);
    train(gpu, config, dt, fp8, steps, &b, wrong);
    for (int i = 0; i < steps && !wrong[0]; i++) {
        double err = fabs(a.loss[i] - b.loss[i]) / a.loss[i];
        most = err > most ? err : most;
        if (!(err <= tol))
            snprintf(wrong, sizeof wrong, "step %d: loss %.7f, not %.7f", i + 1, b.loss[i], a.loss[i]);
    }
    if (!wrong[0] && steps == STEPS && !(b.loss[STEPS - 1] < 0.8 * b.loss[0]))
        snprintf(wrong, sizeof wrong, "the loss went from %.4f to %.4f only", b.loss[0], b.loss[STEPS - 1]);
    snprintf(title, sizeof title, "%s, %s, %d steps: within %.1e of the CPU", name, fp8 ? "FP8" : dtype_name(dt), steps, most);
    say(title, wrong, start);
    start = now();
    train(gpu, config, dt, fp8, steps, &c, wrong);
    if (!wrong[0] && memcmp(&b, &c, sizeof b) != 0)
        snprintf(wrong, sizeof wrong, "a second run gave other bits");
    snprintf(title, sizeof title, "%s, %s: the same bits again", name, fp8 ? "FP8" : dtype_name(dt));
    say(title, wrong, start);
}

static void train_both(struct device *cpu, struct device *gpu, int scale)
{
    int64_t wide = scale > 1 ? 256 : 32;
    struct model_config gpt = {.layers = 4, .hidden = wide, .heads = wide / 64 ? wide / 64 : 1, .seq = wide, .positions = wide,
                               .vocab = 500, .hidden_dropout = 0.1, .attention_dropout = 0.1, .init_std = 0.02};
    struct model_config llama = {.layers = 4, .hidden = wide, .heads = wide / 64 ? wide / 64 : 2,
                                 .groups = wide / 128 ? wide / 128 : 1,
                                 .seq = wide, .positions = wide, .vocab = 500, .norm = NORM_RMS, .ffn = 3 * wide,
                                 .position = POSITION_ROPE,
                                 .untie = true, .swiglu = true, .no_bias = true, .init_std = 0.02};
    int steps = scale > 1 ? STEPS : 3;

    parity(cpu, gpu, "GPT", &gpt, DTYPE_F32, MODEL_FP8_NONE, 1e-3, steps);
    parity(cpu, gpu, "GPT", &gpt, DTYPE_BF16, MODEL_FP8_NONE, 2e-2, steps);
    gpt.hidden_dropout = gpt.attention_dropout = 0;
    parity(cpu, gpu, "GPT without dropout", &gpt, DTYPE_BF16, MODEL_FP8_NONE, 2e-2, steps);
    parity(cpu, gpu, "Llama", &llama, DTYPE_F32, MODEL_FP8_NONE, 1e-3, steps);
    parity(cpu, gpu, "Llama", &llama, DTYPE_BF16, MODEL_FP8_NONE, 2e-2, steps);
    parity(cpu, gpu, "GPT", &gpt, DTYPE_BF16, MODEL_FP8_HYBRID, 4e-2, steps);
    parity(cpu, gpu, "Llama", &llama, DTYPE_BF16, MODEL_FP8_E4M3, 4e-2, steps);
}

/* ---- NCCL ---- */

/* One call of a group of one rank on the device, where each is a copy: what came must be what went. */
static int nccl_call(struct device *gpu, struct comm *c, enum comm_kind kind, enum dtype dt, size_t n, char *wrong, struct err *e)
{
    size_t bytes = n * dtype_size(dt);
    unsigned char *in = malloc(bytes), *out = calloc(1, bytes);
    void *from = NULL, *to = NULL;
    struct comm_call call = {.kind = kind, .n = n, .type = exchange_type(dt)};
    int rc = in && out ? device_alloc(gpu, &from, bytes, e) : err_set(e, ERR_NOMEM, "out of memory");

    for (size_t i = 0; rc == 0 && i < bytes; i++)
        in[i] = (unsigned char)((i * 2654435761u >> 13) & 0x3f);
    rc = rc ? rc : device_alloc(gpu, &to, bytes, e);
    rc = rc ? rc : device_put(gpu, from, in, bytes, e);
    rc = rc ? rc : device_zero(gpu, to, bytes, e);
    call.send = from;
    call.recv = to;
    rc = rc ? rc : exchange(gpu, c, &call, e);
    rc = rc ? rc : device_get(gpu, out, to, bytes, e);
    if (rc == 0 && memcmp(in, out, bytes) != 0)
        snprintf(wrong, 256, "%s of %zu in '%s' changed what it moved", comm_kind_name(kind), n, c->name);
    device_free(gpu, from);
    device_free(gpu, to);
    free(in);
    free(out);
    return rc;
}

/* A rank needs a GPU of its own, so here there is one: the library, its calls on streams beside the ops, a group split off. */
static void nccl(struct device *gpu)
{
    static const enum comm_kind kinds[] = {COMM_ALL_REDUCE, COMM_REDUCE_SCATTER, COMM_ALL_GATHER, COMM_BROADCAST,
                                           COMM_ALL_TO_ALL};
    struct comm *world = NULL, *part = NULL;
    char wrong[256] = "";
    double start = now();
    struct err e;
    int rc = comm_open(&world, "nccl", 60, &e);

    if (rc == ERR_UNSUPPORTED) {
        printf("# NCCL: %s; not checked\n", e.msg);
        return;
    }
    rc = rc ? rc : exchange_use(gpu, world, &e);
    rc = rc ? rc : comm_split(world, 0, 0, "part", &part, &e);
    for (int i = 0; i < 20 && rc == 0 && !wrong[0]; i++)
        rc = nccl_call(gpu, i % 2 ? part : world, kinds[i / 2 % 5], i / 10 ? DTYPE_BF16 : DTYPE_F32, 1 << 20, wrong, &e);
    if (rc < 0)
        snprintf(wrong, sizeof wrong, "%.200s", e.msg);
    comm_close(part);
    comm_close(world);
    say("NCCL, one rank: all collectives, two groups", wrong, start);
}

int main(int argc, char **argv)
{
    struct twins t = {.scale = argc > 1 ? atoi(argv[1]) : 50, .short_sums = true};
    static const char *const ways[] = {"plain", "own", "cudnn"};
    struct err e;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (device_open(&t.other, "cuda", 0, &e) < 0 || device_open(&t.cpu, "cpu", 0, &e) < 0) {
        printf("not ok - open the GPU: %s\n0 passed, 1 failed\n", e.msg);
        return 1;
    }
    printf("# %s against %s\n", t.other->name, t.cpu->name);
    run_cases(&t, twins_cases);
    run_cases(&t, train_twins_cases);
    for (int i = 0; i < 3; i++) {
        printf("# attention: %s\n", ways[i]);
        setenv("QUERN_ATTENTION", ways[i], 1);
        for (const struct twins_case *c = train_twins_cases; c->name; c++)
            if (strcmp(c->name, "attention") == 0)
                run_cases(&t, (const struct twins_case[]){*c, {NULL, NULL}});
    }
    unsetenv("QUERN_ATTENTION");
    train_both(t.cpu, t.other, t.scale);
    nccl(t.other);
    printf("# memory of the ops: %.1f MiB\n", (double)device_overhead_bytes(t.other) / (1 << 20));
    device_close(t.other);
    device_close(t.cpu);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
