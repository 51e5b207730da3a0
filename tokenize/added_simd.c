/* Where an added token may begin: its first two bytes are looked for, 64 places at a time. */
#include "base/block.h"
#include "tokenize/added.h"

#if defined(__AVX512BW__)

/* Bits of the groups of tokens whose byte number k may be the byte at each place. */
static inline __m512i groups(const struct added_set *s, int k, __m512i v)
{
    const __m512i low = _mm512_set1_epi8(15);
    __m512i by_low = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)s->low[k]));
    __m512i by_high = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)s->high[k]));

    return _mm512_and_si512(_mm512_shuffle_epi8(by_low, _mm512_and_si512(v, low)),
                            _mm512_shuffle_epi8(by_high, _mm512_and_si512(_mm512_srli_epi16(v, 4), low)));
}

size_t ISA_FN(added_candidate)(const struct added_set *s, struct span text, size_t at)
{
    for (; text.n - at > 64; at += 64) {
        __m512i first = _mm512_loadu_si512(text.p + at), second = _mm512_loadu_si512(text.p + at + 1);
        bits may = _mm512_test_epi8_mask(groups(s, 0, first), groups(s, 1, second));
        if (may)
            return at + (size_t)__builtin_ctzll(may);
    }
    return added_candidate_slow(s, text, at);
}

#elif defined(__AVX2__)

static inline __m256i groups(const struct added_set *s, int k, __m256i v)
{
    const __m256i low = _mm256_set1_epi8(15);
    __m256i by_low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)s->low[k]));
    __m256i by_high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)s->high[k]));

    return _mm256_and_si256(_mm256_shuffle_epi8(by_low, _mm256_and_si256(v, low)),
                            _mm256_shuffle_epi8(by_high, _mm256_and_si256(_mm256_srli_epi16(v, 4), low)));
}

size_t ISA_FN(added_candidate)(const struct added_set *s, struct span text, size_t at)
{
    for (; text.n - at > 32; at += 32) {
        __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)(text.p + at));
        __m256i second = _mm256_loadu_si256((const __m256i *)(const void *)(text.p + at + 1));
        __m256i may = _mm256_and_si256(groups(s, 0, first), groups(s, 1, second));
        uint32_t none = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(may, _mm256_setzero_si256()));
        if (~none)
            return at + (size_t)__builtin_ctz(~none);
    }
    return added_candidate_slow(s, text, at);
}

#else

size_t ISA_FN(added_candidate)(const struct added_set *s, struct span text, size_t at)
{
    return added_candidate_slow(s, text, at);
}

#endif
