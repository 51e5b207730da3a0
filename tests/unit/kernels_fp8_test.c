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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_converted),
        cmocka_unit_test(a_matrix_is_converted),
        cmocka_unit_test(scales_follow_their_history),
        cmocka_unit_test(products_are_those_of_their_numbers),
    };

    return cmocka_run_group_tests_name("kernels_fp8", tests, NULL, NULL);
}
