/* kernels/eight_bit.h -- numbers in eight bits: block-wise dynamic quantization (Dettmers et al. 2022, arXiv:2110.02861).
 *
 * A block of 256 numbers has a scale, the largest of their magnitudes; of each number over that there is the code of the nearest
 * level.  The levels are those of create_dynamic_map of bitsandbytes (functional.py), which torchao has too; blocks and
 * rounding are torchao's (OptimState8bit).  Level q > 0 with b = floor(log2 q) and n = 2^b is
 *     10^(b - top) (0.1 + 0.9 (q - n + 0.5) / n)
 * so each decade below 1 has twice as many as the one under it, seven in all, and the last level is 1.  Signed numbers, with top
 * 6, have levels 0 to 128 and codes 127 + q or 127 - q (of -1 there is none: its code is 0, as that of the level before it);
 * unsigned ones, with top 7, have the levels of q = 2 to 255 below 1, and codes q - 1.
 */
#ifndef KERNELS_EIGHT_BIT_H
#define KERNELS_EIGHT_BIT_H

#include <math.h>

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { EIGHT_BIT_BLOCK = 256, EIGHT_BIT_LEVELS = 257, EIGHT_BIT_ZERO = 127 }; /* levels: with one behind the last, as a bound */

/* Blocks of n numbers. */
TWIN_INLINE int64_t eight_bit_blocks(int64_t n)
{
    return (n + EIGHT_BIT_BLOCK - 1) / EIGHT_BIT_BLOCK;
}
/* The last level of signed or unsigned numbers. */
TWIN_INLINE int eight_bit_last(bool is_signed)
{
    return is_signed ? 128 : 255;
}
/* A level, 0 to the last; behind that one that no number comes near. */
TWIN_INLINE float eight_bit_level(bool is_signed, int level)
{
    int q = is_signed ? level : level + 1, b = 0;
    double decade = 1;

    if (level == 0)
        return 0;
    if (level >= eight_bit_last(is_signed))
        return level > eight_bit_last(is_signed) ? 4 : 1;
    while (q >> (b + 1))
        b++;
    for (int i = is_signed ? 6 : 7; i > b; i--)
        decade /= 10;
    return (float)(decade * (0.1 + 0.9 * ((double)(q - (1 << b)) + 0.5) / (double)(1 << b)));
}

/* The level nearest to x, 0 to 1, from one of which it is known that it is not above x, and the next but one is. */
TWIN_INLINE int eight_bit_round(const float *level, int q, float x)
{
    q += x >= level[q + 1];
    return q + (x - level[q] >= (level[q + 1] - level[q]) * 0.5f);
}
/* The same by search. */
TWIN_INLINE int eight_bit_nearest(const float *level, int last, float x)
{
    int q = 0;

    for (int step = 128; step; step /= 2)
        q += q + step <= last && x >= level[q + step] ? step : 0;
    return eight_bit_round(level, q, x);
}

TWIN_INLINE float eight_bit_number(const float *level, bool is_signed, int code)
{
    if (!is_signed)
        return level[code];
    return code < EIGHT_BIT_ZERO ? -level[EIGHT_BIT_ZERO - code] : level[code - EIGHT_BIT_ZERO];
}
TWIN_INLINE uint8_t eight_bit_code(bool is_signed, int q, bool negative)
{
    int down = negative, below = q < EIGHT_BIT_ZERO ? q : EIGHT_BIT_ZERO;

    return (uint8_t)(is_signed ? EIGHT_BIT_ZERO + (1 - down) * q - down * below : q);
}
/* The scale of a block from the largest magnitude. */
TWIN_INLINE float eight_bit_scale(float most)
{
    return most > 1e-12f ? most : 1e-12f;
}

/* On the host: levels, numbers of codes, and of each upper half of a number's bits, from EIGHT_BIT_FROM on, the last level that
 * is not above all numbers that have it. */
enum { EIGHT_BIT_FROM = (127 - 23) << 7, EIGHT_BIT_PATTERNS = 23 * 128 + 1 };
struct eight_bit_table {
    float level[EIGHT_BIT_LEVELS], number[256];
    uint8_t first[EIGHT_BIT_PATTERNS];
};
const struct eight_bit_table *eight_bit_levels(bool is_signed);

/* A block of n <= 256 numbers from its codes and scale, and back; keep_scale: *scale is given, unless it is
 * 0, as before the first update. */
void eight_bit_decode(const struct eight_bit_table *m, const uint8_t *code, float scale, int64_t n, float *x);
void eight_bit_encode(const struct eight_bit_table *m, bool is_signed, const float *x, int64_t n, bool keep_scale, uint8_t *code,
                      float *scale);

#ifdef __cplusplus
}
#endif
#endif
