#include <string.h>

#include "base/block.h"
#include "tokenize/bpe_cut.h"

static inline bool is_crossed(const struct bpe_crossings *c, const uint8_t *at)
{
    uint32_t x, wide;

    memcpy(&x, at - 2, 4);
    x = bpe_cross_context(x);
    wide = bpe_cross_wide(x);
    x = x >> 8 & 0xFFFF;
    return ((c->near[x >> 6] >> (x & 63)) | (c->wide[wide >> 6] >> (wide & 63))) & 1;
}

/* Where characters begin, of which this one or the one before is not ASCII, among the 64 bytes at p; at least
 * `n` bytes are readable. */
static inline bits places(const uint8_t *p, size_t n, bits *carry)
{
    uint8_t tail[64] = {0};
    struct block b;
    bits high, s;

    if (n < 64) {
        memcpy(tail, p, n);
        p = tail;
    }
    b = block_load(p);
    high = block_high(b);
    s = ~block_in(b, (char)0x80, 0x40) & (high | high << 1 | *carry);
    *carry = high >> 63;
    return s;
}

/* Appends where parts of text[from..to) begin.  False when there is no more room. */
static inline bool cut(const struct bpe_crossings *c, struct span text, size_t from, size_t to, uint32_t *parts,
                       size_t *count, size_t max)
{
    const uint8_t *p = (const uint8_t *)text.p;
    size_t k = *count;
    bits carry = 0;

    parts[k++] = (uint32_t)from;
    /* Two bytes of the piece are on each side of a place. */
    for (size_t at = from; at + 2 < to; at += 64) {
        bits s = places(p + at, text.n - at, &carry);
        if (at == from)
            s &= ~(bits)3;
        if (to - 1 - at < 64)
            s &= ((bits)1 << (to - 1 - at)) - 1;
        if (k + 65 > max) {
            *count = k;
            return false;
        }
        for (; s; s &= s - 1) {
            size_t i = at + (size_t)__builtin_ctzll(s);
            parts[k] = (uint32_t)i;
            k += !is_crossed(c, p + i);
        }
    }
    *count = k;
    return true;
}

/* Copies the beginnings of LANES pieces; returns how many pieces there are before the first long one. */
#if defined(__AVX512F__)
enum { LANES = 16 };
static inline unsigned copy_short(const uint32_t *cuts, uint32_t *parts)
{
    __m512i from = _mm512_loadu_si512(cuts), size = _mm512_sub_epi32(_mm512_loadu_si512(cuts + 1), from);

    _mm512_storeu_si512(parts, from);
    return (unsigned)__builtin_ctz(_mm512_cmpgt_epu32_mask(size, _mm512_set1_epi32(BPE_CUT_SHORT)) | 1u << LANES);
}
#elif defined(__SSE2__)
enum { LANES = 4 };
static inline unsigned copy_short(const uint32_t *cuts, uint32_t *parts)
{
    __m128i from = _mm_loadu_si128((const __m128i *)(const void *)cuts);
    __m128i size = _mm_sub_epi32(_mm_loadu_si128((const __m128i *)(const void *)(cuts + 1)), from);

    _mm_storeu_si128((__m128i *)(void *)parts, from);
    size = _mm_cmpgt_epi32(size, _mm_set1_epi32(BPE_CUT_SHORT)); /* of pieces below 2^31 bytes */
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_ps(_mm_castsi128_ps(size)) | 1u << LANES);
}
#else
enum { LANES = 1 };
static inline unsigned copy_short(const uint32_t *cuts, uint32_t *parts)
{
    parts[0] = cuts[0];
    return cuts[1] - cuts[0] <= BPE_CUT_SHORT;
}
#endif

size_t ISA_FN(bpe_parts)(const struct bpe_crossings *c, struct span text, uint32_t *cuts, size_t n, size_t *done,
                         size_t keep, uint32_t *parts, size_t max)
{
    const uint8_t *p = (const uint8_t *)text.p;
    size_t i = *done, k = 0;

    for (; i < n && k + 1 < max; i++) {
        size_t from, size;
        while (n - i >= LANES && max - k > LANES) {
            unsigned some = copy_short(cuts + i, parts + k);
            if (some < LANES) {
                i += some;
                k += some;
                break;
            }
            i += LANES;
            k += LANES;
        }
        if (i == n || k + 1 == max)
            break;
        from = cuts[i];
        size = cuts[i + 1] - from;
        if (__builtin_expect(size <= BPE_CUT_SHORT, 1) || (size < keep && p[from] < 0xE3 && p[from + 1] < 0xE3)) {
            parts[k++] = (uint32_t)from;
            continue;
        }
        if (k + 66 > max && k)
            break;
        if (!cut(c, text, from, from + size, parts, &k, max)) {
            cuts[i] = parts[--k];
            break;
        }
    }
    parts[k] = cuts[i];
    *done = i;
    return k;
}
