/* Strings, with and without their escapes: what needs no more than copying, and a little more. */
#include "base/isa.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* One vector: copies WIDTH bytes, and says by bits where one is that JSON must escape. */
#if defined(__AVX512BW__)
#define WIDTH 64
static inline uint64_t step(char *dst, const char *src)
{
    __m512i v = _mm512_loadu_si512(src);

    _mm512_storeu_si512(dst, v);
    return _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\\')) | _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('"')) |
           _mm512_cmplt_epu8_mask(v, _mm512_set1_epi8(0x20));
}
#elif defined(__AVX2__)
#define WIDTH 32
static inline uint64_t step(char *dst, const char *src)
{
    __m256i v = _mm256_loadu_si256((const void *)src), low = _mm256_set1_epi8(0x1f);
    __m256i m = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\'));

    _mm256_storeu_si256((void *)dst, v);
    m = _mm256_or_si256(m, _mm256_cmpeq_epi8(v, _mm256_set1_epi8('"')));
    m = _mm256_or_si256(m, _mm256_cmpeq_epi8(_mm256_max_epu8(v, low), low));
    return (uint32_t)_mm256_movemask_epi8(m);
}
#elif defined(__SSE2__)
#define WIDTH 16
static inline uint64_t step(char *dst, const char *src)
{
    __m128i v = _mm_loadu_si128((const void *)src), low = _mm_set1_epi8(0x1f);
    __m128i m = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));

    _mm_storeu_si128((void *)dst, v);
    m = _mm_or_si128(m, _mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
    m = _mm_or_si128(m, _mm_cmpeq_epi8(_mm_max_epu8(v, low), low));
    return (uint32_t)_mm_movemask_epi8(m);
}
#endif

/* Copies src[0..n) to dst up to the first quote, backslash or byte below 0x20; returns how many bytes that is.
 * What stands in dst behind them, up to n, is scratch. */
size_t ISA_FN(json_copy_to_special)(char *dst, const char *src, size_t n);
size_t ISA_FN(json_copy_to_special)(char *dst, const char *src, size_t n)
{
    size_t i = 0;

#ifdef WIDTH
    for (; n - i >= WIDTH; i += WIDTH) {
        uint64_t m = step(dst + i, src + i);
        if (m)
            return i + (size_t)__builtin_ctzll(m);
    }
#endif
    for (; i < n; i++) {
        unsigned char c = (unsigned char)src[i];
        if (c == '\\' || c == '"' || c < 0x20)
            break;
        dst[i] = src[i];
    }
    return i;
}

/* What a letter behind a backslash stands for. */
static const char letters[128] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                  ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};

/* Unescapes src[0..n), which is well formed, to dst, up to the first \u.  Returns how many bytes it wrote; *used:
 * how many it took.  What stands in dst behind them, up to n, is scratch. */
size_t ISA_FN(json_unescape_run)(char *dst, const char *src, size_t n, size_t *used);
/* The place of the first backslash in src[0..n) that no such letter follows, which may be a \\u, or n. */
size_t ISA_FN(json_find_hard)(const char *src, size_t n);
/* Unescapes src[0..n) to dst up to the first quote that is not escaped, \\u, backslash of no escape or byte below 0x20.
 * Returns and takes what json_unescape_run does; *ascii becomes false if a byte above 0x7F may have been among them. */
size_t ISA_FN(json_take_run)(char *dst, const char *src, size_t n, size_t *used, bool *ascii);
#if defined(__AVX512VBMI2__)
static inline uint64_t low_bits(size_t n)
{
    return n < 64 ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0;
}

/* Which backslashes begin an escape: of those in a row every other one. */
static inline uint64_t escapes(uint64_t backslashes)
{
    uint64_t starts = 0;

    if (!(backslashes & backslashes << 1))
        return backslashes;
    while (backslashes) {
        uint64_t first = backslashes & -backslashes;
        starts |= first;
        backslashes &= ~(first | first << 1);
    }
    return starts;
}

/* Of `take` bytes those at which no escape starts, which stand together at the front of v, to dst; room: it has 64 bytes.
 * How many. */
static inline size_t put_kept(char *dst, __m512i v, size_t take, uint64_t starts, bool room)
{
    size_t kept = (size_t)__builtin_popcountll(low_bits(take) & ~starts);

    if (room)
        _mm512_storeu_si512(dst, v);
    else
        _mm512_mask_storeu_epi8(dst, low_bits(kept), v);
    return kept;
}

size_t ISA_FN(json_unescape_run)(char *dst, const char *src, size_t n, size_t *used)
{
    const __m512i low = _mm512_loadu_si512(letters), high = _mm512_loadu_si512(letters + 64);
    size_t i = 0, o = 0;
    uint64_t hard = 0;

    while (i < n && !hard) {
        size_t take = n - i < 64 ? n - i : 64;
        __m512i v = _mm512_maskz_loadu_epi8(low_bits(take), src + i);
        uint64_t starts = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\\'));
        if (starts) {
            starts = escapes(starts);
            take -= starts >> 63; /* its letter is in the next vector */
            hard = _mm512_mask_cmpeq_epi8_mask(starts << 1, v, _mm512_set1_epi8('u'));
            if (hard)
                take = (size_t)__builtin_ctzll(hard) - 1;
            v = _mm512_mask_mov_epi8(v, starts << 1, _mm512_permutex2var_epi8(low, v, high));
            v = _mm512_maskz_compress_epi8(~starts, v);
        }
        i += take;
        o += put_kept(dst + o, v, take, starts, take == 64); /* all of it has been read */
    }
    *used = i;
    return o;
}

size_t ISA_FN(json_find_hard)(const char *src, size_t n)
{
    const __m512i low = _mm512_loadu_si512(letters), high = _mm512_loadu_si512(letters + 64);

    for (size_t i = 0, take; i < n; i += take) {
        __m512i v;
        uint64_t starts, fine;
        take = n - i < 64 ? n - i : 64;
        v = _mm512_maskz_loadu_epi8(low_bits(take), src + i);
        starts = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\\'));
        if (!starts)
            continue;
        starts = escapes(starts);
        if (starts >> 63 && n - i > 64)
            starts ^= (uint64_t)1 << --take; /* its letter is in the next vector */
        fine = ~_mm512_movepi8_mask(v);
        v = _mm512_permutex2var_epi8(low, v, high);
        fine &= _mm512_test_epi8_mask(v, v) & low_bits(take);
        if (starts & ~(fine >> 1))
            return i + (size_t)__builtin_ctzll(starts & ~(fine >> 1));
    }
    return n;
}
size_t ISA_FN(json_take_run)(char *dst, const char *src, size_t n, size_t *used, bool *ascii)
{
    const __m512i low = _mm512_loadu_si512(letters), high = _mm512_loadu_si512(letters + 64);
    __m512i all = _mm512_setzero_si512();
    size_t i = 0, o = 0;
    uint64_t stop = 0;

    while (i < n && !stop) {
        size_t take = n - i < 64 ? n - i : 64;
        uint64_t in = low_bits(take), starts, letter;
        __m512i v = _mm512_maskz_loadu_epi8(in, src + i), l;
        starts = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\\'));
        stop = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('"')) | _mm512_mask_cmplt_epu8_mask(in, v, _mm512_set1_epi8(0x20));
        all = _mm512_or_si512(all, v);
        if (starts) {
            starts = escapes(starts);
            letter = starts << 1;
            l = _mm512_permutex2var_epi8(low, v, high);
            stop &= ~letter;
            stop |= (letter & ~(_mm512_test_epi8_mask(l, l) & ~_mm512_movepi8_mask(v) & in)) >> 1;
            if (starts >> 63 && n - i > 64)
                take--; /* its letter is in the next vector */
            else
                stop |= starts & (uint64_t)1 << (take - 1);
            v = _mm512_maskz_compress_epi8(~starts, _mm512_mask_mov_epi8(v, letter, l));
        }
        if (stop)
            take = (size_t)__builtin_ctzll(stop);
        i += take;
        o += put_kept(dst + o, v, take, starts, n - o >= 64);
    }
    *ascii = *ascii && !_mm512_movepi8_mask(all);
    *used = i;
    return o;
}
#else
/* The bytes before the first backslash in src[0..n), copied. */
static inline size_t copy_plain(char *dst, const char *src, size_t n)
{
    size_t i = 0;

#if defined(__AVX2__)
    for (; n - i >= 32; i += 32) {
        __m256i v = _mm256_loadu_si256((const void *)(src + i));
        if (_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\'))))
            break;
        _mm256_storeu_si256((void *)(dst + i), v);
    }
#elif defined(__SSE2__)
    for (; n - i >= 16; i += 16) {
        __m128i v = _mm_loadu_si128((const void *)(src + i));
        if (_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))))
            break;
        _mm_storeu_si128((void *)(dst + i), v);
    }
#endif
    for (; i < n && src[i] != '\\'; i++)
        dst[i] = src[i];
    return i;
}

size_t ISA_FN(json_unescape_run)(char *dst, const char *src, size_t n, size_t *used)
{
    size_t i = 0, o = 0;

    for (;;) {
        size_t k = copy_plain(dst + o, src + i, n - i);
        o += k;
        i += k;
        if (i == n || src[i + 1] == 'u')
            break;
        dst[o++] = letters[src[i + 1] & 127];
        i += 2;
    }
    *used = i;
    return o;
}

size_t ISA_FN(json_find_hard)(const char *src, size_t n)
{
    const char *p = src, *end = src + n;

    while (p < end && (*p == '\\' || (p = memchr(p, '\\', (size_t)(end - p))))) {
        if (end - p < 2 || (unsigned char)p[1] > 127 || !letters[(unsigned char)p[1]])
            return (size_t)(p - src);
        p += 2;
    }
    return n;
}

size_t ISA_FN(json_take_run)(char *dst, const char *src, size_t n, size_t *used, bool *ascii)
{
    size_t i = 0, o = 0;

    *ascii = false; /* it is not looked at here */
    for (;;) {
        size_t k = ISA_FN(json_copy_to_special)(dst + o, src + i, n - i);
        o += k;
        i += k;
        if (n - i < 2 || src[i] != '\\' || (unsigned char)src[i + 1] > 127 || !letters[(unsigned char)src[i + 1]])
            break;
        dst[o++] = letters[(unsigned char)src[i + 1]];
        i += 2;
    }
    *used = i;
    return o;
}
#endif
