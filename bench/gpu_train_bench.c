/* The ops of training on the GPU against what its memory and its matrix units do, and whole steps of models in bf16 and FP8.
 * make gpu-bench; two tables with tabs:
 *     op  shape  seconds  GB/s  share of a copy's  TFLOP/s  share of the largest product's (of FP8 where it is FP8)
 *     model  micro-batch  layers  parameters  tokens/s  TFLOP/s  share  MiB
 * Seconds are of the best of seven runs after two, by events; steps the mean of ten after three, by the clock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda.h"
#include "tests/steps.h"

enum { WARM = 2, RUNS = 7, STEPS_WARM = 3, STEPS = 10 };

static struct device *dev;
static struct err err;
static double copy_rate, peak; /* peak: of the type at hand */

static void must(int rc)
{
    if (rc < 0) {
        fprintf(stderr, "gpu_train_bench: %s\n", err.msg);
        exit(1);
    }
}

/* ---- ops ---- */

enum { PLACES = 8 };
static void *place[PLACES]; /* numbers that are not zero, each of place_bytes */
static size_t place_bytes;

static void fill_places(void)
{
    enum { N = 1 << 20 };
    uint32_t *host = malloc(N * sizeof *host), x = 1;

    for (int i = 0; host && i < N; i++) { /* pairs of bf16 in +-[0.5, 1), sane as fp32 too */
        x = x * 1664525u + 1013904223u;
        host[i] = (x & 0x807f807fu) | 0x3f003f00u;
    }
    for (int p = 0; p < PLACES; p++) {
        must(device_alloc(dev, &place[p], place_bytes, &err));
        for (size_t i = 0; i + N * sizeof *host <= place_bytes; i += N * sizeof *host)
            must(device_put(dev, (char *)place[p] + i, host, N * sizeof *host, &err));
    }
    free(host);
}

typedef int job_fn(const int64_t *n);

static double best_seconds(job_fn *run, const int64_t *n)
{
    struct device_event *from, *to;
    double best = 1e30, s;

    must(device_event_new(dev, &from, &err));
    must(device_event_new(dev, &to, &err));
    for (int r = 0; r < WARM + RUNS; r++) {
        must(device_event_record(dev, from, &err));
        must(run(n));
        must(device_event_record(dev, to, &err));
        must(device_event_seconds(dev, from, to, &s, &err));
        if (r >= WARM && s < best)
            best = s;
    }
    device_event_free(dev, from);
    device_event_free(dev, to);
    return best;
}

static void job(const char *op, const char *shape, job_fn *run, const int64_t *n, double bytes, double flops)
{
    double best = best_seconds(run, n);

    if (copy_rate == 0)
        copy_rate = bytes / best;
    printf("%s\t%s\t%.6f\t%.0f\t%.0f %%\t%.0f\t%.0f %%\n", op, shape, best, 1e-9 * bytes / best, 100 * bytes / best / copy_rate,
           1e-12 * flops / best, 100 * flops / best / peak);
}

static int run_copy(const int64_t *n) { return device_copy(dev, place[1], place[0], (size_t)n[0], &err); }

/* n: m, n, k, kind (0 bias, 1 bias and GELU, 2 input gradient, 3 through GELU, 4 weight gradient), FP8 */
static int run_matmul(const int64_t *n)
{
    struct matmul p = {.m = n[0], .n = n[1], .k = n[2], .dt = DTYPE_BF16, .dt_c = DTYPE_BF16, .a = place[0], .b = place[1],
        .c = place[2]};

    p.trans_b = n[3] < 2;
    p.bias = n[3] < 2 ? place[3] : NULL;
    if (n[3] == 1)
        p.act = ACT_GELU_TANH, p.aux = place[4];
    if (n[3] == 3)
        p.dact = ACT_GELU_TANH, p.dact_aux = place[4];
    if (n[3] == 4)
        p.trans_a = true, p.dt_c = DTYPE_F32, p.beta = 1;
    if (n[4]) {
        p.trans_a = false, p.trans_b = true; /* of copies that lie so */
        p.fp8_a = n[3] < 2 ? FP8_E4M3 : FP8_E5M2, p.fp8_b = FP8_E4M3;
        p.inv_a = p.inv_b = place[6];
        p.fast = n[3] < 2;
    }
    return dev->ops->matmul(dev, &p, &err);
}

static void bench_matmul(int64_t m, int64_t n, int64_t k, int64_t kind, bool fp8)
{
    static const char *const kinds[] = {"matmul, bias", "matmul, bias, GELU", "matmul, input gradient", "matmul, through GELU",
                                        "matmul, weight gradient"};
    char shape[80], name[80];

    snprintf(shape, sizeof shape, "%lld x %lld x %lld", (long long)m, (long long)n, (long long)k);
    snprintf(name, sizeof name, "%s%s", fp8 ? "FP8 " : "", kinds[kind]);
    job(name, shape, run_matmul, (const int64_t[]){m, n, k, kind, fp8},
        (fp8 ? 1.0 : 2.0) * (double)(m * k + n * k) + (kind == 4 ? 8.0 : 2.0) * (double)(m * n),
        2.0 * (double)m * (double)n * (double)k);
}

/* FLOP/s of the largest product in FP8, by the best of a few. */
static double fp8_peak(int64_t t)
{
    int64_t side = t < 8192 ? t : 8192;
    const int64_t n[] = {side, side, side, 0, 1};

    return 2.0 * (double)side * (double)side * (double)side / best_seconds(run_matmul, n);
}

/* The products of a layer of GPT-2 1.5B and of Llama 7B, t tokens. */
static void bench_products(int64_t t, bool fp8)
{
    double of_bf16 = peak;

    if (fp8 && dev->fast_fp8) {
        peak = fp8_peak(t);
        printf("# %.0f TFLOP/s of FP8 in a large product\n", 1e-12 * peak);
    }
    for (int64_t kind = 0; kind < 5; kind++)
        if (kind < 4)
            bench_matmul(t, 6400, 1600, kind, fp8);
        else
            bench_matmul(6400, 1600, t, kind, fp8);
    if (!fp8)
        bench_matmul(t, 50304, 1600, 0, fp8);
    bench_matmul(t, 22016, 4096, 0, fp8);
    bench_matmul(4096, 11008, t, 4, fp8);
    peak = of_bf16;
}

/* n: rows, columns, which: 1 as it is, 2 transposed, 3 both, 0 the largest alone */
static int run_fp8(const int64_t *n)
{
    float *cell = place[6];
    struct fp8_quantize p = {n[0], n[1], FP8_E4M3, DTYPE_BF16, place[0], n[2] & 1 ? place[1] : NULL, n[2] & 2 ? place[2] : NULL,
                             cell, cell + 1};

    if (n[2])
        return dev->ops->fp8_quantize(dev, &p, &err);
    return dev->ops->fp8_amax(dev, DTYPE_BF16, cell + 2, place[0], n[0] * n[1], &err);
}

static void bench_fp8(int64_t rows, int64_t cols)
{
    static const char *const names[] = {"largest value", "to FP8", "to FP8, transposed", "to FP8, both"};
    char shape[80];

    snprintf(shape, sizeof shape, "%lld x %lld", (long long)rows, (long long)cols);
    for (int64_t k = 0; k < 4; k++)
        job(names[k], shape, run_fp8, (const int64_t[]){rows, cols, k}, (double)(rows * cols) * (double)(2 + (k + 1) / 2), 0);
}

/* n: b, t, heads, kv heads, d, backward */
static int run_attention(const int64_t *n)
{
    int64_t q = n[2] * n[4], kv = n[3] * n[4], row = q + 2 * kv, t = n[1];
    struct attention p = {.b = n[0], .t = t, .t_kv = t, .heads = n[2], .kv_heads = n[3], .d = n[4], .scale = 0.1f,
        .lse = place[2]};
    uint16_t *qkv = place[0], *g = place[4];

    p.q = (struct attention_view){qkv, t * row, row};
    p.k = (struct attention_view){qkv + q, t * row, row};
    p.v = (struct attention_view){qkv + q + kv, t * row, row};
    p.o = (struct attention_view){place[1], t * q, q};
    if (!n[5])
        return dev->ops->attention_fwd(dev, DTYPE_BF16, &p, &err);
    return dev->ops->attention_bwd(dev, DTYPE_BF16, &p, (struct attention_view){place[3], t * q, q},
                                   (struct attention_view){g, t * row, row},
                                   (struct attention_view){g + q, t * row, row},
                                   (struct attention_view){g + q + kv, t * row, row}, &err);
}

static void bench_attention(int64_t b, int64_t t, int64_t heads, int64_t kv, int64_t d)
{
    static const char *const ways[] = {"own", "cudnn"};
    double flops = 2.0 * (double)(b * heads * t) * (double)(t * d), bytes = 2.0 * (double)(b * t * d * (2 * heads + 2 * kv));
    char shape[80], name[80];

    snprintf(shape, sizeof shape, "%lld x %lld, %lld on %lld heads of %lld", (long long)b, (long long)t, (long long)heads,
             (long long)kv,
             (long long)d);
    for (int w = 0; w < 2; w++) {
        setenv("QUERN_ATTENTION", ways[w], 1);
        snprintf(name, sizeof name, "attention, %s", ways[w]);
        job(name, shape, run_attention, (const int64_t[]){b, t, heads, kv, d, 0}, bytes, flops);
        snprintf(name, sizeof name, "attention backward, %s", ways[w]);
        job(name, shape, run_attention, (const int64_t[]){b, t, heads, kv, d, 1}, 2 * bytes, 2.5 * flops);
    }
    unsetenv("QUERN_ATTENTION");
}

/* n: rows, columns, rms */
static int run_norm(const int64_t *n)
{
    struct norm_fwd p = {.t = n[0], .c = n[1], .eps = 1e-5f, .x = place[0], .residual = place[1], .gamma = place[2],
                         .beta = n[2] ? NULL : place[3], .s = place[4], .y = place[5], .mean = place[6], .rstd = place[7]};

    return (n[2] ? dev->ops->rmsnorm_fwd : dev->ops->layernorm_fwd)(dev, DTYPE_BF16, &p, &err);
}

static int run_norm_back(const int64_t *n)
{
    float *stat = place[7];
    struct norm_bwd p = {.t = n[0], .c = n[1], .dy = place[0], .dres = place[1], .s = place[2], .mean = stat,
        .rstd = stat + n[0],
                         .gamma = place[3], .ds = place[4], .dgamma = place[5], .dbeta = n[2] ? NULL : place[6]};

    return (n[2] ? dev->ops->rmsnorm_bwd : dev->ops->layernorm_bwd)(dev, DTYPE_BF16, &p, &err);
}

static int run_glu(const int64_t *n)
{
    return dev->ops->glu_fwd(dev, DTYPE_BF16, ACT_SILU, place[1], place[0], n[0], n[1], &err);
}
static int run_glu_back(const int64_t *n)
{
    return dev->ops->glu_bwd(dev, DTYPE_BF16, ACT_SILU, place[2], place[1], place[0], n[0], n[1], &err);
}
static int run_colsum(const int64_t *n)
{
    return dev->ops->vec_colsum(dev, DTYPE_BF16, place[1], place[0], n[0], n[1], n[1], &err);
}
static int run_sumsq(const int64_t *n) { return dev->ops->vec_sumsq(dev, DTYPE_F32, place[1], 65536, place[0], n[0], &err); }
static int run_cast(const int64_t *n) { return dev->ops->vec_cast(dev, place[1], DTYPE_BF16, place[0], DTYPE_F32, n[0], &err); }

static int run_adamw(const int64_t *n)
{
    struct adamw a = {1, 1e-4, 0.9, 0.95, 1e-8, 0.1, NULL};

    return dev->ops->adamw(dev, &a, place[0], place[1], place[2], place[3], place[4], n[0], &err);
}

/* Ids at the beginning of place[7]: n[0] of them below n[1]. */
static void put_ids(int64_t n, int64_t limit)
{
    int32_t *host = malloc((size_t)n * sizeof *host);
    uint32_t x = 5;

    for (int64_t i = 0; host && i < n; i++) {
        x = x * 1664525u + 1013904223u;
        host[i] = (int32_t)((x >> 8) % (uint32_t)limit);
    }
    must(device_put(dev, place[7], host, (size_t)n * sizeof *host, &err));
    free(host);
}

static int run_xent(const int64_t *n)
{
    struct xent p = {n[0], n[1], n[1], 0, place[0], place[7], place[2]};

    return dev->ops->xent(dev, DTYPE_BF16, &p, place[1], &err);
}

static int run_embedding(const int64_t *n)
{
    struct embedding p = {n[0], n[1], place[7], NULL, 0, n[2], 0};

    return n[3] ? dev->ops->embedding_bwd(dev, DTYPE_BF16, place[1], NULL, &p, place[0], &err)
                : dev->ops->embedding_fwd(dev, DTYPE_BF16, place[0], &p, place[1], NULL, &err);
}

static void bench_rows(int64_t t, int64_t c, int64_t rms)
{
    const int64_t n[] = {t, c, rms};
    char shape[80];

    snprintf(shape, sizeof shape, "%lld x %lld", (long long)t, (long long)c);
    job(rms ? "RMS norm, residual" : "layer norm, residual", shape, run_norm, n, 8.0 * (double)(t * c), 0);
    job(rms ? "RMS norm backward" : "layer norm backward", shape, run_norm_back, n, 8.0 * (double)(t * c), 0);
}

static void bench_ops(int64_t t)
{
    int64_t params = (int64_t)(place_bytes / 4);
    double n = (double)params, rows = (double)t;

    printf("op\tshape\tseconds\tGB/s\tof a copy\tTFLOP/s\tof the peak\n");
    job("copy", "all", run_copy, (const int64_t[]){(int64_t)place_bytes}, 2.0 * (double)place_bytes, 0);
    bench_products(t, false);
    bench_products(t, true);
    bench_fp8(t, 6400);
    bench_attention(t / 1024, 1024, 25, 25, 64);
    bench_attention(t / 4096 ? t / 4096 : 1, t < 4096 ? t : 4096, 32, 32, 128);
    bench_attention(t / 2048 ? t / 2048 : 1, t < 2048 ? t : 2048, 32, 8, 64);
    bench_rows(t, 1600, 0);
    bench_rows(t, 4096, 1);
    job("SwiGLU", "11008 wide", run_glu, (const int64_t[]){t / 2, 11008}, 3.0 * rows * 11008, 0);
    job("SwiGLU backward", "11008 wide", run_glu_back, (const int64_t[]){t / 2, 11008}, 5.0 * rows * 11008, 0);
    put_ids(t, 50257);
    job("cross-entropy, gradient", "50304 wide", run_xent, (const int64_t[]){t, 50304}, 4.0 * rows * 50304, 0);
    job("embedding", "1600 wide", run_embedding, (const int64_t[]){t, 1600, 50304, 0}, 4.0 * rows * 1600, 0);
    job("embedding backward", "1600 wide", run_embedding, (const int64_t[]){t, 1600, 50304, 1}, 10.0 * rows * 1600, 0);
    job("bias gradient", "6400 wide", run_colsum, (const int64_t[]){t, 6400}, 2.0 * rows * 6400, 0);
    job("sum of squares", "fp32", run_sumsq, (const int64_t[]){params}, 4 * n, 0);
    job("cast", "fp32 to bf16", run_cast, (const int64_t[]){params}, 6 * n, 0);
    job("AdamW", "fp32, bf16 copy", run_adamw, (const int64_t[]){params}, 30 * n, 0);
}

/* ---- steps ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct sized {
    const char *name;
    int64_t b;
    struct model_config c;
};

#define GPT2(l, h, n) {.layers = l, .hidden = h, .heads = n, .seq = 1024, .positions = 1024, .vocab = 50257, .init_std = 0.02}
#define LLAMA(l, h, n, g, f, s)                                                                                          \
    {.layers = l, .hidden = h, .heads = n, .groups = g, .ffn = f, .seq = s, .positions = s, .vocab = 32000, .norm = NORM_RMS, \
     .position = POSITION_ROPE, .untie = true, .swiglu = true, .no_bias = true, .init_std = 0.02}
static const struct sized models[] = {
    {"GPT-2 124M", 32, GPT2(12, 768, 12)},   {"GPT-2 350M", 24, GPT2(24, 1024, 16)},
    {"GPT-2 774M", 16, GPT2(36, 1280, 20)},  {"GPT-2 1.5B", 16, GPT2(48, 1600, 25)},
    {"Llama 1B", 8, LLAMA(16, 2048, 32, 8, 8192, 2048)}, {"Llama 7B", 2, LLAMA(32, 4096, 32, 32, 11008, 4096)},
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

static void bench_step(const struct sized *x, bool fp8, double memory)
{
    struct model_config c = x->c;
    struct model_run run = {.dt = DTYPE_BF16, .use = MODEL_TRAIN, .b = x->b, .t = c.seq,
                            .fp8 = {.format = fp8 ? MODEL_FP8_HYBRID : MODEL_FP8_NONE, .history = 16}};
    size_t bytes = fit(&c, &run, 0.92 * memory);
    struct steps s;
    double loss, start = 0, seconds, rate, flops;

    if (steps_open(&s, dev, c, &run, true, &err) < 0) {
        printf("%s%s\tdoes not run: %s\n", x->name, fp8 ? ", FP8" : "", err.msg);
        steps_close(&s);
        return;
    }
    for (int i = 0; i < STEPS_WARM + STEPS; i++) {
        if (i == STEPS_WARM) {
            must(device_sync(dev, &err));
            start = now();
        }
        must(steps_one(&s, &loss, NULL, &err));
    }
    must(device_sync(dev, &err));
    seconds = (now() - start) / STEPS;
    rate = (double)(x->b * c.seq) / seconds;
    flops = rate * model_config_flops(&s.model->whole, c.seq);
    printf("%s%s\t%lld x %lld\t%lld\t%.0fM\t%.0f\t%.0f\t%.0f %%\t%zu\n", x->name, fp8 ? ", FP8" : "",
           (long long)x->b, (long long)c.seq, (long long)c.layers,
           1e-6 * (double)model_config_params(&s.model->whole), rate, 1e-12 * flops, 100 * flops / peak, bytes >> 20);
    steps_close(&s);
}

int main(int argc, char **argv)
{
    int64_t t = argc > 1 ? atoll(argv[1]) : 16384;
    const struct cuda_backend *b;
    struct cuda_info info;

    setvbuf(stdout, NULL, _IOLBF, 0);
    must(device_open(&dev, "cuda", 0, &err));
    must(cuda_backend_open(&b, &err));
    must(b->info(0, &info, &err));
    must(device_peak_flops(dev, DTYPE_BF16, &peak, &err));
    printf("# %s, %.0f TFLOP/s of bf16 in a large product\n", dev->name, 1e-12 * peak);
    place_bytes = (size_t)t * 50304 * 2;
    fill_places();
    bench_ops(t);
    for (int i = 0; i < PLACES; i++)
        device_free(dev, place[i]);
    if (info.memory == 0) /* kernels that run on the CPU */
        return 0;
    printf("model\tmicro-batch\tlayers\tparameters\ttokens/s\tTFLOP/s\tof the peak\tMiB\n");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int fp8 = 0; fp8 <= dev->fast_fp8; fp8++)
            bench_step(&models[i], fp8, (double)info.memory);
    device_close(dev);
    return 0;
}
