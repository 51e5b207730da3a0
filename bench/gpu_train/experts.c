/* A mixture of experts: half of the tokens, so that Mixtral's widest rows fit into a place. */
#include "bench/gpu_train/gpu_train.h"

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

/* The same in one launch, as the trainer calls small experts'; counts of rows in place[6]. */
static int run_together(const int64_t *n)
{
    int64_t fit = (int64_t)place_bytes / (n[4] ? 4 : 2) / (n[2] * n[3]);
    struct matmul_grouped q = {
        .of = {.m = n[0] * n[1], .n = n[2], .k = n[3], .trans_b = true, .dt = DTYPE_BF16, .dt_c = DTYPE_BF16, .a = place[0],
               .b = place[1], .c = place[2]},
        .groups = n[0], .count = place[6], .step = fit < n[0] ? 0 : n[2] * n[3],
    };

    if (n[4])
        q.of = (struct matmul){.m = n[2], .n = n[3], .k = n[0] * n[1], .trans_a = true, .dt = DTYPE_BF16, .dt_c = DTYPE_F32,
                               .a = place[2], .b = place[0], .c = place[4], .beta = 1};
    return dev->ops->matmul_grouped(dev, &q, &err);
}

/* Rows of each of n experts, for run_together. */
static void put_counts(int64_t n, int64_t rows)
{
    int32_t count[64];

    for (int64_t i = 0; i < n && i < 64; i++)
        count[i] = (int32_t)rows;
    must(device_put(dev, place[6], count, (size_t)n * sizeof *count, &err));
}

static void bench_grouped(const char *what, int64_t experts, int64_t rows, int64_t out, int64_t in)
{
    double flops = 2.0 * (double)(experts * rows) * (double)(out * in);
    char shape[100];

    put_counts(experts, rows);
    for (int64_t back = 0; back < 2; back++) {
        snprintf(shape, sizeof shape, "%lld x %lld rows, %lld x %lld", (long long)experts, (long long)rows, (long long)out,
                 (long long)in);
        row(back ? "experts, weight gradients" : "experts", shape, run_experts, (const int64_t[]){experts, rows, out, in, back},
            2.0 * (double)(experts * rows * (out + in)) + (back ? 8.0 : 2.0) * (double)(experts * out * in), flops, peak);
        row(back ? "experts in one launch, weight gradients" : "experts in one launch", shape, run_together,
            (const int64_t[]){experts, rows, out, in, back},
            2.0 * (double)(experts * rows * (out + in)) + (back ? 8.0 : 2.0) * (double)(experts * out * in), flops, peak);
    }
    snprintf(shape, sizeof shape, "%s: all rows as one product", what);
    row("experts", shape, run_experts, (const int64_t[]){1, experts * rows, out, in, 0},
        2.0 * (double)(experts * rows * (out + in)) + 2.0 * (double)(out * in), flops, peak);
}

void bench_experts(int64_t arg)
{
    int64_t t = tokens / 2;
    const int64_t n[] = {t, 8, 2, 4096};
    double rows = 2.0 * (double)t * 4096;

    (void)arg;
    job("route: choose", "2 of 8", run_choose, n, (double)t * (8 * 8 + 4 + 2 * 8), 0);
    job("route: places", "2 of 8", run_place, n, (double)t * 2 * 3 * 4, 0);
    stands_for(PLAN_TAKE, (struct plan_dims){.m = t, .n = 4096, .k = 2});
    job("route: take rows", "2 of 8, 4096 wide", run_take, n, 2 * 2 * rows, 0);
    stands_for(PLAN_JOIN, (struct plan_dims){.m = t, .n = 4096, .k = 2});
    job("route: join rows", "2 of 8, 4096 wide", run_join, n, 3 * rows, 0);
    stands_for(PLAN_JOIN_BACK, (struct plan_dims){.m = t, .n = 4096, .k = 2});
    job("route: join, backward", "2 of 8, 4096 wide", run_join_back, n, 5 * rows, 0);
    bench_grouped("Mixtral, fc1", 8, t / 4, 28672, 4096);
    bench_grouped("Mixtral, fc2", 8, t / 4, 4096, 14336);
    bench_grouped("64 small, fc1", 64, t * 6 / 64, 2816, 2048);
    bench_grouped("64 small, fc2", 64, t * 6 / 64, 2048, 1408);
}
