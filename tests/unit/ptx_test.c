/* The models of PTX's instructions (tests/ptx.h), each against its definition. */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/ptx.h"

/* ---- conversions: the nearest number that the format has, of two that are equally near the even one ---- */

/* A format by its numbers from 0 upwards; what lies above the last becomes the last, or `over` if that is not 0. */
struct format {
    double number[1 << 15];
    uint32_t n, over;
};

/* Of so many bits of exponent and mantissa: (-1)^s 2^(e - bias) 1.m, 2^(1 - bias) 0.m where e is 0. */
static void make(struct format *f, int exponent, int mantissa, uint32_t n, uint32_t over)
{
    int bias = (1 << (exponent - 1)) - 1;

    for (uint32_t i = 0; i < n; i++) {
        int e = (int)(i >> mantissa), m = (int)(i & ((1u << mantissa) - 1));
        f->number[i] = ldexp(e ? m + (1 << mantissa) : m, (e ? e : 1) - bias - mantissa);
    }
    f->n = n;
    f->over = over;
}

static uint32_t nearest(const struct format *f, double a, double beyond)
{
    uint32_t low = 0, high = f->n;

    if (f->over && a >= beyond)
        return f->over;
    while (high - low > 1) {
        uint32_t mid = (low + high) / 2;
        *(f->number[mid] <= a ? &low : &high) = mid;
    }
    if (high == f->n)
        return low;
    if (a - f->number[low] == f->number[high] - a)
        return low + low % 2;
    return a - f->number[low] < f->number[high] - a ? low : high;
}

/* All signs, exponents and upper mantissas, with lower ones at which roundings change. */
static float operand(uint32_t upper, int which)
{
    static const uint32_t low[] = {0, 1, 0x1234, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff};

    return ptx_float(upper << 16 | low[which]);
}

static void to_bf16(void **s)
{
    static struct format bf16;

    (void)s;
    make(&bf16, 8, 7, 0x7f80, 0x7f80);
    for (uint32_t u = 0; u < 1 << 16; u++)
        for (int i = 0; i < 8; i++) {
            float x = operand(u, i), other = operand(u * 40503 & 0xffff, i);
            uint32_t want = isnan(x) ? 0x7fff : nearest(&bf16, fabs((double)x), 0x1.ffp127) | (signbit(x) ? 0x8000 : 0);
            uint32_t got = ptx_cvt_rn_bf16x2_f32(x, other);
            if (got >> 16 != want || ptx_cvt_rn_bf16x2_f32(other, x) != (got >> 16 | got << 16))
                fail_msg("%a becomes %04x, not %04x", (double)x, got >> 16, want);
        }
}

static void to_fp8(void **s)
{
    static struct format e4m3, e5m2;

    (void)s;
    make(&e4m3, 4, 3, 0x7f, 0);
    make(&e5m2, 5, 2, 0x7c, 0);
    assert_true(e4m3.number[0x7e] == 448 && e5m2.number[0x7b] == 57344);
    for (uint32_t u = 0; u < 1 << 16; u++)
        for (int i = 0; i < 8; i++) {
            float x = operand(u, i), other = operand(u * 40503 & 0xffff, i);
            for (int k = 0; k < 2; k++) {
                uint32_t want = nearest(k ? &e5m2 : &e4m3, fabs((double)x), 0) | (signbit(x) ? 0x80 : 0), got, turned;
                want = isnan(x) ? 0x7f : want;
                got = k ? ptx_cvt_rn_satfinite_e5m2x2_f32(x, other) : ptx_cvt_rn_satfinite_e4m3x2_f32(x, other);
                turned = k ? ptx_cvt_rn_satfinite_e5m2x2_f32(other, x) : ptx_cvt_rn_satfinite_e4m3x2_f32(other, x);
                if (got >> 8 != want || turned != (got >> 8 | (got << 8 & 0xff00)))
                    fail_msg("%a becomes %02x, not %02x", (double)x, got >> 8, want);
            }
        }
}

/* ---- approximations: the tables, and the error between them ---- */

static uint32_t ex2(uint32_t u) { return ptx_bits(ptx_ex2_approx_ftz_f32(ptx_float(u))); }
static uint32_t rcp(uint32_t u) { return ptx_bits(ptx_rcp_approx_ftz_f32(ptx_float(u))); }

enum { ONE = 0x3f800000, INF = 0x7f800000 };
#define MINUS 0x80000000u

static void tables_hold(void **s)
{
    static const uint32_t tiny[] = {0, 1, 0x7fffff};

    (void)s;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) {
            const uint32_t sign = k ? MINUS : 0;
            assert_int_equal(ex2(tiny[i] | sign), ONE);
            assert_int_equal(rcp(tiny[i] | sign), INF | sign);
        }
    assert_int_equal(ex2(INF), INF);
    assert_int_equal(ex2(INF | MINUS), 0);
    assert_int_equal(rcp(INF), 0);
    assert_int_equal(rcp(INF | MINUS), MINUS);
    assert_int_equal(ex2(0x7fc12345), PTX_NAN);
    assert_int_equal(rcp(0xff812345), PTX_NAN);
    assert_int_equal(ex2(ptx_bits(-126.5f)), 0); /* what would be subnormal */
    assert_int_equal(rcp(ptx_bits(-0x1p127f)), MINUS);
    assert_int_equal(rcp(ptx_bits(0x1p-126f)), ptx_bits(0x1p126f));
    assert_int_equal(ex2(ptx_bits(128)), INF);
}

static void errors_stay_in_bounds(void **s)
{
    double most_ex2 = 0, most_rcp = 0;

    (void)s;
    for (uint32_t u = 0; u < INF; u += 997)
        for (int k = 0; k < 2; k++) {
            float x = ptx_float(u | (k ? MINUS : 0));
            double power = exp2((double)x), quotient = 1 / (double)x;
            if (power >= 0x1.00001p-126 && power < FLT_MAX)
                most_ex2 = fmax(most_ex2, fabs((double)ptx_ex2_approx_ftz_f32(x) / power - 1));
            if (fabs(quotient) >= 0x1.00001p-126 && fabs(quotient) < FLT_MAX && (u & INF))
                most_rcp = fmax(most_rcp, fabs((double)ptx_rcp_approx_ftz_f32(x) / quotient - 1));
        }
    assert_true(most_ex2 <= 0x1p-22 && most_ex2 > 0x1p-23); /* no better than is promised */
    assert_true(most_rcp <= 0x1p-23 && most_rcp > 0x1p-24);
}

/* ---- max and prmt ---- */

static void largest_is_nan_where_one_is(void **s)
{
    (void)s;
    assert_true(ptx_max_nan_f32(1, -2) == 1 && ptx_max_nan_f32(-3, -2) == -2 && ptx_max_nan_f32(INFINITY, 5) == INFINITY);
    assert_int_equal(ptx_bits(ptx_max_nan_f32(0, -0.0f)), 0);
    assert_int_equal(ptx_bits(ptx_max_nan_f32(-0.0f, 0)), 0);
    assert_int_equal(ptx_bits(ptx_max_nan_f32(ptx_float(0xffc00001), 7)), PTX_NAN);
    assert_int_equal(ptx_bits(ptx_max_nan_f32(7, ptx_float(0x7f800001))), PTX_NAN);
}

static void bytes_are_those_that_prmt_names(void **s)
{
    (void)s;
    assert_int_equal(ptx_prmt_b32(0x33221100, 0x77665544, 0x3210), 0x33221100);
    assert_int_equal(ptx_prmt_b32(0x33221100, 0x77665544, 0x5140), 0x55114400);
    assert_int_equal(ptx_prmt_b32(0x33221100, 0x77665544, 0x7362), 0x77336622);
    assert_int_equal(ptx_prmt_b32(0x7f8000ff, 0x01, 0xa984), 0xff00ff01);
}

/* ---- matrices ---- */

/* Numbers without a pattern. */
static uint32_t word(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}
static uint16_t small(uint32_t *seed)
{
    return (uint16_t)(ptx_bits((float)((int)(word(seed) % 255) - 127)) >> 16); /* exact in bf16 */
}

/* Row and column of element i that a lane holds, as PTX has them in words. */
static void at_a(int lane, int i, int *row, int *col)
{
    *row = i < 2 || (i >= 4 && i < 6) ? lane >> 2 : (lane >> 2) + 8;
    *col = (lane % 4) * 2 + (i & 1) + (i >= 4 ? 8 : 0);
}
static void at_b(int lane, int i, int *row, int *col)
{
    *row = (lane % 4) * 2 + (i & 1) + (i >= 2 ? 8 : 0);
    *col = lane >> 2;
}
static void at_c(int lane, int i, int *row, int *col)
{
    *row = (lane >> 2) + (i < 2 ? 0 : 8);
    *col = (lane % 4) * 2 + (i & 1);
}

static void fragments_are_those_of_mma(void **s)
{
    uint32_t warp[32][6], seed = 1;
    int a[16][16], b[16][8], c[16][8], row, col;

    (void)s;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 12; i++) {
            uint16_t v = small(&seed);
            i < 8 ? at_a(lane, i, &row, &col) : at_b(lane, i - 8, &row, &col);
            *(i < 8 ? &a[row][col] : &b[row][col]) = (int)ptx_float((uint32_t)v << 16);
            warp[lane][i / 2] = i % 2 ? warp[lane][i / 2] | (uint32_t)v << 16 : v;
        }
    for (int r = 0; r < 16; r++)
        for (int k = 0; k < 8; k++) {
            c[r][k] = 100 * r + k;
            for (int j = 0; j < 16; j++)
                c[r][k] += a[r][j] * b[j][k];
        }
    for (int lane = 0; lane < 32; lane++) {
        float d[4];
        for (int i = 0; i < 4; i++) {
            at_c(lane, i, &row, &col);
            d[i] = (float)(100 * row + col);
        }
        ptx_mma_m16n8k16(d, lane, (const uint32_t(*)[6])warp);
        for (int i = 0; i < 4; i++) {
            at_c(lane, i, &row, &col);
            assert_true(d[i] == (float)c[row][col]);
        }
    }
}

/* Each of 17 numbers loses less than the last place of the largest, then their sum less than its own: never further from
 * 0 than what is added up, where all have a sign. */
static void sums_are_cut_off(void **s)
{
    uint32_t seed = 7;
    double worst = 0;

    (void)s;
    for (int n = 0; n < 20000; n++) {
        float x[16], y[16], c = ldexpf((float)(word(&seed) % 1000000), (int)(word(&seed) % 40) - 30), got;
        double exact = c, most = c;
        for (int k = 0; k < 16; k++) {
            x[k] = ptx_float((word(&seed) % 0x800 + 0x3d00) << 16);
            y[k] = ptx_float((word(&seed) % 0x800 + 0x3d00 + (n % 2 ? word(&seed) % 2 << 15 : 0)) << 16);
            exact += (double)x[k] * (double)y[k];
            most = fmax(most, fabs((double)x[k] * (double)y[k]));
        }
        got = ptx_mma_sum(c, x, y);
        if (n % 2 == 0)
            assert_true((double)got <= exact);
        worst = fmax(worst, fabs((double)got - exact) / (ldexp(1, ilogb(most) - 23) * 17 + fabs(exact) * 0x1p-23));
    }
    assert_true(worst <= 1 && worst > 0.1);
    assert_true(isnan(ptx_mma_sum(1, (const float[16]){INFINITY}, (const float[16]){0})));
    assert_true(ptx_mma_sum(-INFINITY, (const float[16]){1}, (const float[16]){1}) == -INFINITY);
    assert_true(ptx_mma_sum(0, (const float[16]){0}, (const float[16]){0}) == 0);
}

static void rows_are_those_of_ldmatrix(void **s)
{
    static uint16_t matrix[4][8][8];
    const uint16_t *row[32];
    uint32_t x[4];

    (void)s;
    for (int i = 0; i < 256; i++)
        matrix[i / 64][i / 8 % 8][i % 8] = (uint16_t)(i * 257);
    for (int i = 0; i < 32; i++)
        row[i] = matrix[i / 8][i % 8];
    for (int lane = 0; lane < 32; lane++)
        for (int trans = 0; trans < 2; trans++) {
            ptx_ldmatrix_x4(x, lane, row, trans);
            for (int q = 0; q < 4; q++)
                for (int i = 0; i < 2; i++) {
                    int r = lane / 4, c = lane % 4 * 2 + i;
                    assert_int_equal(x[q] >> 16 * i & 0xffff, trans ? matrix[q][c][r] : matrix[q][r][c]);
                }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_bf16),
        cmocka_unit_test(to_fp8),
        cmocka_unit_test(tables_hold),
        cmocka_unit_test(errors_stay_in_bounds),
        cmocka_unit_test(largest_is_nan_where_one_is),
        cmocka_unit_test(bytes_are_those_that_prmt_names),
        cmocka_unit_test(fragments_are_those_of_mma),
        cmocka_unit_test(sums_are_cut_off),
        cmocka_unit_test(rows_are_those_of_ldmatrix),
    };
    return cmocka_run_group_tests_name("ptx", tests, NULL, NULL);
}
