/* kernels/fp8_convert.h -- one number to and from FP8, and one new scale, for both twins; for kernels/ and tests alone. */
#ifndef KERNELS_FP8_CONVERT_H
#define KERNELS_FP8_CONVERT_H

#include "kernels/fp8.h"

TWIN_INLINE uint32_t fp8_bits(float x)
{
    uint32_t u;

    memcpy(&u, &x, 4);
    return u;
}
TWIN_INLINE float fp8_float(uint32_t u)
{
    float x;

    memcpy(&x, &u, 4);
    return x;
}

/* Without branches, so that loops become vectors.  A normal number loses the bits below its mantissa, rounded to even; a
 * subnormal one is rounded by adding a power of two whose last place is the smallest subnormal. */
TWIN_INLINE uint8_t fp8_of(enum fp8 f, float x)
{
    const int mantissa = f == FP8_E4M3 ? 3 : 2, bias = f == FP8_E4M3 ? 7 : 15, cut = 23 - mantissa;
    const uint32_t most = f == FP8_E4M3 ? 0x43e00000u : 0x47600000u, normal = (uint32_t)(128 - bias) << 23;
    const uint32_t power = (uint32_t)(127 + 23 + 1 - bias - mantissa) << 23;
    uint32_t u = fp8_bits(x), a = u & 0x7fffffffu, b = a < most ? a : most;
    uint32_t rounded = ((b + ((1u << (cut - 1)) - 1) + (b >> cut & 1)) >> cut) - ((uint32_t)(127 - bias) << mantissa);
    uint32_t tiny = fp8_bits(fp8_float(b) + fp8_float(power)) - power;
    uint32_t r = (b < normal ? tiny : rounded) | (u >> 24 & 0x80);

    return (uint8_t)(a > 0x7f800000u ? 0x7f : r);
}

/* Exact, in bf16 too. */
TWIN_INLINE float fp8_to(enum fp8 f, uint8_t v)
{
    const int mantissa = f == FP8_E4M3 ? 3 : 2, bias = f == FP8_E4M3 ? 7 : 15;
    uint32_t a = v & 0x7fu, sign = (uint32_t)(v & 0x80) << 24;
    uint32_t tiny = fp8_bits((float)(int32_t)a * fp8_float((uint32_t)(127 + 1 - bias - mantissa) << 23));
    uint32_t r = (a << (23 - mantissa)) + ((uint32_t)(127 - bias) << 23);

    r = a >> mantissa ? r : tiny;
    if (f == FP8_E4M3)
        r = a == 0x7f ? 0x7fc00000u : r;
    else
        r = a == 0x7c ? 0x7f800000u : a > 0x7c ? 0x7fc00000u : r;
    return fp8_float(r | sign);
}

/* The scale for amax, or `else_` where there is none to be had. */
TWIN_INLINE float fp8_scale_of(float max, float amax, int margin, float else_)
{
    uint32_t u = fp8_bits(amax), two = 127u - (uint32_t)margin;
    float s;

    if (u == 0 || u >= 0x7f800000u)
        return else_;
    s = max / amax * fp8_float(two << 23);
    return fp8_bits(s) >= 0x7f800000u ? 3.402823466e38f : s; /* of a subnormal amax */
}

/* The scale of a block, whose largest is one of bf16; 1 where there is none to be had.  These bits of it are kept: of a
 * power of two sign and exponent.  One that would be infinite is bf16's largest number, as in Transformer Engine; no other is
 * above that. */
TWIN_INLINE uint32_t fp8_block_bits(bool fp32) { return fp32 ? ~0u : 0xff800000u; }
TWIN_INLINE float fp8_block_scale(float max, float amax, uint32_t keep)
{
    const uint32_t most = 0x7f7f0000u;
    uint32_t u = fp8_bits(amax), s = fp8_bits(max / amax);

    s = (s < most ? s : most) & keep;
    return u == 0 || u >= 0x7f800000u ? 1 : fp8_float(s);
}

/* The place of the 1 / scale of element (row, k) of a matrix. */
TWIN_INLINE int64_t fp8_scale_at(enum fp8_scales by, int64_t ld, int64_t row, int64_t k)
{
    return by == FP8_OF_ROWS ? k / FP8_BLOCK * ld + row : row / FP8_BLOCK * ld + k / FP8_BLOCK;
}

/* A row of struct fp8_update. */
TWIN_INLINE void fp8_update_row(const struct fp8_update *p, float *row)
{
    float *history = row + FP8_HISTORY, most = 0;

    if (p->now) {
        row[FP8_SCALE] = fp8_scale_of(row[FP8_MAX], row[FP8_NOW], 0, 1);
        row[FP8_INVERSE] = 1 / row[FP8_SCALE];
        if (fp8_bits(row[FP8_NOW]) > fp8_bits(history[0]))
            history[0] = row[FP8_NOW];
        return;
    }
    if (fp8_bits(history[0]) >= 0x7f800000u)
        history[0] = 0;
    for (int64_t i = 0; i < (p->recent ? 1 : p->len); i++)
        most = history[i] > most ? history[i] : most;
    row[FP8_SCALE] = fp8_scale_of(row[FP8_MAX], most, p->margin, row[FP8_SCALE] > 0 ? row[FP8_SCALE] : 1);
    row[FP8_INVERSE] = 1 / row[FP8_SCALE];
    most = history[0];
    for (int64_t i = 0; i + 1 < p->len; i++)
        history[i] = history[i + 1];
    history[p->len - 1] = most;
    history[0] = 0;
}

#endif
