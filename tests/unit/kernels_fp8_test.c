/* FP8 against its definition, all of it: conversions, scales, products. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/fp8_convert.h"
#include "kernels/device.h"

/* What a byte means, by the specification: sign, exponent, mantissa; E4M3 has no infinity and one NaN. */
static double meaning(enum fp8 f, int byte)
{
    int mantissa = f == FP8_E4M3 ? 3 : 2, bias = f == FP8_E4M3 ? 7 : 15, exponent = (byte & 0x7f) >> mantissa;
    int fraction = byte & ((1 << mantissa) - 1);
    double x = exponent ? ldexp((1 << mantissa) + fraction, exponent - bias - mantissa) : ldexp(fraction, 1 - bias - mantissa);

    if (f == FP8_E4M3 && (byte & 0x7f) == 0x7f)
        return NAN;
    if (f == FP8_E5M2 && exponent == 31)
        return fraction ? NAN : byte & 0x80 ? -INFINITY : INFINITY;
    return byte & 0x80 ? -x : x;
}

/* The nearest of all numbers, the even one of two; the largest for what is beyond it. */
static int nearest(enum fp8 f, double x)
{
    int most = f == FP8_E4M3 ? 0x7e : 0x7b, best = 0, sign = signbit(x) ? 0x80 : 0;

    if (isnan(x))
        return 0x7f;
    x = fabs(x) > meaning(f, most) ? meaning(f, most) : fabs(x);
    for (int i = 0; i <= most; i++) {
        double here = fabs(meaning(f, i) - x), there = fabs(meaning(f, best) - x);

        if (here < there || (here == there && i % 2 == 0))
            best = i;
    }
    return best | sign;
}

static uint64_t fnv(uint64_t h, uint8_t byte)
{
    return (h ^ byte) * 1099511628211ull;
}

static void every_number_is_converted(void **state)
{
    /* FNV-1a of what CUDA 13's cuda_fp8.hpp makes of all bf16 numbers in order (saturating): tests/record/fp8.sh. */
    static const uint64_t recorded[] = {0, 0xd8b2feb674a31125ull, 0x22c10a2b6f34bb85ull};

    (void)state;
    for (enum fp8 f = FP8_E4M3; f <= FP8_E5M2; f++) {
        uint64_t hash = 14695981039346656037ull;

        for (int i = 0; i < 256; i++) {
            double want = meaning(f, i), got = (double)fp8_to(f, (uint8_t)i);

            if (isnan(want) ? !isnan(got) : want != got)
                fail_msg("byte %d of format %d is %g, not %g", i, f, got, want);
            if (!isnan(want) && (double)bf16_to(bf16_of((float)want)) != want)
                fail_msg("byte %d of format %d is no number of bf16", i, f);
        }
        for (int i = 0; i < 65536; i++) {
            float x = bf16_to((uint16_t)i);
            int got = fp8_of(f, x);

            hash = fnv(hash, (uint8_t)got);
            if (got != nearest(f, (double)x))
                fail_msg("%a is %02x in format %d, not %02x", (double)x, got, f, nearest(f, (double)x));
        }
        assert_true(hash == recorded[f]);
        for (uint32_t i = 0; i < 20000; i++) { /* numbers of all sizes, halves among them */
            float x = fp8_float(i * 214013u + 2531011u), half = (float)meaning(f, (int)(i % 100)) * (1 + (float)(i % 3) / 16);

            assert_int_equal(fp8_of(f, x), nearest(f, (double)x));
            assert_int_equal(fp8_of(f, half), nearest(f, (double)half));
        }
    }
}

static void a_matrix_is_converted(void **state)
{
    enum { R = 70, C = 133 };
    static uint16_t x[R * C];
    static uint8_t y[R * C + 1], yt[(R + FP8_WHOLE) * C + 1];
    struct device *dev;
    struct err e;

    (void)state;
    assert_int_equal(device_open(&dev, "cpu", 2, &e), 0);
    for (int i = 0; i < R * C; i++)
        x[i] = bf16_of((float)((i * 37 % 1001) - 500) * 0.11f);
    for (enum fp8 f = FP8_E4M3; f <= FP8_E5M2; f++) {
        float scale = 7.7f, amax = 1;
        struct fp8_quantize p = {.rows = R, .cols = C, .to = f, .dt = DTYPE_BF16, .x = x, .y = y, .yt = yt, .scale = &scale,
                                 .amax = &amax};

        y[R * C] = yt[R * C] = 0xa5;
        assert_int_equal(dev->ops->fp8_quantize(dev, &p, &e), 0);
        assert_true(y[R * C] == 0xa5 && yt[R * C] == 0xa5);
        for (int i = 0; i < R * C; i++) {
            assert_int_equal(y[i], nearest(f, (double)(bf16_to(x[i]) * scale)));
            assert_int_equal(y[i], yt[i % C * R + i / C]);
        }
        assert_true(amax == bf16_to(bf16_of(55.0f)));
        p.yt_ld = 80;
        memset(yt, 0xa5, sizeof yt);
        assert_int_equal(dev->ops->fp8_quantize(dev, &p, &e), 0);
        for (int i = 0; i < 80 * C; i++)
            assert_int_equal(yt[i], i % 80 < R ? y[i % 80 * C + i / 80] : 0);
        assert_int_equal(yt[80 * C], 0xa5);
        p.yt_ld = R + FP8_WHOLE;
        assert_int_equal(dev->ops->fp8_quantize(dev, &p, &e), ERR_ARG);
        p.yt_ld = 0;
        p.y = p.yt = NULL;
        x[5] = 0x7fc0;
        assert_int_equal(dev->ops->fp8_quantize(dev, &p, &e), 0);
        assert_true(isnan(amax));
        x[5] = 0;
        assert_int_equal(dev->ops->fp8_amax(dev, DTYPE_BF16, &amax, x, R * C, &e), 0);
        assert_true(amax == bf16_to(bf16_of(55.0f)));
        p.rows = -1;
        assert_int_equal(dev->ops->fp8_quantize(dev, &p, &e), ERR_ARG);
    }
    device_close(dev);
}

/* Transformer Engine's rules, worked by hand. */
static void scales_follow_their_history(void **state)
{
    struct device *dev;
    struct err e;
    float row[FP8_HISTORY + 3] = {[FP8_MAX] = 448, [FP8_HISTORY] = 7, 0, 14}, *past = row + FP8_HISTORY;
    struct fp8_update p = {row, 1, FP8_HISTORY + 3, 3, 1, false, false};

    (void)state;
    assert_int_equal(device_open(&dev, "cpu", 1, &e), 0);
    assert_int_equal(dev->ops->fp8_update(dev, &p, &e), 0); /* the largest is 14; half of it is left as margin */
    assert_true(row[FP8_SCALE] == 16 && row[FP8_INVERSE] == 1.0f / 16);
    assert_true(past[0] == 0 && past[1] == 14 && past[2] == 7);
    past[0] = 2;
    p.recent = true;
    assert_int_equal(dev->ops->fp8_update(dev, &p, &e), 0);
    assert_true(row[FP8_SCALE] == 112 && past[0] == 0 && past[1] == 7 && past[2] == 2);
    assert_int_equal(dev->ops->fp8_update(dev, &p, &e), 0); /* nothing new: the scale stays */
    assert_true(row[FP8_SCALE] == 112 && past[1] == 2 && past[2] == 0);
    past[0] = INFINITY;
    assert_int_equal(dev->ops->fp8_update(dev, &p, &e), 0);
    assert_true(row[FP8_SCALE] == 112 && past[2] == 0);
    p.now = true;
    row[FP8_NOW] = 56;
    assert_int_equal(dev->ops->fp8_update(dev, &p, &e), 0); /* without a margin */
    assert_true(row[FP8_SCALE] == 8 && row[FP8_INVERSE] == 0.125f && past[0] == 56);
    row[FP8_NOW] = 0;
    assert_int_equal(dev->ops->fp8_update(dev, &p, &e), 0);
    assert_true(row[FP8_SCALE] == 1);
    row[FP8_NOW] = 1e-42f; /* the quotient is infinite */
    assert_int_equal(dev->ops->fp8_update(dev, &p, &e), 0);
    assert_true(isfinite(row[FP8_SCALE]) && row[FP8_SCALE] > 1e38f);
    p.len = 0;
    assert_int_equal(dev->ops->fp8_update(dev, &p, &e), ERR_ARG);
    device_close(dev);
}

static void products_are_those_of_their_numbers(void **state)
{
    enum { M = 19, N = 21, K = 40 };
    uint8_t a[M * K], b[N * K];
    float c[M * N], before[M * N];
    _Alignas(FP8_ALIGN) float inv[2 * FP8_ALIGN / sizeof(float)] = {0.5f, 7, 7, 7, 0.03125f};
    struct matmul p = {.m = M, .n = N, .k = K, .trans_b = true, .dt = DTYPE_BF16, .dt_c = DTYPE_F32, .a = a, .b = b, .c = c,
                       .beta = 1, .fp8_a = FP8_E5M2, .fp8_b = FP8_E4M3, .inv_a = inv, .inv_b = inv + 4};
    struct device *dev;
    struct err e;

    (void)state;
    assert_int_equal(device_open(&dev, "cpu", 2, &e), 0);
    for (int i = 0; i < M * K; i++)
        a[i] = fp8_of(FP8_E5M2, (float)(i * 7 % 31 - 15));
    for (int i = 0; i < N * K; i++)
        b[i] = fp8_of(FP8_E4M3, (float)(i * 11 % 29 - 14));
    for (int i = 0; i < M * N; i++)
        c[i] = before[i] = (float)i;
    assert_int_equal(dev->ops->matmul(dev, &p, &e), 0);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double s = 0;

            for (int k = 0; k < K; k++)
                s += meaning(FP8_E5M2, a[i * K + k]) * meaning(FP8_E4M3, b[j * K + k]);
            assert_true(fabs((double)c[i * N + j] - (s / 64 + (double)before[i * N + j])) <= 1e-4);
        }
    p.inv_b = NULL;
    assert_int_equal(dev->ops->matmul(dev, &p, &e), ERR_ARG);
    p.inv_b = inv + 5;
    assert_int_equal(dev->ops->matmul(dev, &p, &e), ERR_ARG);
    assert_non_null(strstr(e.msg, "aligned to 16 bytes"));
    p.inv_b = inv + 4;
    p.trans_b = false;
    assert_int_equal(dev->ops->matmul(dev, &p, &e), ERR_ARG);
    device_close(dev);
}

/* ---- by blocks ---- */

enum { BR = 200, BC = 150, BLD = 256 };
static uint16_t bx[BR * BC];

/* What makes the largest of the block of element (r, c) that of the format, or with fp32 false the power of two below: of 128
 * columns of its row, of 128 rows of its column, or of a square of both. */
static float block_scale(enum fp8 f, bool fp32, int r, int c, bool of_row, bool of_column)
{
    int r0 = of_column ? r / FP8_BLOCK * FP8_BLOCK : r, r1 = of_column ? r0 + FP8_BLOCK : r + 1;
    int c0 = of_row ? c / FP8_BLOCK * FP8_BLOCK : c, c1 = of_row ? c0 + FP8_BLOCK : c + 1;
    float most = 0;

    for (int i = r0; i < r1 && i < BR; i++)
        for (int j = c0; j < c1 && j < BC; j++) {
            float x = fabsf(bf16_to(bx[i * BC + j]));
            most = x > most || isnan(x) ? x : most;
        }
    if (!(most > 0) || !isfinite(most))
        return 1;
    return fp32 ? fp8_max(f) / most : ldexpf(1, (int)floor(log2((double)fp8_max(f) / (double)most)));
}

/* Whether 1 / scale of all blocks are those, and what lies behind the end of a line is 0. */
static void check_inverses(const float *inv, enum fp8 f, bool fp32, bool squares, bool turned)
{
    enum fp8_scales by = squares ? FP8_OF_SQUARES : FP8_OF_ROWS;
    int64_t rows = turned ? BC : BR, k = turned ? BLD : BC, ld = fp8_scales_ld(by, rows, k);
    int64_t lines = squares ? fp8_blocks_of(rows) : 0;

    for (int64_t i = 0; i < (squares ? lines : fp8_blocks_of(k)); i++)
        for (int64_t j = 0; j < ld; j++) {
            int64_t line = squares ? i * FP8_BLOCK : j, at = (squares ? j : i) * FP8_BLOCK;
            int r = (int)(turned ? at : line), c = (int)(turned ? line : at);
            if (line >= rows || at >= k)
                assert_true(inv[i * ld + j] == 0);
            else
                assert_true(inv[i * ld + j] == 1 / block_scale(f, fp32, r, c, squares || !turned, squares || turned));
        }
}

static void a_matrix_is_converted_by_blocks(void **state)
{
    static uint8_t y[BR * BC + 1], yt[BC * BLD + 1];
    static float inv[2 * BLD + 1], inv_t[2 * BLD + 1];
    struct device *dev;
    struct err e;

    (void)state;
    assert_int_equal(device_open(&dev, "cpu", 2, &e), 0);
    for (int i = 0; i < BR * BC; i++) /* rows of all sizes, one of zeros */
        bx[i] = bf16_of((float)((i * 37 % 1001) - 500) * ldexpf(0.11f, i / BC % 40 - 20) * (float)(i / BC != 3));
    bx[9 * BC + 140] = 0x7f80; /* infinite */
    bx[10 * BC + 2] = 0x7fc0;
    for (int k = 0; k < 8; k++) {
        enum fp8 f = k % 2 ? FP8_E5M2 : FP8_E4M3;
        bool fp32 = k / 4;
        struct fp8_blocks p = {.rows = BR, .cols = BC, .to = f, .squares = k / 2 % 2, .fp32_scales = fp32, .x = bx, .y = y,
                               .yt = yt, .inv = inv, .inv_t = inv_t, .yt_ld = BLD};

        memset(yt, 0xa5, sizeof yt);
        y[BR * BC] = 0xa5;
        assert_int_equal(dev->ops->fp8_blocks(dev, &p, &e), 0);
        assert_true(y[BR * BC] == 0xa5 && yt[BC * BLD] == 0xa5);
        for (int i = 0; i < BR * BC; i++) {
            float x = bf16_to(bx[i]), of_row = block_scale(f, fp32, i / BC, i % BC, true, p.squares);
            float of_column = block_scale(f, fp32, i / BC, i % BC, p.squares, true);
            assert_int_equal(y[i], nearest(f, (double)(x * of_row)));
            assert_int_equal(yt[i % BC * BLD + i / BC], nearest(f, (double)(x * of_column)));
        }
        for (int i = 0; i < BC * (BLD - BR); i++)
            assert_int_equal(yt[i / (BLD - BR) * BLD + BR + i % (BLD - BR)], 0);
        check_inverses(inv, f, fp32, p.squares, false);
        check_inverses(inv_t, f, fp32, p.squares, true);
        p.yt_ld = BR + FP8_BLOCK;
        assert_int_equal(dev->ops->fp8_blocks(dev, &p, &e), ERR_ARG);
        p.yt_ld = BR, p.inv = NULL;
        assert_int_equal(dev->ops->fp8_blocks(dev, &p, &e), ERR_ARG);
    }
    device_close(dev);
}

/* The matrix of tests/record/fp8_blocks.py: numbers of all sizes, zeros, and what has an infinite scale. */
enum { TR = 200, TC = 330 };
static void recorded_matrix(uint16_t *x)
{
    for (int64_t i = 0; i < TR * TC; i++) {
        int64_t row = i / TC, word = (i * 1103515245 + 12345) % (1ll << 31) >> 8;
        int64_t exponent = row % 16 == 7 ? 0 : row % 16 == 11 ? 6 + row / 16 % 2 : 1 + (row * 37 + i % 3) % 240;

        x[i] = row == 3 ? 0 : (uint16_t)(word % 2 << 15 | exponent << 7 | word / 2 % 128);
    }
}

static uint64_t fnv_of(uint64_t h, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = fnv(h, ((const uint8_t *)p)[i]);
    return h;
}

static void blocks_are_transformer_engines(void **state)
{
    /* By format, squares, fp32_scales: of all bytes and 1 / scale, those of its reference (tests/record/fp8_blocks.py). */
    static const uint64_t recorded[8] = {
        0x95d63f324cca72c4ull, 0x5ad68405cc475dbeull, 0x364f59d356118537ull, 0x94dd60dfc66066c3ull,
        0x17c1b9dcb9d2b30bull, 0x710440f0b5620e22ull, 0x5deff201e8f58db7ull, 0x364ee1a360a001f1ull,
    };
    static uint16_t x[TR * TC];
    static uint8_t y[TR * TC], yt[TR * TC];
    static float inv[3 * TR], inv_t[2 * (TC + 2)];
    struct device *dev;
    struct err e;

    (void)state;
    assert_int_equal(device_open(&dev, "cpu", 2, &e), 0);
    recorded_matrix(x);
    for (int k = 0; k < 8; k++) {
        struct fp8_blocks p = {.rows = TR, .cols = TC, .to = k / 4 ? FP8_E5M2 : FP8_E4M3, .squares = k / 2 % 2,
                               .fp32_scales = k % 2, .x = x, .y = y, .yt = yt, .inv = inv, .inv_t = inv_t, .yt_ld = TR};
        enum fp8_scales by = p.squares ? FP8_OF_SQUARES : FP8_OF_ROWS;
        uint64_t h;

        assert_int_equal(dev->ops->fp8_blocks(dev, &p, &e), 0);
        h = fnv_of(fnv_of(14695981039346656037ull, y, sizeof y), inv, (size_t)fp8_scales_floats(by, TR, TC) * sizeof *inv);
        h = fnv_of(fnv_of(h, yt, sizeof yt), inv_t, (size_t)fp8_scales_floats(by, TC, TR) * sizeof *inv_t);
        if (h != recorded[k])
            fail_msg("format %d, squares %d, fp32 scales %d: 0x%016llx", p.to, p.squares, p.fp32_scales, (unsigned long long)h);
    }
    device_close(dev);
}

/* In double, of the numbers that the bytes stand for. */
static void products_by_blocks_are_those_of_their_numbers(void **state)
{
    enum { M = 37, N = 140, K = 256 };
    static uint16_t x[2][N * K];
    static uint8_t y[2][N * K];
    static float inv[2][2 * (N + 4)], c[M * N];
    struct device *dev;
    struct err e;

    (void)state;
    assert_int_equal(device_open(&dev, "cpu", 2, &e), 0);
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < (w ? N : M) * K; i++)
            x[w][i] = bf16_of((float)((i * (37 + w) % 1001) - 500) * ldexpf(1, i / 100 % 30 - 15));
    for (int way = 0; way < 4; way++) {
        bool squares = way % 2, fp32 = way / 2;
        struct matmul p = {.m = M, .n = N, .k = K, .trans_b = true, .dt = DTYPE_BF16, .dt_c = DTYPE_F32, .a = y[0],
                           .b = y[1], .c = c, .fp8_a = FP8_E4M3, .fp8_b = FP8_E4M3, .inv_a = inv[0], .inv_b = inv[1],
                           .by_a = FP8_OF_ROWS, .by_b = squares ? FP8_OF_SQUARES : FP8_OF_ROWS, .fp32_scales = fp32};
        int64_t ld = fp8_scales_ld(p.by_b, N, K);

        for (int w = 0; w < 2; w++) {
            struct fp8_blocks q = {.rows = w ? N : M, .cols = K, .to = FP8_E4M3, .squares = w && squares, .fp32_scales = fp32,
                                   .x = x[w], .y = y[w], .inv = inv[w]};
            assert_int_equal(dev->ops->fp8_blocks(dev, &q, &e), 0);
        }
        assert_int_equal(dev->ops->matmul(dev, &p, &e), 0);
        for (int i = 0; i < M * N; i++) {
            int r = i / N, col = i % N;
            double sum = 0, size = 0;
            for (int k = 0; k < K; k++) {
                double a = meaning(FP8_E4M3, y[0][r * K + k]) * (double)inv[0][k / FP8_BLOCK * ((M + 3) / 4 * 4) + r];
                double b = meaning(FP8_E4M3, y[1][col * K + k]) * (double)inv[1][fp8_scale_at(p.by_b, ld, col, k)];
                sum += a * b;
                size += fabs(a * b);
            }
            assert_true(fabs((double)c[i] - sum) <= 1e-5 * size);
        }
        p.by_a = p.by_b = FP8_OF_SQUARES;
        assert_int_equal(dev->ops->matmul(dev, &p, &e), ERR_ARG);
        p.by_a = FP8_OF_ROWS, p.k = K - 16;
        assert_int_equal(dev->ops->matmul(dev, &p, &e), ERR_ARG);
    }
    device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_converted),
        cmocka_unit_test(a_matrix_is_converted),
        cmocka_unit_test(scales_follow_their_history),
        cmocka_unit_test(products_are_those_of_their_numbers),
        cmocka_unit_test(a_matrix_is_converted_by_blocks),
        cmocka_unit_test(blocks_are_transformer_engines),
        cmocka_unit_test(products_by_blocks_are_those_of_their_numbers),
    };

    return cmocka_run_group_tests_name("kernels_fp8", tests, NULL, NULL);
}
