/* Ops that memory bounds, beside a plain copy. */
#include "bench/gpu_train/gpu_train.h"

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
    struct update a = {
        .step = 1, .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .kind = UPDATE_ADAMW,
    };

    return dev->ops->update(dev, &a, place[0], place[1], place[2], place[3], place[4], n[0], &err);
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
    put_integers(host, n);
    free(host);
}

static int run_xent(const int64_t *n)
{
    struct xent p = {.t = n[0], .v = n[1], .ld = n[1], .logits = place[0], .target = place[7], .scale = place[2]};

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
    stands_for(rms ? PLAN_RMS : PLAN_NORM, (struct plan_dims){.m = t, .n = c});
    job(rms ? "RMS norm, residual" : "layer norm, residual", shape, run_norm, n, 8.0 * (double)(t * c), 0);
    stands_for(rms ? PLAN_RMS_BACK : PLAN_NORM_BACK, (struct plan_dims){.m = t, .n = c});
    job(rms ? "RMS norm backward" : "layer norm backward", shape, run_norm_back, n, 8.0 * (double)(t * c), 0);
}

void bench_by_memory(int64_t arg)
{
    int64_t t = tokens, params = (int64_t)(place_bytes / 4);
    double n = (double)params, rows = (double)t;

    (void)arg;
    stands_for(PLAN_COPY, (struct plan_dims){.m = 1, .n = (int64_t)place_bytes});
    job("copy", "all", run_copy, (const int64_t[]){(int64_t)place_bytes}, 2.0 * (double)place_bytes, 0);
    bench_rows(t, 1600, 0);
    bench_rows(t, 4096, 1);
    stands_for(PLAN_SWIGLU, (struct plan_dims){.m = t / 2, .n = 11008});
    job("SwiGLU", "11008 wide", run_glu, (const int64_t[]){t / 2, 11008}, 3.0 * rows * 11008, 0);
    stands_for(PLAN_SWIGLU_BACK, (struct plan_dims){.m = t / 2, .n = 11008});
    job("SwiGLU backward", "11008 wide", run_glu_back, (const int64_t[]){t / 2, 11008}, 5.0 * rows * 11008, 0);
    put_ids(t, 50257);
    stands_for(PLAN_XENT, (struct plan_dims){.m = t, .n = 50304});
    job("cross-entropy, gradient", "50304 wide", run_xent, (const int64_t[]){t, 50304}, 4.0 * rows * 50304, 0);
    stands_for(PLAN_EMBEDDING, (struct plan_dims){.m = t, .n = 1600});
    job("embedding", "1600 wide", run_embedding, (const int64_t[]){t, 1600, 50304, 0}, 4.0 * rows * 1600, 0);
    stands_for(PLAN_EMBEDDING_BACK, (struct plan_dims){.m = t, .n = 1600});
    job("embedding backward", "1600 wide", run_embedding, (const int64_t[]){t, 1600, 50304, 1}, 10.0 * rows * 1600, 0);
    put_ids(t, 20); /* the runs of a frequent token */
    job("embedding backward", "1600 wide, 20 tokens", run_embedding, (const int64_t[]){t, 1600, 50304, 1}, 2.0 * rows * 1600, 0);
    stands_for(PLAN_BIAS_SUMS, (struct plan_dims){.m = t, .n = 6400});
    job("bias gradient", "6400 wide", run_colsum, (const int64_t[]){t, 6400}, 2.0 * rows * 6400, 0);
    stands_for(PLAN_SUMSQ, (struct plan_dims){.m = 1, .n = params});
    job("sum of squares", "fp32", run_sumsq, (const int64_t[]){params}, 4 * n, 0);
    job("cast", "fp32 to bf16", run_cast, (const int64_t[]){params}, 6 * n, 0);
    must(device_zero(dev, place[2], place_bytes, &err)); /* squares */
    stands_for(PLAN_ADAMW, (struct plan_dims){.m = 1, .n = params});
    job("AdamW", "fp32, bf16 copy", run_adamw, (const int64_t[]){params}, 30 * n, 0);
}
