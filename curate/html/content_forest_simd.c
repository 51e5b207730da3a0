/* Trees over many blocks at once: a test is one comparison of 64 bytes, and a tree's 64 leaves are two registers of
 * AVX-512. */
#include "curate/html/content_forest_simd.h"

#include <string.h>

#ifdef __AVX512BW__
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
