/* tests/ptx.h -- instructions of PTX, of which the kernels use some in assembler, as functions of the CPU: what
 * tests/simt.h runs in their place.  Each has its instruction's name and the order of its operands; tests/unit/ptx_test.c holds
 * each to the definition.
 *
 * Where PTX gives a bound of an error and no value, the error here is some number within the bound that differs from one operand
 * to the next and is the same in every run, so that what needs more than is promised is wrong.
 * Source: NVIDIA, PTX ISA, "Data Movement and Conversion Instructions: cvt", "Floating Point Instructions: ex2, rcp,
 * max", "prmt", "Matrix multiply-accumulate operation using mma instruction".
 */
#ifndef TESTS_PTX_H
#define TESTS_PTX_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PTX_NAN 0x7fffffffu /* what instructions make where there is no number */

static inline uint32_t ptx_bits(float x)
{
    uint32_t u;

    memcpy(&u, &x, 4);
    return u;
}
static inline float ptx_float(uint32_t u)
{
    float x;

    memcpy(&x, &u, 4);
    return x;
}
static inline bool ptx_is_nan(float x) { return (ptx_bits(x) & 0x7fffffffu) > 0x7f800000u; }
/* What .ftz takes for zero. */
static inline bool ptx_is_tiny(float x) { return (ptx_bits(x) & 0x7f800000u) == 0; }

/* ---- cvt ---- */

static inline uint32_t ptx_bf16(float x)
{
    uint32_t u = ptx_bits(x);

    return ptx_is_nan(x) ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

/* The first operand becomes the upper half. */
static inline uint32_t ptx_cvt_rn_bf16x2_f32(float a, float b)
{
    return ptx_bf16(a) << 16 | ptx_bf16(b);
}

/* Eight bits, with so many of mantissa; 2^least is the smallest normal number, `most` the largest. */
static inline uint32_t ptx_fp8(float x, int mantissa, int least, double most)
{
    double a = fabs((double)x);
    int e;

    if (ptx_is_nan(x))
        return 0x7f;
    a = a < most ? a : most; /* .satfinite */
    e = a < ldexp(1, least) ? least : ilogb(a);
    return (uint32_t)((e - least) * (1 << mantissa) + (int)rint(ldexp(a, mantissa - e))) | (ptx_bits(x) >> 24 & 0x80);
}
static inline uint16_t ptx_cvt_rn_satfinite_e4m3x2_f32(float a, float b)
{
    return (uint16_t)(ptx_fp8(a, 3, -6, 448) << 8 | ptx_fp8(b, 3, -6, 448));
}
static inline uint16_t ptx_cvt_rn_satfinite_e5m2x2_f32(float a, float b)
{
    return (uint16_t)(ptx_fp8(a, 2, -14, 57344) << 8 | ptx_fp8(b, 2, -14, 57344));
}

/* ---- approximations ---- */

/* From -1 to 1, without a pattern. */
static inline double ptx_error(float x)
{
    uint32_t u = ptx_bits(x) * 0x9E3779B9u;

    u = (u ^ u >> 15) * 0x85EBCA6Bu;
    u ^= u >> 13;
    return (double)u / 2147483647.5 - 1;
}

/* A relative error of 2^-22. */
static inline float ptx_ex2_approx_ftz_f32(float x)
{
    float r;

    if (ptx_is_nan(x))
        return ptx_float(PTX_NAN);
    if (ptx_is_tiny(x))
        return 1;
    r = (float)(exp2((double)x) * (1 + ptx_error(x) * (0x1p-22 - 0x1p-24)));
    return ptx_is_tiny(r) ? 0 : r;
}

/* A relative error of 2^-23: one of the two floats next to the quotient. */
static inline float ptx_rcp_approx_ftz_f32(float x)
{
    double y = 1 / (double)(ptx_is_tiny(x) ? copysignf(0, x) : x);
    float r = (float)y;

    if (ptx_is_nan(x))
        return ptx_float(PTX_NAN);
    if (isfinite(r) && (double)r != y && ptx_error(x) > 0)
        r = nextafterf(r, (double)r < y ? INFINITY : -INFINITY);
    return ptx_is_tiny(r) ? copysignf(0, r) : r;
}

/* ---- max and prmt ---- */

static inline float ptx_max_nan_f32(float a, float b)
{
    return ptx_is_nan(a) || ptx_is_nan(b) ? ptx_float(PTX_NAN) : a > b || (a == b && !signbit(a)) ? a : b;
}

/* Four bytes of the eight of a (the low ones) and b, each named by four bits of which, the lowest first; with the fourth bit only
 * its sign. */
static inline uint32_t ptx_prmt_b32(uint32_t a, uint32_t b, uint32_t which)
{
    uint64_t all = (uint64_t)b << 32 | a;
    uint32_t r = 0;

    for (int i = 0; i < 4; i++) {
        uint32_t byte = (uint32_t)(all >> 8 * (which >> 4 * i & 7)) & 0xff;
        r |= (which >> 4 * i & 8 ? byte & 0x80 ? 0xff : 0 : byte) << 8 * i;
    }
    return r;
}

/* ---- matrices ---- */

/* c and 16 products.  PTX leaves order and rounding open.  Here it is as coarse as the coarsest tensor cores that were measured:
 * products are exact; all numbers are cut off where the largest one's fp32 ends, and so is their sum.
 * Source: M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ CS 7, 2021. */
static inline float ptx_mma_sum(float c, const float x[16], const float y[16])
{
    double term[17], most = fabs((double)c), plain = c, one, scale;
    int64_t sum = 0, size;
    uint64_t bits;

    term[16] = c;
    for (int k = 0; k < 16; k++) {
        term[k] = (double)x[k] * (double)y[k];
        plain += term[k];
        most = fabs(term[k]) > most ? fabs(term[k]) : most;
    }
    if (most == 0 || !isfinite(plain))
        return (float)plain;
    memcpy(&bits, &most, 8);
    bits = (uint64_t)(1023 + 23 - ((int)(bits >> 52) - 1023)) << 52; /* 2^23 / 2^(exponent of the largest) */
    memcpy(&scale, &bits, 8);
    for (int k = 0; k < 17; k++)
        sum += (int64_t)(term[k] * scale);
    for (size = sum < 0 ? -sum : sum, one = 1; size >= 1 << 24; size /= 2)
        one *= 2;
    return (float)((sum < 0 ? -1.0 : 1.0) * (double)size * one / scale);
}

/* mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32, the part of one lane; warp: four words of A and two of B of each. */
static inline void ptx_mma_m16n8k16(float c[4], int lane, const uint32_t warp[32][6])
{
    float x[16], y[16];

    for (int i = 0; i < 4; i++) {
        int row = lane / 4 + i / 2 * 8, col = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++) {
            uint32_t a = warp[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], b = warp[col * 4 + k % 8 / 2][4 + k / 8];
            x[k] = ptx_float(k % 2 ? a & 0xffff0000u : a << 16);
            y[k] = ptx_float(k % 2 ? b & 0xffff0000u : b << 16);
        }
        c[i] = ptx_mma_sum(c[i], x, y);
    }
}

/* ldmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16, the part of one lane; row: what each lane names. */
static inline void ptx_ldmatrix_x4(uint32_t x[4], int lane, const uint16_t *const row[32], bool trans)
{
    int g = lane / 4, i = lane % 4 * 2;

    for (int q = 0; q < 4; q++) {
        const uint16_t *const *r = row + q * 8;
        x[q] = trans ? (uint32_t)r[i][g] | (uint32_t)r[i + 1][g] << 16 : (uint32_t)r[g][i] | (uint32_t)r[g][i + 1] << 16;
    }
}

#endif
