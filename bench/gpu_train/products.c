/* Matrix products, and the conversions to FP8. */
#include "bench/gpu_train/gpu_train.h"

/* Normal numbers fit into both formats by this. */
#define FP8_SCALE_OF_ALL 64.0f

static void put_fp8_of(int from, int to, enum fp8 format)
{
    float *cell = place[6];
    struct fp8_quantize p = {.rows = tokens, .cols = (int64_t)(place_bytes / 2) / tokens, .to = format, .dt = DTYPE_BF16,
                             .x = place[from], .y = place[to], .scale = cell, .amax = cell + 1};

    must(dev->ops->fp8_quantize(dev, &p, &err));
}

void put_fp8(void)
{
    const float cell[] = {FP8_SCALE_OF_ALL, 0, 0, 0, 1 / FP8_SCALE_OF_ALL};

    must(device_put(dev, place[6], cell, sizeof cell, &err));
    put_fp8_of(7, 0, FP8_E4M3);
    put_fp8_of(3, 1, FP8_E4M3);
    put_fp8_of(7, 5, FP8_E5M2);
}

/* n: m, n, k, kind (0 bias, 1 bias and GELU, 2 input gradient, 3 through GELU, 4 weight gradient, 5 with the bias' too), FP8 */
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
    if (n[3] >= 4)
        p.trans_a = true, p.dt_c = DTYPE_F32, p.beta = 1;
    if (n[3] == 5)
        p.sums = place[6];
    if (n[4]) {
        p.trans_a = false, p.trans_b = true; /* of copies that lie so */
        p.fp8_a = n[3] < 2 ? FP8_E4M3 : FP8_E5M2, p.fp8_b = FP8_E4M3;
        p.a = n[3] < 2 ? place[0] : place[5];
        p.inv_a = p.inv_b = (float *)place[6] + FP8_ALIGN / sizeof(float);
        p.fast = n[3] < 2;
    }
    return dev->ops->matmul(dev, &p, &err);
}

static void bench_matmul(int64_t m, int64_t n, int64_t k, int64_t kind, bool fp8)
{
    static const char *const kinds[] = {"matmul, bias", "matmul, bias, GELU", "matmul, input gradient", "matmul, through GELU",
                                        "matmul, weight gradient", "matmul, weight and bias gradient"};
    char shape[80], name[80];

    snprintf(shape, sizeof shape, "%lld x %lld x %lld", (long long)m, (long long)n, (long long)k);
    snprintf(name, sizeof name, "%s%s", fp8 ? "FP8 " : "", kinds[kind]);
    if (kind < 5 && !(fp8 && kind == 3)) /* which the library does not have in FP8, and training does otherwise */
        stands_for(fp8 ? PLAN_PRODUCT_FP8 : PLAN_PRODUCT, (struct plan_dims){.m = m, .n = n, .k = k, .d = kind == 4 ? 8 : 0});
    row(name, shape, run_matmul, (const int64_t[]){m, n, k, kind, fp8},
        (fp8 ? 1.0 : 2.0) * (double)(m * k + n * k) + (kind >= 4 ? 8.0 : 2.0) * (double)(m * n),
        2.0 * (double)m * (double)n * (double)k, fp8 ? peak_fp8 : peak);
}

double measure_peak(bool fp8)
{
    int64_t side = tokens < 8192 ? tokens : 8192;
    double s;

    if (fp8)
        put_fp8();
    s = best_of(run_matmul, (const int64_t[]){side, side, side, 0, fp8});
    return s < 0 ? 1 : 2.0 * (double)side * (double)side * (double)side / s;
}

/* The products of a layer of GPT-2 1.5B and of Llama 7B. */
void bench_products(int64_t fp8)
{
    int64_t t = tokens;

    if (fp8)
        put_fp8();
    for (int64_t kind = 0; kind < 6 - fp8; kind++)
        if (kind < 4)
            bench_matmul(t, 6400, 1600, kind, fp8);
        else
            bench_matmul(6400, 1600, t, kind, fp8);
    if (!fp8)
        bench_matmul(t, 50304, 1600, 0, fp8);
    bench_matmul(t, 22016, 4096, 0, fp8);
    bench_matmul(4096, 11008, t, 4, fp8);
}

/* n: rows, columns, which: 1 as it is, 2 transposed, 3 both, 0 the largest alone; whether columns are added up */
static int run_fp8(const int64_t *n)
{
    float *cell = place[6];
    struct fp8_quantize p = {.rows = n[0], .cols = n[1], .to = FP8_E4M3, .dt = DTYPE_BF16, .x = place[0],
                             .y = n[2] & 1 ? place[1] : NULL, .yt = n[2] & 2 ? place[2] : NULL, .scale = cell, .amax = cell + 1,
                             .colsum = n[3] ? place[3] : NULL};

    if (n[2])
        return dev->ops->fp8_quantize(dev, &p, &err);
    return dev->ops->fp8_amax(dev, DTYPE_BF16, cell + 2, place[0], n[0] * n[1], &err);
}

static void bench_fp8(int64_t rows, int64_t cols)
{
    static const char *const names[] = {"largest value", "to FP8", "to FP8, transposed", "to FP8, both",
                                        "to FP8, both, column sums"};
    char shape[80];

    snprintf(shape, sizeof shape, "%lld x %lld", (long long)rows, (long long)cols);
    for (int64_t k = 0; k < 5; k++) {
        if (k == 0)
            stands_for(PLAN_AMAX, (struct plan_dims){.m = rows, .n = cols});
        if (k >= 1 && k <= 3)
            stands_for(PLAN_FP8, (struct plan_dims){.m = rows, .n = cols, .k = k < 3});
        job(names[k], shape, run_fp8, (const int64_t[]){rows, cols, k < 4 ? k : 3, k == 4},
            (double)(rows * cols) * (double)(2 + (k < 4 ? (k + 1) / 2 : 2)), 0);
    }
}

/* n: rows, columns of the output; enum act; whether gated; backward */
static int run_activated(const int64_t *n)
{
    float *cell = place[6];
    struct fp8_quantize p = {.rows = n[0], .cols = n[1], .to = n[4] ? FP8_E5M2 : FP8_E4M3, .dt = DTYPE_BF16, .x = place[0],
                             .y = place[1], .yt = place[2], .scale = cell, .amax = cell + 1, .act = (enum act)n[2],
                             .glu = n[3] != 0, .dy = n[4] ? place[3] : NULL};

    return dev->ops->fp8_quantize(dev, &p, &err);
}

static void bench_activated(const char *name, int64_t cols, enum act act, bool glu, bool back, double bytes)
{
    char shape[80];

    snprintf(shape, sizeof shape, "%lld x %lld", (long long)tokens, (long long)cols);
    stands_for(glu ? back ? PLAN_SWIGLU_BACK_FP8 : PLAN_SWIGLU_FP8 : back ? PLAN_GELU_BACK_FP8 : PLAN_GELU_FP8,
               (struct plan_dims){.m = tokens, .n = cols});
    job(name, shape, run_activated, (const int64_t[]){tokens, cols, act, glu, back}, bytes * (double)(tokens * cols), 0);
}

void bench_fp8_casts(int64_t none)
{
    const float cell[] = {FP8_SCALE_OF_ALL, 0};

    (void)none;
    must(device_put(dev, place[6], cell, sizeof cell, &err));
    bench_fp8(tokens, 6400);
    bench_activated("GELU to FP8, both", 6400, ACT_GELU_TANH, false, false, 4);
    bench_activated("GELU backward to FP8, both", 6400, ACT_GELU_TANH, false, true, 6);
    bench_activated("SwiGLU to FP8, both", 5504, ACT_SILU, true, false, 6);
    bench_activated("SwiGLU backward to FP8, both", 11008, ACT_SILU, true, true, 5);
}
