/* base/block.h -- 64 bytes, and comparisons that give 64 bits, for the *_simd.c files.
 *
 * Bit i stands for byte i.
 */
#ifndef BASE_BLOCK_H
#define BASE_BLOCK_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__) || defined(__AVX512BW__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

typedef uint64_t bits;

#if defined(__AVX512BW__)
struct block {
    __m512i v;
};
static inline struct block block_load(const uint8_t *p)
{
    return (struct block){_mm512_loadu_si512(p)};
}
static inline bits block_eq(struct block b, char c)
{
    return _mm512_cmpeq_epi8_mask(b.v, _mm512_set1_epi8(c));
}
/* lo <= byte < lo + n */
static inline bits block_in(struct block b, char lo, char n)
{
    return _mm512_cmplt_epu8_mask(_mm512_sub_epi8(b.v, _mm512_set1_epi8(lo)), _mm512_set1_epi8(n));
}
static inline bits block_high(struct block b)
{
    return _mm512_movepi8_mask(b.v);
}
static inline struct block block_or(struct block b, char c)
{
    return (struct block){_mm512_or_si512(b.v, _mm512_set1_epi8(c))};
}
/* The bytes that have one of these bits. */
static inline bits block_any(struct block b, int c)
{
    return _mm512_test_epi8_mask(b.v, _mm512_set1_epi8((char)c));
}
#elif defined(__AVX2__)
struct block {
    __m256i v[2];
};
static inline bits join2(__m256i lo, __m256i hi)
{
    return (uint32_t)_mm256_movemask_epi8(lo) | (bits)(uint32_t)_mm256_movemask_epi8(hi) << 32;
}
static inline struct block block_load(const uint8_t *p)
{
    return (struct block){{_mm256_loadu_si256((const __m256i *)(const void *)p),
                           _mm256_loadu_si256((const __m256i *)(const void *)(p + 32))}};
}
static inline bits block_eq(struct block b, char c)
{
    __m256i x = _mm256_set1_epi8(c);
    return join2(_mm256_cmpeq_epi8(b.v[0], x), _mm256_cmpeq_epi8(b.v[1], x));
}
static inline bits block_in(struct block b, char lo, char n)
{
    __m256i x = _mm256_set1_epi8(lo), m = _mm256_set1_epi8((char)(n - 1));
    __m256i d0 = _mm256_sub_epi8(b.v[0], x), d1 = _mm256_sub_epi8(b.v[1], x);
    return join2(_mm256_cmpeq_epi8(_mm256_min_epu8(d0, m), d0), _mm256_cmpeq_epi8(_mm256_min_epu8(d1, m), d1));
}
static inline bits block_high(struct block b)
{
    return join2(b.v[0], b.v[1]);
}
static inline struct block block_or(struct block b, char c)
{
    __m256i x = _mm256_set1_epi8(c);
    return (struct block){{_mm256_or_si256(b.v[0], x), _mm256_or_si256(b.v[1], x)}};
}
static inline bits block_any(struct block b, int c)
{
    __m256i x = _mm256_set1_epi8((char)c), zero = _mm256_setzero_si256();
    return ~join2(_mm256_cmpeq_epi8(_mm256_and_si256(b.v[0], x), zero),
                  _mm256_cmpeq_epi8(_mm256_and_si256(b.v[1], x), zero));
}
#elif defined(__SSE2__)
struct block {
    __m128i v[4];
};
static inline struct block block_load(const uint8_t *p)
{
    struct block b;
    for (int i = 0; i < 4; i++)
        b.v[i] = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
    return b;
}
static inline bits block_eq(struct block b, char c)
{
    __m128i x = _mm_set1_epi8(c);
    bits m = 0;
    for (int i = 0; i < 4; i++)
        m |= (bits)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(b.v[i], x)) << 16 * i;
    return m;
}
static inline bits block_in(struct block b, char lo, char n)
{
    __m128i x = _mm_set1_epi8(lo), most = _mm_set1_epi8((char)(n - 1));
    bits m = 0;
    for (int i = 0; i < 4; i++) {
        __m128i d = _mm_sub_epi8(b.v[i], x);
        m |= (bits)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(d, most), d)) << 16 * i;
    }
    return m;
}
static inline bits block_high(struct block b)
{
    bits m = 0;
    for (int i = 0; i < 4; i++)
        m |= (bits)(unsigned)_mm_movemask_epi8(b.v[i]) << 16 * i;
    return m;
}
static inline struct block block_or(struct block b, char c)
{
    for (int i = 0; i < 4; i++)
        b.v[i] = _mm_or_si128(b.v[i], _mm_set1_epi8(c));
    return b;
}
static inline bits block_any(struct block b, int c)
{
    __m128i x = _mm_set1_epi8((char)c), zero = _mm_setzero_si128();
    bits m = 0;
    for (int i = 0; i < 4; i++)
        m |= (bits)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_and_si128(b.v[i], x), zero)) << 16 * i;
    return ~m;
}
#else
struct block {
    uint8_t v[64];
};
static inline struct block block_load(const uint8_t *p)
{
    struct block b;
    memcpy(b.v, p, 64);
    return b;
}
static inline bits block_in(struct block b, char lo, char n)
{
    bits m = 0;
    for (int i = 0; i < 64; i++)
        m |= (bits)((uint8_t)(b.v[i] - (uint8_t)lo) < (uint8_t)n) << i;
    return m;
}
static inline bits block_eq(struct block b, char c)
{
    return block_in(b, c, 1);
}
static inline bits block_high(struct block b)
{
    return block_in(b, (char)0x80, (char)0x80);
}
static inline struct block block_or(struct block b, char c)
{
    for (int i = 0; i < 64; i++)
        b.v[i] |= (uint8_t)c;
    return b;
}
static inline bits block_any(struct block b, int c)
{
    bits m = 0;
    for (int i = 0; i < 64; i++)
        m |= (bits)((b.v[i] & c) != 0) << i;
    return m;
}
#endif

/* Copies n bytes, as whole BLOCK_COPY; returns where they end. */
enum { BLOCK_COPY = 16 };
static inline char *block_copy(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i += BLOCK_COPY)
        memcpy(to + i, from + i, BLOCK_COPY);
    return to + n;
}

/* Appends base + i for each set bit i of b; writes up to 63 beyond the end. */
static inline uint32_t *put_positions(uint32_t *out, bits b, uint32_t base)
{
    int n = __builtin_popcountll(b);
#if defined(__AVX512BW__)
    const __m512i iota = _mm512_set_epi8(
        63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37,
        36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10,
        9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512i at = _mm512_maskz_compress_epi8(b, iota), from = _mm512_set1_epi32((int)base);
    _mm512_storeu_si512(out, _mm512_add_epi32(from, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(at))));
    if (n > 16)
        _mm512_storeu_si512(out + 16,
                            _mm512_add_epi32(from, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(at, 1))));
    if (n > 32) {
        _mm512_storeu_si512(out + 32,
                            _mm512_add_epi32(from, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(at, 2))));
        _mm512_storeu_si512(out + 48,
                            _mm512_add_epi32(from, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(at, 3))));
    }
#else
    uint32_t *o = out;
    for (; b; b &= b - 1)
        *o++ = base + (uint32_t)__builtin_ctzll(b);
#endif
    return out + n;
}
#endif
