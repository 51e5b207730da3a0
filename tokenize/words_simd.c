/* Pieces to ids by the table, a batch at a time: first keys, hashes and prefetches, then, when
 * memory has had time to answer, comparisons and copies.  While a batch is copied the next one is looked for, so
 * that memory always has some to do. */
#include "tokenize/word_table.h"

#include "tokenize/word_hash.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { LONG = 0xFF }; /* the last byte of the key of a piece that is no short one */

static inline void seek_one(const struct word_table *w, const uint8_t *p, size_t n, struct word_batch *b, size_t i)
{
    struct word_key k = {0, (uint64_t)LONG << 56};

    if (n <= WORDS_SHORT) {
        k = word_key_of(p, n);
        b->at[i][0] = word_set(word_hash_key(k.lo, k.hi), w->set_mask);
    } else { /* one longer than an entry: none matches */
        uint64_t at = n < WORDS_LINE ? word_hash_long(p, n) & w->line_mask : 0;
        b->at[i][0] = (uint64_t)((const char *)(w->lines + at) - (const char *)w->words);
    }
    memcpy(b->key[i], &k, 16);
    __builtin_prefetch((const char *)w->words + b->at[i][0]);
}

#if defined(__AVX512VBMI__) && defined(__AVX512IFMA__) && defined(__AVX512VL__)
/* Four short pieces at once; 16 bytes are readable at each. */
static inline void seek_four(const struct word_table *w, const uint8_t *text, const uint32_t *cuts, __m128i lengths,
                             struct word_batch *b, size_t i)
{
    const __m512i spread = _mm512_set_epi32(0x0C0C0C0C, 0x0C0C0C0C, 0x0C0C0C0C, 0x0C0C0C0C, 0x08080808, 0x08080808,
                                            0x08080808, 0x08080808, 0x04040404, 0x04040404, 0x04040404, 0x04040404, 0,
                                            0, 0, 0);
    const __m512i place = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    const __m512i by = _mm512_broadcast_i32x4(_mm_set_epi64x((int64_t)WORD_HASH_HI, (int64_t)WORD_HASH_LO));
    const char *words = (const char *)w->words;
    __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)(text + cuts[0])));
    __m512i n = _mm512_permutexvar_epi8(spread, _mm512_castsi128_si512(lengths)), h;

    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(text + cuts[1])), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(text + cuts[2])), 2);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(text + cuts[3])), 3);
    x = _mm512_mask_mov_epi8(_mm512_maskz_mov_epi8(0x8000800080008000, n), _mm512_cmplt_epu8_mask(place, n), x);
    _mm512_storeu_si512(b->key[i], x);
    x = _mm512_xor_si512(x, _mm512_srli_epi64(x, WORD_HASH_FOLD));
    h = _mm512_madd52lo_epu64(_mm512_setzero_si512(), x, by);
    h = _mm512_xor_si512(h, _mm512_shuffle_epi32(h, _MM_PERM_BADC));
    h = _mm512_and_si512(_mm512_srli_epi64(h, WORD_HASH_SHIFT), _mm512_set1_epi64((int64_t)w->set_mask));
    _mm512_storeu_si512(b->at[i], h);
    /* Not read back: a load from the midst of so wide a store waits until that is done. */
    __builtin_prefetch(words + _mm_cvtsi128_si64(_mm512_castsi512_si128(h)));
    __builtin_prefetch(words + _mm_cvtsi128_si64(_mm512_extracti32x4_epi32(h, 1)));
    __builtin_prefetch(words + _mm_cvtsi128_si64(_mm512_extracti32x4_epi32(h, 2)));
    __builtin_prefetch(words + _mm_cvtsi128_si64(_mm512_extracti32x4_epi32(h, 3)));
}

/* Looks for up to four more pieces. */
static inline void seek_more(const struct word_table *w, struct word_batch *b)
{
    size_t i = b->sought, end = i + 4 < b->n ? i + 4 : b->n;
    const uint32_t *cuts = b->cuts;

    if (end == i + 4 && b->size >= 16) {
        const __m128i longest = _mm_set1_epi32(WORDS_SHORT), safe = _mm_set1_epi32((int)(b->size - 16));
        __m128i from = _mm_loadu_si128((const __m128i *)(const void *)(cuts + i));
        __m128i lengths = _mm_sub_epi32(_mm_loadu_si128((const __m128i *)(const void *)(cuts + i + 1)), from);
        if (__builtin_expect(!(_mm_cmpgt_epu32_mask(lengths, longest) | _mm_cmpgt_epu32_mask(from, safe)), 1)) {
            seek_four(w, b->text, cuts + i, lengths, b, i);
            i = end;
        }
    }
    for (; i < end; i++)
        seek_one(w, b->text + cuts[i], cuts[i + 1] - cuts[i], b, i);
    b->sought = end;
}
#else
static inline void seek_more(const struct word_table *w, struct word_batch *b)
{
    size_t i = b->sought, end = i + 4 < b->n ? i + 4 : b->n;

    for (; i < end; i++)
        seek_one(w, b->text + b->cuts[i], b->cuts[i + 1] - b->cuts[i], b, i);
    b->sought = end;
}
#endif

void ISA_FN(words_seek)(const struct word_table *w, struct word_batch *b)
{
    while (b->sought < b->n)
        seek_more(w, b);
}

static inline bool same16(const uint8_t *a, const uint8_t *b)
{
#if defined(__SSE2__)
    return _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)a),
                                            _mm_loadu_si128((const __m128i *)(const void *)b))) == 0xFFFF;
#else
    return memcmp(a, b, 16) == 0;
#endif
}

/* Which of a set of two has the key, or NULL.  Where the second often has it, no branch asks which. */
static inline const struct known_word *pick(const struct known_word *set, const uint8_t *key, bool either, unsigned *seconds)
{
    bool first, found;

    if (!either) {
        if (__builtin_expect(same16(set->key, key), 1))
            return set;
        ++*seconds;
        return same16(set[1].key, key) ? set + 1 : NULL;
    }
#if defined(__AVX512F__)
    const __m512i twice = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)key));
    unsigned m = _mm512_mask_cmpeq_epi64_mask(0x33, _mm512_load_si512(set), twice) + 0x11;
    first = m & 4;
    found = m & 0x44;
#else
    first = same16(set->key, key);
    found = first | same16(set[1].key, key);
#endif
    *seconds += !first;
    return found ? set + !first : NULL;
}

static inline int same(const uint8_t *a, const uint8_t *b, size_t n)
{
#if defined(__AVX512BW__)
    __mmask64 m = ((uint64_t)1 << n) - 1;
    return _mm512_mask_cmpneq_epi8_mask(m, _mm512_maskz_loadu_epi8(m, a), _mm512_maskz_loadu_epi8(m, b)) == 0;
#else
    return memcmp(a, b, n) == 0;
#endif
}

/* Writes five ids, of which some may be none; touches 32 bytes. */
static inline void put_five(char *o, const uint8_t *ids, int width)
{
#if defined(__SSE4_2__)
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)ids);
#if defined(__AVX512VBMI__)
    if (width == 4) {
        const __m256i pick = _mm256_setr_epi8(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11, 0, 12, 13, 14, 0, 0, 0, 0, 0,
                                              0, 0, 0, 0, 0, 0, 0, 0);
        _mm256_storeu_si256((__m256i *)(void *)o,
                            _mm256_maskz_permutexvar_epi8(0x77777, pick, _mm256_castsi128_si256(v)));
        return;
    }
#endif
    if (width == 2) {
        const __m128i pick = _mm_setr_epi8(0, 1, 3, 4, 6, 7, 9, 10, 12, 13, -1, -1, -1, -1, -1, -1);
        _mm_storeu_si128((__m128i *)(void *)o, _mm_shuffle_epi8(v, pick));
    } else {
        const __m128i pick = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
        uint32_t fifth = ids[12] | (uint32_t)ids[13] << 8 | (uint32_t)ids[14] << 16;
        _mm_storeu_si128((__m128i *)(void *)o, _mm_shuffle_epi8(v, pick));
        memcpy(o + 16, &fifth, 4);
    }
#else
    for (int i = 0; i < WORDS_INLINE; i++) {
        uint32_t id = ids[3 * i] | (uint32_t)ids[3 * i + 1] << 8 | (uint32_t)ids[3 * i + 2] << 16;
        uint16_t half = (uint16_t)id;
        memcpy(o + i * width, width == 2 ? (const void *)&half : (const void *)&id, (size_t)width);
    }
#endif
}

static inline char *put_packed(char *o, const uint8_t *ids, size_t count, int width)
{
    for (size_t i = 0; i < count; i += WORDS_INLINE)
        put_five(o + i * (size_t)width, ids + 3 * i, width);
    return o + count * (size_t)width;
}

/* Piece i of b, or NULL if it is not there. */
static inline char *put_one(const struct word_table *w, struct word_batch *b, size_t i, char *o, int width, bool either)
{
    const uint8_t *key = b->key[i];
    const void *at = (const char *)w->words + b->at[i][0];
    const struct known_word *x = pick(at, key, either, &b->seconds);

    if (__builtin_expect(!x, 0)) {
        const struct word_line *y = at;
        size_t len = b->cuts[i + 1] - b->cuts[i];
        if (key[15] != LONG || y->n != len || !same(y->bytes, b->text + b->cuts[i], len))
            return NULL;
        return put_packed(o, y->bytes + len, y->count, width);
    }
    if (__builtin_expect(x->n > WORDS_INLINE, 0)) {
        size_t count;
        const uint8_t *ids = word_stored(w, x, &count);
        return put_packed(o, ids, count, width);
    }
    put_five(o, x->ids, width);
    return o + x->n * width;
}

static inline char *put_all(const struct word_table *w, struct word_batch *b, struct word_batch *ahead, char *o, int width,
                            bool either)
{
    size_t i = b->next, n = b->n;

    while (i < n) {
        size_t end = (i | 3) + 1 < n ? (i | 3) + 1 : n;
        seek_more(w, ahead);
        for (; i < end; i++) {
            char *behind = put_one(w, b, i, o, width, either);
            if (__builtin_expect(!behind, 0)) {
                b->next = i;
                return o;
            }
            o = behind;
        }
    }
    b->next = n;
    ahead->either = b->seconds > WORDS_BATCH / 16;
    return o;
}

static inline char *put(const struct word_table *w, struct word_batch *b, struct word_batch *ahead, char *o, int width)
{
    return b->either ? put_all(w, b, ahead, o, width, true) : put_all(w, b, ahead, o, width, false);
}

char *ISA_FN(words_put2)(const struct word_table *w, struct word_batch *b, struct word_batch *ahead, char *o)
{
    return put(w, b, ahead, o, 2);
}

char *ISA_FN(words_put4)(const struct word_table *w, struct word_batch *b, struct word_batch *ahead, char *o)
{
    return put(w, b, ahead, o, 4);
}
