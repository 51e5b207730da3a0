/* The ops of training on the GPU against what its memory and its matrix units do, and whole steps of models in bf16 and FP8.
 * make gpu-bench; two tables with tabs:
 *     model  micro-batch  layers  parameters  tokens/s  TFLOP/s  share  MiB
 *     op  shape  seconds  GB/s  share of a copy's  TFLOP/s  share of the largest product's (of FP8 where it is FP8)
 * Seconds are of the best of seven runs after two, by events; steps the mean of ten after three, by the clock.
 *     gpu_train_bench [SECONDS [TOKENS]]     what has not begun after SECONDS is left out; what matters most comes first
 * What does not run leaves the others alone (tests/jobs.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda.h"
#include "tests/jobs.h"
#include "tests/steps.h"

enum { WARM = 2, RUNS = 7, STEPS_WARM = 3, STEPS = 10, LIMIT = 100 };

static struct device *dev;
static struct err err;
static struct cuda_info info;
static int64_t tokens = 16384;
static double copy_rate, peak, peak_fp8;
static int failed; /* rows of the job under way */

static void must(int rc)
{
    if (rc < 0) {
        printf("gpu_train_bench: %s\n", err.msg);
        fflush(stdout);
        exit(1);
    }
}

/* ---- ops ---- */

enum { PLACES = 8 };
static void *place[PLACES]; /* numbers that are not zero, each of place_bytes */
static size_t place_bytes;

/* Pairs of bf16 in +-[0.5, 1), sane as fp32 too. */
static void fill_numbers(void *to, size_t bytes)
{
    enum { N = 1 << 20 };
    size_t at = N * sizeof(uint32_t);
    uint32_t *host = malloc(at), x = 1;

    for (int i = 0; host && i < N; i++) {
        x = x * 1664525u + 1013904223u;
        host[i] = (x & 0x807f807fu) | 0x3f003f00u;
    }
    must(device_put(dev, to, host, bytes < at ? bytes : at, &err));
    for (size_t n; at < bytes; at += n) { /* twice as many each time */
        n = bytes - at < at ? bytes - at : at;
        must(device_copy(dev, (char *)to + at, to, n, &err));
    }
    must(device_sync(dev, &err));
    free(host);
}

static void take_places(void)
{
    for (int p = 0; p < PLACES && !place[p]; p++) {
        must(device_alloc(dev, &place[p], place_bytes, &err));
        fill_numbers(place[p], place_bytes);
    }
}

static void give_places(void)
{
    for (int p = 0; p < PLACES; p++) {
        device_free(dev, place[p]);
        place[p] = NULL;
    }
}

typedef int job_fn(const int64_t *n);

/* Seconds of the best run; < 0: it does not run. */
static double best_of(job_fn *run, const int64_t *n)
{
    struct device_event *from, *to;
    double best = 1e30, s;
    int rc = 0;

    must(device_event_new(dev, &from, &err));
    must(device_event_new(dev, &to, &err));
    for (int r = 0; r < WARM + RUNS && rc == 0; r++) {
        must(device_event_record(dev, from, &err));
        rc = run(n);
        if (rc == 0)
            rc = device_event_record(dev, to, &err);
        if (rc == 0)
            rc = device_event_seconds(dev, from, to, &s, &err);
        if (rc == 0 && r >= WARM && s < best)
            best = s;
    }
    device_event_free(dev, from);
    device_event_free(dev, to);
    return rc < 0 ? -1 : best;
}

static void row(const char *op, const char *shape, job_fn *run, const int64_t *n, double bytes, double flops, double of)
{
    static bool begun;
    double best = best_of(run, n);

    if (!begun)
        printf("op\tshape\tseconds\tGB/s\tof a copy\tTFLOP/s\tof the peak\n");
    begun = true;
    if (best < 0) {
        printf("%s\t%s\tdoes not run: %s\n", op, shape, err.msg);
        failed++;
        return;
    }
    printf("%s\t%s\t%.6f\t%.0f\t%.0f %%\t%.0f\t%.0f %%\n", op, shape, best, 1e-9 * bytes / best,
           100 * bytes / best / copy_rate, 1e-12 * flops / best, 100 * flops / best / of);
}

static void job(const char *op, const char *shape, job_fn *run, const int64_t *n, double bytes, double flops)
{
    row(op, shape, run, n, bytes, flops, peak);
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
    row(name, shape, run_matmul, (const int64_t[]){m, n, k, kind, fp8},
        (fp8 ? 1.0 : 2.0) * (double)(m * k + n * k) + (kind == 4 ? 8.0 : 2.0) * (double)(m * n),
        2.0 * (double)m * (double)n * (double)k, fp8 ? peak_fp8 : peak);
}

/* FLOP/s of a large product. */
static double measure_peak(bool fp8)
{
    int64_t side = tokens < 8192 ? tokens : 8192;
    double s = best_of(run_matmul, (const int64_t[]){side, side, side, 0, fp8});

    return s < 0 ? 1 : 2.0 * (double)side * (double)side * (double)side / s;
}

/* The products of a layer of GPT-2 1.5B and of Llama 7B. */
static void bench_products(int64_t fp8)
{
    int64_t t = tokens;

    for (int64_t kind = 0; kind < 5; kind++)
        if (kind < 4)
            bench_matmul(t, 6400, 1600, kind, fp8);
        else
            bench_matmul(6400, 1600, t, kind, fp8);
    if (!fp8)
        bench_matmul(t, 50304, 1600, 0, fp8);
    bench_matmul(t, 22016, 4096, 0, fp8);
    bench_matmul(4096, 11008, t, 4, fp8);
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
    struct adamw a = {1, 1e-4, 0.9, 0.95, 1e-8, 0.1, NULL, {0}};

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

static void bench_fp8_casts(int64_t arg)
{
    (void)arg;
    bench_fp8(tokens, 6400);
}

static void bench_attentions(int64_t arg)
{
    int64_t t = tokens;

    (void)arg;
    bench_attention(t / 1024 ? t / 1024 : 1, t < 1024 ? t : 1024, 25, 25, 64);
    bench_attention(t / 4096 ? t / 4096 : 1, t < 4096 ? t : 4096, 32, 32, 128);
    bench_attention(t / 2048 ? t / 2048 : 1, t < 2048 ? t : 2048, 32, 8, 64);
}

static void bench_by_memory(int64_t arg)
{
    int64_t t = tokens, params = (int64_t)(place_bytes / 4);
    double n = (double)params, rows = (double)t;

    (void)arg;
    job("copy", "all", run_copy, (const int64_t[]){(int64_t)place_bytes}, 2.0 * (double)place_bytes, 0);
    bench_rows(t, 1600, 0);
    bench_rows(t, 4096, 1);
    job("SwiGLU", "11008 wide", run_glu, (const int64_t[]){t / 2, 11008}, 3.0 * rows * 11008, 0);
    job("SwiGLU backward", "11008 wide", run_glu_back, (const int64_t[]){t / 2, 11008}, 5.0 * rows * 11008, 0);
    put_ids(t, 50257);
    job("cross-entropy, gradient", "50304 wide", run_xent, (const int64_t[]){t, 50304}, 4.0 * rows * 50304, 0);
    job("embedding", "1600 wide", run_embedding, (const int64_t[]){t, 1600, 50304, 0}, 4.0 * rows * 1600, 0);
    job("embedding backward", "1600 wide", run_embedding, (const int64_t[]){t, 1600, 50304, 1}, 10.0 * rows * 1600, 0);
    put_ids(t, 20); /* the runs of a frequent token */
    job("embedding backward", "1600 wide, 20 tokens", run_embedding, (const int64_t[]){t, 1600, 50304, 1}, 2.0 * rows * 1600, 0);
    job("bias gradient", "6400 wide", run_colsum, (const int64_t[]){t, 6400}, 2.0 * rows * 6400, 0);
    job("sum of squares", "fp32", run_sumsq, (const int64_t[]){params}, 4 * n, 0);
    job("cast", "fp32 to bf16", run_cast, (const int64_t[]){params}, 6 * n, 0);
    job("AdamW", "fp32, bf16 copy", run_adamw, (const int64_t[]){params}, 30 * n, 0);
}

/* ---- a mixture of experts: half of the tokens, so that Mixtral's widest rows fit into a place ---- */

/* Logits in place[7] become probabilities; what goes where in place[6], one after the other. */
struct routed {
    struct route r;
    float *lse, *weight;
    int32_t *choice, *place, *from, *count;
};

static struct routed routed_of(const int64_t *n)
{
    int64_t t = n[0], k = n[2];
    char *p = place[6];
    struct routed x = {.r = {.t = t, .experts = n[1], .k = k}};

    x.lse = (float *)p;
    x.weight = (float *)(p + t * 4);
    x.choice = (int32_t *)(p + t * 4 * (1 + k));
    x.place = x.choice + t * k;
    x.from = x.place + t * k;
    x.count = x.from + t * k;
    return x;
}

/* n: tokens, experts, of a token, channels */
static int run_choose(const int64_t *n)
{
    struct routed x = routed_of(n);

    return dev->ops->route_fwd(dev, &x.r, place[7], x.lse, x.choice, x.weight, &err);
}
static int run_place(const int64_t *n)
{
    struct routed x = routed_of(n);

    return dev->ops->route_place(dev, &x.r, x.choice, NULL, x.place, x.from, x.count, &err);
}
static int run_take(const int64_t *n)
{
    struct routed x = routed_of(n);

    return dev->ops->route_take(dev, DTYPE_BF16, place[1], place[0], x.from, n[0] * n[2], n[3], &err);
}
static int run_join(const int64_t *n)
{
    struct routed x = routed_of(n);

    return dev->ops->route_join(dev, DTYPE_BF16, &x.r, place[2], place[1], x.place, x.weight, n[3], &err);
}
static int run_join_back(const int64_t *n)
{
    struct routed x = routed_of(n);

    return dev->ops->route_join_bwd(dev, DTYPE_BF16, &x.r, place[3], place[5], place[0], place[1], x.place, x.weight, n[3], &err);
}

/* n: experts, rows of each, out, in, weight gradient: a product each, as the trainer calls them. */
static int run_experts(const int64_t *n)
{
    int64_t weight = n[2] * n[3], fit = (int64_t)place_bytes / (n[4] ? 4 : 2) / weight; /* so many weights are unlike */

    for (int64_t i = 0; i < n[0]; i++) {
        uint16_t *x = (uint16_t *)place[0] + i * n[1] * n[3], *y = (uint16_t *)place[2] + i * n[1] * n[2];
        struct matmul p = {.m = n[1], .n = n[2], .k = n[3], .trans_b = true, .dt = DTYPE_BF16, .dt_c = DTYPE_BF16, .a = x,
                           .b = (uint16_t *)place[1] + i % fit * weight, .c = y, .ragged = n[0] > 1};

        if (n[4])
            p = (struct matmul){.m = n[2], .n = n[3], .k = n[1], .trans_a = true, .dt = DTYPE_BF16, .dt_c = DTYPE_F32, .a = y,
                                .b = x, .c = (float *)place[4] + i % fit * weight, .beta = 1, .ragged = n[0] > 1};
        TRY(dev->ops->matmul(dev, &p, &err));
    }
    return 0;
}

static void bench_grouped(const char *what, int64_t experts, int64_t rows, int64_t out, int64_t in)
{
    double flops = 2.0 * (double)(experts * rows) * (double)(out * in);
    char shape[100];

    for (int64_t back = 0; back < 2; back++) {
        snprintf(shape, sizeof shape, "%lld x %lld rows, %lld x %lld", (long long)experts, (long long)rows, (long long)out,
                 (long long)in);
        row(back ? "experts, weight gradients" : "experts", shape, run_experts, (const int64_t[]){experts, rows, out, in, back},
            2.0 * (double)(experts * rows * (out + in)) + (back ? 8.0 : 2.0) * (double)(experts * out * in), flops, peak);
    }
    snprintf(shape, sizeof shape, "%s: all rows as one product", what);
    row("experts", shape, run_experts, (const int64_t[]){1, experts * rows, out, in, 0},
        2.0 * (double)(experts * rows * (out + in)) + 2.0 * (double)(out * in), flops, peak);
}

static void bench_experts(int64_t arg)
{
    int64_t t = tokens / 2;
    const int64_t n[] = {t, 8, 2, 4096};
    double rows = 2.0 * (double)t * 4096;

    (void)arg;
    fill_numbers(place[7], place_bytes); /* those before may have left ids there */
    fill_numbers(place[0], place_bytes);
    job("route: choose", "2 of 8", run_choose, n, (double)t * (8 * 8 + 4 + 2 * 8), 0);
    job("route: places", "2 of 8", run_place, n, (double)t * 2 * 3 * 4, 0);
    job("route: take rows", "2 of 8, 4096 wide", run_take, n, 2 * 2 * rows, 0);
    job("route: join rows", "2 of 8, 4096 wide", run_join, n, 3 * rows, 0);
    job("route: join, backward", "2 of 8, 4096 wide", run_join_back, n, 5 * rows, 0);
    bench_grouped("Mixtral, fc1", 8, t / 4, 28672, 4096);
    bench_grouped("Mixtral, fc2", 8, t / 4, 4096, 14336);
    bench_grouped("64 small, fc1", 64, t * 6 / 64, 2816, 2048);
    bench_grouped("64 small, fc2", 64, t * 6 / 64, 2048, 1408);
}

/* ---- steps ---- */

struct sized {
    int64_t b;
    struct model_config c;
};

#define GPT2(l, h, n) {.layers = l, .hidden = h, .heads = n, .seq = 1024, .positions = 1024, .vocab = 50257, .init_std = 0.02}
#define LLAMA(l, h, n, g, f, s)                                                                                          \
    {.layers = l, .hidden = h, .heads = n, .groups = g, .ffn = f, .seq = s, .positions = s, .vocab = 32000, .norm = NORM_RMS, \
     .position = POSITION_ROPE, .untie = true, .swiglu = true, .no_bias = true, .init_std = 0.02}
#define MOE                                                                                                                \
    {.layers = 32, .hidden = 4096, .heads = 32, .groups = 8, .ffn = 14336, .seq = 4096, .positions = 4096, .vocab = 32000, \
     .norm = NORM_RMS, .position = POSITION_ROPE, .untie = true, .swiglu = true, .no_bias = true, .init_std = 0.02,        \
     .experts = 8, .topk = 2, .aux_loss = 0.01}
enum { SMALL, MEDIUM, LARGE, XL, LLAMA_1B, LLAMA_7B, MIXTRAL };
static const struct sized models[] = {
    {32, GPT2(12, 768, 12)},   {24, GPT2(24, 1024, 16)},
    {16, GPT2(36, 1280, 20)},  {16, GPT2(48, 1600, 25)},
    {8, LLAMA(16, 2048, 32, 8, 8192, 2048)}, {2, LLAMA(16, 4096, 32, 32, 11008, 4096)},
    {2, MOE},
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

static void bench_step(const struct sized *x, bool fp8, const char *name)
{
    static bool begun;
    struct model_config c = x->c;
    struct model_run run = {.dt = DTYPE_BF16, .use = MODEL_TRAIN, .b = x->b, .t = c.seq,
                            .fp8 = {.format = fp8 ? MODEL_FP8_HYBRID : MODEL_FP8_NONE, .history = 16}};
    size_t bytes = fit(&c, &run, (c.experts ? 0.85 : 0.92) * (double)info.memory); /* rows of experts are never even */
    struct steps s;
    double loss, norm, start = 0, seconds, rate, flops;
    int rc = steps_open(&s, dev, c, &run, true, &err);

    if (!begun)
        printf("model\tmicro-batch\tlayers\tparameters\ttokens/s\tTFLOP/s\tof the peak\tMiB\n");
    begun = true;
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
    rate = (double)(x->b * c.seq) / seconds;
    flops = rate * model_config_flops(&s.model->whole, c.seq);
    printf("%s\t%lld x %lld\t%lld\t%.0fM\t%.0f\t%.0f\t%.0f %%\t%zu\n", name, (long long)x->b, (long long)c.seq, (long long)c.layers,
           1e-6 * (double)model_config_params(&s.model->whole), rate, 1e-12 * flops, 100 * flops / peak, bytes >> 20);
    steps_close(&s);
}

/* ---- what is measured, in order: what matters most comes first ---- */

struct measured {
    const char *name;
    void (*ops)(int64_t arg); /* NULL: steps of model arg */
    int64_t arg;
    enum { BF16, FP8, DETERMINISTIC } how;
};
static const struct measured all[] = {
    {"GPT-2 124M", NULL, SMALL, BF16},
    {"GPT-2 1.5B", NULL, XL, BF16},
    {"Llama 1B", NULL, LLAMA_1B, BF16},
    {"GPT-2 1.5B, FP8", NULL, XL, FP8},
    {"products", bench_products, 0, BF16},
    {"attention", bench_attentions, 0, BF16},
    {"Llama 7B", NULL, LLAMA_7B, BF16},
    {"Llama 7B, FP8", NULL, LLAMA_7B, FP8},
    {"products in FP8", bench_products, 1, FP8},
    {"ops bound by memory", bench_by_memory, 0, BF16},
    {"experts", bench_experts, 0, BF16},
    {"Mixtral", NULL, MIXTRAL, BF16},
    {"FP8 conversions", bench_fp8_casts, 0, BF16},
    {"GPT-2 124M, FP8", NULL, SMALL, FP8},
    {"Llama 1B, FP8", NULL, LLAMA_1B, FP8},
    {"GPT-2 1.5B, deterministic", NULL, XL, DETERMINISTIC},
    {"GPT-2 774M", NULL, LARGE, BF16},
    {"GPT-2 350M", NULL, MEDIUM, BF16},
    {"GPT-2 774M, FP8", NULL, LARGE, FP8},
    {"GPT-2 350M, FP8", NULL, MEDIUM, FP8},
};

static const char *measured_name(int i) { return all[i].name; }

static int measure(int i)
{
    failed = 0;
    if (all[i].how == FP8 && !dev->fast_fp8)
        return 0;
    if (!all[i].ops) {
        give_places();
        dev->deterministic = all[i].how == DETERMINISTIC;
        if (info.memory) /* else kernels run on the CPU */
            bench_step(&models[all[i].arg], all[i].how == FP8, all[i].name);
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
    const struct jobs jobs = {.n = sizeof all / sizeof *all, .name = measured_name, .open = open_gpu, .run = measure, .dev = &dev,
                              .limit = LIMIT, .budget = argc > 1 ? atof(argv[1]) : 0};
    struct jobs_result r;
    int rc;

    dup2(STDOUT_FILENO, STDERR_FILENO); /* what the backend notes stands where it belongs */
    tokens = argc > 2 ? atoll(argv[2]) : tokens;
    rc = jobs_run(&jobs, &r);
    return rc < 0 || r.failed > 0;
}
