/* Trees over many blocks at once: a test is one comparison of 64 bytes, and a tree's 64 leaves are two registers of
 * AVX-512; AVX2 looks them up by bytes, 16 at a time. */
#include "curate/html/content_forest_simd.h"

#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#ifdef __AVX512BW__
enum { WIDTH = 64 };
#elif defined(__AVX2__)
enum { WIDTH = 32 };
#else
enum { WIDTH = 16 };
#endif
enum { LEAVES = 1 << CONTENT_DEPTH };

/* Features are below CONTENT_LEVELS: signed comparisons do. */
typedef int8_t bytes __attribute__((vector_size(WIDTH)));

/* Of WIDTH columns the leaves that they come to in a tree. */
static inline void leaf_numbers(const struct content_forest *f, int tree, const uint8_t *feature, size_t stride, bytes *leaf)
{
    const uint16_t *x = f->feature + tree * CONTENT_DEPTH;
    const uint8_t *over = f->threshold + tree * CONTENT_DEPTH;
    bytes at = {0}, row;

    for (int k = 0; k < CONTENT_DEPTH; k++) {
        memcpy(&row, feature + x[k] * stride, sizeof row);
        at |= (row > (int8_t)over[k]) & (int8_t)(1 << k);
    }
    *leaf = at;
}

#if defined(__AVX2__) && !defined(__AVX512BW__)
/* The low and the high bytes of a tree's leaves, 16 in both halves of each register. */
static inline void leaf_bytes(const int16_t *leaf, __m256i low[4], __m256i high[4])
{
    const __m256i byte = _mm256_set1_epi16(0xFF);

    for (int k = 0; k < 4; k++) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(leaf + 16 * k));
        low[k] = _mm256_permute4x64_epi64(_mm256_packus_epi16(_mm256_and_si256(v, byte), _mm256_setzero_si256()), 0x88);
        high[k] = _mm256_permute4x64_epi64(_mm256_packus_epi16(_mm256_srli_epi16(v, 8), _mm256_setzero_si256()), 0x88);
    }
}

/* Adds the leaves of the given numbers to 32 sums: of columns 0 to 7, 16 to 23, 8 to 15 and 24 to 31. */
static inline void add_leaves(__m256i number, const __m256i low[4], const __m256i high[4], __m256i sum[4])
{
    const __m256i block = _mm256_set1_epi8(16), others = _mm256_set1_epi8(0x70);
    __m256i l = _mm256_setzero_si256(), h = l;

    for (int k = 0; k < 4; k++) {
        __m256i of = _mm256_adds_epu8(number, others); /* above 15, or below 0: the highest bit, and a shuffle gives 0 */
        l = _mm256_or_si256(l, _mm256_shuffle_epi8(low[k], of));
        h = _mm256_or_si256(h, _mm256_shuffle_epi8(high[k], of));
        number = _mm256_sub_epi8(number, block);
    }
    __m256i v[2] = {_mm256_unpacklo_epi8(l, h), _mm256_unpackhi_epi8(l, h)};
    for (int k = 0; k < 2; k++) {
        sum[2 * k] = _mm256_add_epi32(sum[2 * k], _mm256_cvtepi16_epi32(_mm256_castsi256_si128(v[k])));
        sum[2 * k + 1] = _mm256_add_epi32(sum[2 * k + 1], _mm256_cvtepi16_epi32(_mm256_extracti128_si256(v[k], 1)));
    }
}
#endif

void ISA_FN(content_forest_run)(const struct content_forest *f, const uint8_t *feature, size_t stride, int32_t *score)
{
#ifdef __AVX512BW__
    __m512i sum[4];

    for (int k = 0; k < 4; k++)
        sum[k] = _mm512_set1_epi32(f->bias);
    for (int i = 0; i < f->n_trees; i++) {
        __m512i low = _mm512_loadu_si512(f->leaf + i * LEAVES), high = _mm512_loadu_si512(f->leaf + i * LEAVES + 32);
        bytes leaf;
        leaf_numbers(f, i, feature, stride, &leaf);
        __m512i at = (__m512i)leaf;
        for (int k = 0; k < 2; k++) {
            __m512i of = _mm512_cvtepu8_epi16(k ? _mm512_extracti64x4_epi64(at, 1) : _mm512_castsi512_si256(at));
            __m512i v = _mm512_permutex2var_epi16(low, of, high);
            sum[2 * k] = _mm512_add_epi32(sum[2 * k], _mm512_cvtepi16_epi32(_mm512_castsi512_si256(v)));
            sum[2 * k + 1] = _mm512_add_epi32(sum[2 * k + 1], _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(v, 1)));
        }
    }
    memcpy(score, sum, sizeof sum);
#elif defined(__AVX2__)
    __m256i sum[8];

    for (int k = 0; k < 8; k++)
        sum[k] = _mm256_set1_epi32(f->bias);
    for (int i = 0; i < f->n_trees; i++) {
        __m256i low[4], high[4];
        leaf_bytes(f->leaf + i * LEAVES, low, high);
        for (int k = 0; k < 2; k++) {
            bytes number;
            leaf_numbers(f, i, feature + k * WIDTH, stride, &number);
            add_leaves((__m256i)number, low, high, sum + 4 * k);
        }
    }
    /* Of 32 columns the sums are of 0 to 7, 16 to 23, 8 to 15, 24 to 31. */
    for (int k = 0; k < 8; k++)
        memcpy(score + (k / 4 * 4 + k % 4 / 2 + k % 2 * 2) * 8, &sum[k], sizeof sum[k]);
#else
    int32_t sum[CONTENT_AT_ONCE];

    for (int j = 0; j < CONTENT_AT_ONCE; j++)
        sum[j] = f->bias;
    for (int i = 0; i < f->n_trees; i++) {
        const int16_t *value = f->leaf + i * LEAVES;
        for (int from = 0; from < CONTENT_AT_ONCE; from += WIDTH) {
            uint8_t number[WIDTH];
            bytes leaf;
            leaf_numbers(f, i, feature + from, stride, &leaf);
            memcpy(number, &leaf, sizeof leaf);
            for (int j = 0; j < WIDTH; j++)
                sum[from + j] += value[number[j]];
        }
    }
    memcpy(score, sum, sizeof sum);
#endif
}
