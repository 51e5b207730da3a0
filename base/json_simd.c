/* Copying strings up to the next byte that needs more than copying. */
#include "base/isa.h"

#include <stddef.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* One vector: copies WIDTH bytes, and says by bits which stop the copy.  With quotes:
 * what JSON must escape; without: the backslash alone. */
#if defined(__AVX512BW__)
#define WIDTH 64
static inline uint64_t step(char *dst, const char *src, int quotes)
{
    __m512i v = _mm512_loadu_si512(src);
    uint64_t m = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\\'));

    _mm512_storeu_si512(dst, v);
    if (quotes)
        m |= _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('"')) |
             _mm512_cmplt_epu8_mask(v, _mm512_set1_epi8(0x20));
    return m;
}
#elif defined(__AVX2__)
#define WIDTH 32
static inline uint64_t step(char *dst, const char *src, int quotes)
{
    __m256i v = _mm256_loadu_si256((const void *)src);
    __m256i m = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\'));

    _mm256_storeu_si256((void *)dst, v);
    if (quotes) {
        __m256i low = _mm256_set1_epi8(0x1f);
        m = _mm256_or_si256(m, _mm256_cmpeq_epi8(v, _mm256_set1_epi8('"')));
        m = _mm256_or_si256(m, _mm256_cmpeq_epi8(_mm256_max_epu8(v, low), low));
    }
    return (uint32_t)_mm256_movemask_epi8(m);
}
#elif defined(__SSE2__)
#define WIDTH 16
static inline uint64_t step(char *dst, const char *src, int quotes)
{
    __m128i v = _mm_loadu_si128((const void *)src);
    __m128i m = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));

    _mm_storeu_si128((void *)dst, v);
    if (quotes) {
        __m128i low = _mm_set1_epi8(0x1f);
        m = _mm_or_si128(m, _mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
        m = _mm_or_si128(m, _mm_cmpeq_epi8(_mm_max_epu8(v, low), low));
    }
    return (uint32_t)_mm_movemask_epi8(m);
}
#endif

static inline size_t copy(char *dst, const char *src, size_t n, int quotes)
{
    size_t i = 0;

#ifdef WIDTH
    for (; n - i >= WIDTH; i += WIDTH) {
        uint64_t m = step(dst + i, src + i, quotes);
        if (m)
            return i + (size_t)__builtin_ctzll(m);
    }
#endif
    for (; i < n; i++) {
        unsigned char c = (unsigned char)src[i];
        if (c == '\\' || (quotes && (c == '"' || c < 0x20)))
            break;
        dst[i] = src[i];
    }
    return i;
}

/* Copies src[0..n) to dst up to the first backslash; returns how many bytes that is.
 * What stands in dst behind them, up to n, is scratch. */
size_t ISA_FN(json_copy_to_backslash)(char *dst, const char *src, size_t n);
size_t ISA_FN(json_copy_to_backslash)(char *dst, const char *src, size_t n)
{
    return copy(dst, src, n, 0);
}

/* The same up to the first quote, backslash or byte below 0x20. */
size_t ISA_FN(json_copy_to_special)(char *dst, const char *src, size_t n);
size_t ISA_FN(json_copy_to_special)(char *dst, const char *src, size_t n)
{
    return copy(dst, src, n, 1);
}
