/* FP8 by blocks: conversions, and products of the shapes of a Llama of 7B. */
#include "bench/gpu_train/gpu_train.h"

/* A matrix (n[0], n[1]) of normal numbers, both ways; n[2]: squares, n[3]: fp32 scales. */
static int run_convert(const int64_t *n)
{
    struct fp8_blocks p = {.rows = n[0], .cols = n[1], .to = FP8_E4M3, .squares = n[2], .fp32_scales = n[3], .x = place[7],
                           .y = place[0], .yt = place[1], .inv = place[4], .inv_t = place[5], .yt_ld = n[0]};

    return dev->ops->fp8_blocks(dev, &p, &err);
}

/* A matrix of normal numbers to bytes and 1 / scale. */
static void convert(int from, int64_t rows, int64_t k, bool squares, bool fp32, int to, int inv)
{
    const struct fp8_blocks p = {.rows = rows, .cols = k, .to = FP8_E4M3, .squares = squares, .fp32_scales = fp32,
                                 .x = place[from], .y = place[to], .inv = place[inv]};

    must(dev->ops->fp8_blocks(dev, &p, &err));
}

/* (m, n, k) of n[0 .. 2]; n[3]: the gradient of a weight, whose sum is over rows, in fp32; n[4]: fp32 scales. */
static int run_product(const int64_t *n)
{
    struct matmul p = {.m = n[0], .n = n[1], .k = n[2], .trans_b = true, .dt = DTYPE_BF16, .dt_c = n[3] ? DTYPE_F32 : DTYPE_BF16,
                       .a = place[0], .b = place[1], .c = place[2], .beta = (float)n[3], .fp8_a = FP8_E4M3, .fp8_b = FP8_E4M3,
                       .inv_a = place[4], .inv_b = place[5], .by_a = FP8_OF_ROWS, .by_b = n[3] ? FP8_OF_ROWS : FP8_OF_SQUARES,
                       .fp32_scales = n[4]};

    return dev->ops->matmul(dev, &p, &err);
}

static void bench_product(int64_t m, int64_t n, int64_t k, bool gradient, bool fp32)
{
    char shape[80];

    snprintf(shape, sizeof shape, "%lld x %lld x %lld", (long long)m, (long long)n, (long long)k);
    convert(7, m, k, false, fp32, 0, 4);
    convert(3, n, k, !gradient, fp32, 1, 5);
    stands_for(gradient ? PLAN_WEIGHT_BLOCKS : PLAN_PRODUCT_BLOCKS,
               (struct plan_dims){.m = m, .n = n, .k = k, .d = gradient ? 8 : 0});
    row(gradient ? "FP8 by blocks, weight gradient" : fp32 ? "FP8 by blocks, fp32 scales" : "FP8 by blocks", shape, run_product,
        (const int64_t[]){m, n, k, gradient, fp32}, (double)(m * k + n * k) + (gradient ? 8.0 : 2.0) * (double)(m * n),
        2.0 * (double)m * (double)n * (double)k, peak_fp8);
}

void bench_blocks(int64_t none)
{
    static const char *const names[] = {"to FP8 by blocks, both", "to FP8 by squares, both",
                                        "to FP8 by blocks, fp32 scales, both", "to FP8 by squares, fp32 scales, both"};
    char shape[40];

    (void)none;
    for (int i = 0; i < 4; i++) {
        snprintf(shape, sizeof shape, "%lld x 4096", (long long)tokens);
        if (i % 2 == 0) /* weights' squares are converted once a step */
            stands_for(PLAN_FP8_BLOCKS, (struct plan_dims){.m = tokens, .n = 4096});
        job(names[i], shape, run_convert, (const int64_t[]){tokens, 4096, i % 2, i / 2}, 4.0 * (double)tokens * 4096, 0);
    }
    bench_product(tokens, 22016, 4096, false, false);
    bench_product(tokens, 22016, 4096, false, true);
    bench_product(tokens, 4096, 11008, false, false);
    bench_product(4096, 11008, tokens, true, false);
}
