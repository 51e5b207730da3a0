/* Where the scan of curate/clean/repair.c must look closer. */
#include "base/isa.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* True if a character that begins at p[0] may be mojibake, or begin an entity or an escape.
 * What begins with C2..CB, or CE 84, D0 82, D2 90, E2 ..97, EF A3, EF AC, EF BF has a role in
 * mojibake, but only behind a character beyond ASCII; some have one anyway. */
static inline int look(unsigned prev, unsigned c, unsigned next)
{
    if (c < 0x80)
        return c == '&' || c == 0x1B;
    if ((c == 0xC2 && next < 0xA0) || ((c == 0xC3 && (next & 0xFE) == 0x82)) ||
        (c == 0xC5 && (next & 0xFE) == 0x92))
        return 1;
    return prev >= 0x80 &&
           ((c >= 0xC2 && c <= 0xCB) || (c == 0xCE && (next & 0xFE) == 0x84) || (c == 0xD0 && next == 0x82) ||
            (c == 0xD2 && (next & 0xFE) == 0x90) || (c == 0xE2 && next <= 0x97) ||
            (c == 0xEF && (next == 0xA3 || next == 0xAC || next == 0xBF)));
}

#if defined(__AVX2__)
#define WIDTH 32
typedef unsigned char vec __attribute__((vector_size(32), aligned(1)));
#define BITS(v) ((uint32_t)_mm256_movemask_epi8((__m256i)(v)))
#elif defined(__SSE2__)
#define WIDTH 16
typedef unsigned char vec __attribute__((vector_size(16), aligned(1)));
#define BITS(v) ((uint32_t)_mm_movemask_epi8((__m128i)(v)))
#endif

#ifdef WIDTH
static inline uint32_t look_all(const unsigned char *p)
{
    vec c, prev, next, even, m, any;

    memcpy(&c, p, WIDTH);
    m = (vec)(c == '&') | (vec)(c == 0x1B);
    if (!BITS(c)) /* ASCII */
        return BITS(m);
    memcpy(&prev, p - 1, WIDTH);
    memcpy(&next, p + 1, WIDTH);
    even = next & 0xFE;
    any = (vec)(c - 0xC2 <= 0xCB - 0xC2) | ((vec)(c == 0xCE) & (vec)(even == 0x84)) |
          ((vec)(c == 0xD0) & (vec)(next == 0x82)) | ((vec)(c == 0xD2) & (vec)(even == 0x90)) |
          ((vec)(c == 0xE2) & (vec)(next <= 0x97)) |
          ((vec)(c == 0xEF) & ((vec)(next == 0xA3) | (vec)(next == 0xAC) | (vec)(next == 0xBF)));
    m |= any & (vec)(prev >= 0x80);
    m |= ((vec)(c == 0xC2) & (vec)(next < 0xA0)) | ((vec)(c == 0xC3) & (vec)(even == 0x82)) |
         ((vec)(c == 0xC5) & (vec)(even == 0x92));
    return BITS(m);
}
#endif

/* The first block of p[from..n) with such places: where it begins, which bytes in it by bits,
 * and where to go on; n if there is none. */
size_t ISA_FN(repair_scan)(const unsigned char *p, size_t from, size_t n, uint32_t *bits, size_t *next);
size_t ISA_FN(repair_scan)(const unsigned char *p, size_t from, size_t n, uint32_t *bits, size_t *next)
{
    size_t i = from;

    *bits = 1;
    if (i == 0 && n) { /* nothing is before it */
        *next = ++i;
        if (look(0, p[0], n > 1 ? p[1] : 0))
            return 0;
    }
#ifdef WIDTH
    for (; i + WIDTH < n; i += WIDTH) {
        uint32_t m = look_all(p + i);
        if (m) {
            *bits = m;
            *next = i + WIDTH;
            return i;
        }
    }
    *bits = 1;
#endif
    for (; i < n; i++)
        if (look(p[i - 1], p[i], i + 1 < n ? p[i + 1] : 0)) {
            *next = i + 1;
            return i;
        }
    return n;
}
