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

/* The largest power of two that keeps the block of element (r, c) within the format: of 128 columns of its row, of 128 rows of
 * its column, or of a square of both. */
static double block_scale(enum fp8 f, int r, int c, bool of_row, bool of_column)
{
    int r0 = of_column ? r / FP8_BLOCK * FP8_BLOCK : r, r1 = of_column ? r0 + FP8_BLOCK : r + 1;
    int c0 = of_row ? c / FP8_BLOCK * FP8_BLOCK : c, c1 = of_row ? c0 + FP8_BLOCK : c + 1;
    double most = 0;

    for (int i = r0; i < r1 && i < BR; i++)
        for (int j = c0; j < c1 && j < BC; j++) {
            double x = fabs((double)bf16_to(bx[i * BC + j]));
            most = x > most || isnan(x) ? x : most;
        }
    return most > 0 && isfinite(most) ? ldexp(1, (int)floor(log2((double)fp8_max(f) / most))) : 1;
}

/* Whether 1 / scale of all blocks are those, and what lies behind the end of a line is 0. */
static void check_inverses(const float *inv, enum fp8 f, bool squares, bool turned)
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
                assert_true((double)inv[i * ld + j] == 1 / block_scale(f, r, c, squares || !turned, squares || turned));
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
    for (int k = 0; k < 4; k++) {
        enum fp8 f = k % 2 ? FP8_E5M2 : FP8_E4M3;
        struct fp8_blocks p = {.rows = BR, .cols = BC, .to = f, .squares = k / 2, .x = bx, .y = y, .yt = yt, .inv = inv,
                               .inv_t = inv_t, .yt_ld = BLD};

        memset(yt, 0xa5, sizeof yt);
        y[BR * BC] = 0xa5;
        assert_int_equal(dev->ops->fp8_blocks(dev, &p, &e), 0);
        assert_true(y[BR * BC] == 0xa5 && yt[BC * BLD] == 0xa5);
        for (int i = 0; i < BR * BC; i++) {
            double x = (double)bf16_to(bx[i]);
            assert_int_equal(y[i], nearest(f, x * block_scale(f, i / BC, i % BC, true, p.squares)));
            assert_int_equal(yt[i % BC * BLD + i / BC], nearest(f, x * block_scale(f, i / BC, i % BC, p.squares, true)));
        }
        for (int i = 0; i < BC * (BLD - BR); i++)
            assert_int_equal(yt[i / (BLD - BR) * BLD + BR + i % (BLD - BR)], 0);
        check_inverses(inv, f, p.squares, false);
        check_inverses(inv_t, f, p.squares, true);
        p.yt_ld = BR + FP8_BLOCK;
        assert_int_equal(dev->ops->fp8_blocks(dev, &p, &e), ERR_ARG);
        p.yt_ld = BR, p.inv = NULL;
        assert_int_equal(dev->ops->fp8_blocks(dev, &p, &e), ERR_ARG);
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
    for (int squares = 0; squares < 2; squares++) {
        struct matmul p = {.m = M, .n = N, .k = K, .trans_b = true, .dt = DTYPE_BF16, .dt_c = DTYPE_F32, .a = y[0],
                           .b = y[1], .c = c, .fp8_a = FP8_E4M3, .fp8_b = FP8_E4M3, .inv_a = inv[0], .inv_b = inv[1],
                           .by_a = FP8_OF_ROWS, .by_b = squares ? FP8_OF_SQUARES : FP8_OF_ROWS};
        int64_t ld = fp8_scales_ld(p.by_b, N, K);

        for (int w = 0; w < 2; w++) {
            struct fp8_blocks q = {.rows = w ? N : M, .cols = K, .to = FP8_E4M3, .squares = w && squares, .x = x[w], .y = y[w],
                                   .inv = inv[w]};
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
        cmocka_unit_test(products_by_blocks_are_those_of_their_numbers),
    };

    return cmocka_run_group_tests_name("kernels_fp8", tests, NULL, NULL);
}
