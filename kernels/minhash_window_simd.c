#include "kernels/minhash_window.h"

#include <string.h>

#include "kernels/hashes.h"

#if defined(__AVX512DQ__)
#include <immintrin.h>

#define P1 XXH64_P1
#define P2 XXH64_P2
#define P3 XXH64_P3
#define P4 XXH64_P4
#define P5 XXH64_P5

/* Longer ones are left to the scalar code: this one knows one stripe of 32 bytes. */
enum { LONGEST = 63 };

#define ALL(x) _mm512_set1_epi64((long long)(x))
#define INLINE static inline __attribute__((always_inline))

/* A window's hash is one long chain of dependent products, 15 cycles each.  So GROUPS
 * vectors of eight windows go through every step together. */
enum { GROUPS = 3 };
#define EACH for (int i = 0; i < GROUPS; i++)
struct lanes {
    __m512i at[GROUPS], left[GROUPS], h[GROUPS];
};

INLINE __m512i round_of(__m512i acc, __m512i input)
{
    acc = _mm512_add_epi64(acc, _mm512_mullo_epi64(input, ALL(P2)));
    return _mm512_mullo_epi64(_mm512_rol_epi64(acc, 31), ALL(P1));
}

/* The first 32 bytes of the lanes that have them. */
INLINE void stripe(struct lanes *g, const char *text)
{
    static const uint64_t seed[4] = {P1 + P2, P2, 0, 0 - P1};
    static const int turn[4] = {1, 7, 12, 18};
    const __m512i zero = _mm512_setzero_si512();
    __m512i acc[4][GROUPS], sum[GROUPS];
    __mmask8 full[GROUPS];

    EACH {
        full[i] = _mm512_cmpgt_epi64_mask(g->left[i], ALL(31));
        sum[i] = zero;
    }
    for (int k = 0; k < 4; k++)
        EACH {
            __m512i in = _mm512_mask_i64gather_epi64(zero, full[i], g->at[i], text + 8 * k, 1);
            acc[k][i] = round_of(ALL(seed[k]), in);
            sum[i] = _mm512_add_epi64(sum[i], _mm512_rolv_epi64(acc[k][i], ALL(turn[k])));
        }
    for (int k = 0; k < 4; k++)
        EACH {
            sum[i] = _mm512_xor_si512(sum[i], round_of(zero, acc[k][i]));
            sum[i] = _mm512_add_epi64(_mm512_mullo_epi64(sum[i], ALL(P1)), ALL(P4));
        }
    EACH {
        g->h[i] = _mm512_mask_mov_epi64(g->h[i], full[i], sum[i]);
        g->at[i] = _mm512_mask_add_epi64(g->at[i], full[i], g->at[i], ALL(32));
        g->left[i] = _mm512_mask_sub_epi64(g->left[i], full[i], g->left[i], ALL(32));
    }
}

/* The next 8 bytes of the lanes that have them. */
INLINE void eight_bytes(struct lanes *g, const char *text)
{
    EACH {
        const __m512i zero = _mm512_setzero_si512();
        __mmask8 m = _mm512_cmpgt_epi64_mask(g->left[i], ALL(7));
        __m512i k = _mm512_mask_i64gather_epi64(zero, m, g->at[i], text, 1);
        k = _mm512_rol_epi64(_mm512_xor_si512(g->h[i], round_of(zero, k)), 27);
        k = _mm512_add_epi64(_mm512_mullo_epi64(k, ALL(P1)), ALL(P4));
        g->h[i] = _mm512_mask_mov_epi64(g->h[i], m, k);
        g->at[i] = _mm512_mask_add_epi64(g->at[i], m, g->at[i], ALL(8));
        g->left[i] = _mm512_mask_sub_epi64(g->left[i], m, g->left[i], ALL(8));
    }
}

/* The last 0 to 7 bytes, then the finish. */
INLINE void last_bytes(struct lanes *g, const char *text)
{
    __m512i word[GROUPS], k;

    EACH {
        __mmask8 four = _mm512_test_epi64_mask(g->left[i], ALL(4));
        word[i] = _mm512_i64gather_epi64(g->at[i], text, 1);
        k = _mm512_mullo_epi64(_mm512_and_si512(word[i], ALL(0xffffffff)), ALL(P1));
        k = _mm512_rol_epi64(_mm512_xor_si512(g->h[i], k), 23);
        k = _mm512_add_epi64(_mm512_mullo_epi64(k, ALL(P2)), ALL(P3));
        g->h[i] = _mm512_mask_mov_epi64(g->h[i], four, k);
        word[i] = _mm512_mask_srli_epi64(word[i], four, word[i], 32);
        g->left[i] = _mm512_and_si512(g->left[i], ALL(3));
    }
    for (int j = 0; j < 3; j++)
        EACH {
            __mmask8 m = _mm512_cmpgt_epi64_mask(g->left[i], ALL(j));
            k = _mm512_mullo_epi64(_mm512_and_si512(word[i], ALL(0xff)), ALL(P5));
            k = _mm512_rol_epi64(_mm512_xor_si512(g->h[i], k), 11);
            g->h[i] = _mm512_mask_mullo_epi64(g->h[i], m, k, ALL(P1));
            word[i] = _mm512_srli_epi64(word[i], 8);
        }
    EACH {
        __m512i h = g->h[i];
        h = _mm512_mullo_epi64(_mm512_xor_si512(h, _mm512_srli_epi64(h, 33)), ALL(P2));
        h = _mm512_mullo_epi64(_mm512_xor_si512(h, _mm512_srli_epi64(h, 29)), ALL(P3));
        g->h[i] = _mm512_xor_si512(h, _mm512_srli_epi64(h, 32));
    }
}

/* Hashes 8 * GROUPS windows; the lanes whose window is too long come back. */
static unsigned some_windows(const char *text, const uint32_t *start, int width, uint64_t *hash)
{
    struct lanes g;
    __m512i len[GROUPS];
    unsigned longer = 0, any = 0;

    EACH {
        __m512i to = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const void *)(start + width + 8 * i)));
        __mmask8 m;
        g.at[i] = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const void *)(start + 8 * i)));
        len[i] = _mm512_sub_epi64(_mm512_sub_epi64(to, g.at[i]), ALL(1));
        m = _mm512_cmpgt_epi64_mask(len[i], ALL(LONGEST));
        longer |= (unsigned)m << 8 * i;
        g.left[i] = len[i] = _mm512_mask_mov_epi64(len[i], m, _mm512_setzero_si512());
        g.h[i] = ALL(P5);
        any |= _mm512_cmpgt_epi64_mask(len[i], ALL(31));
    }
    if (any)
        stripe(&g, text);
    EACH g.h[i] = _mm512_add_epi64(g.h[i], len[i]);
    eight_bytes(&g, text);
    eight_bytes(&g, text);
    eight_bytes(&g, text);
    last_bytes(&g, text);
    EACH _mm512_storeu_si512(hash + 8 * i, g.h[i]);
    return longer;
}
#endif

static inline uint64_t one(const char *text, const uint32_t *start, int width)
{
    return xxh64((const unsigned char *)text + start[0], start[width] - 1 - start[0]);
}

void ISA_FN(minhash_window)(const char *text, const uint32_t *start, int width, size_t count,
                            uint64_t *hash)
{
    size_t i = 0;

#if defined(__AVX512DQ__)
    while (i < count && count >= 8 * GROUPS) {
        unsigned longer;
        if (i + 8 * GROUPS > count) /* the last ones: some are done twice */
            i = count - 8 * GROUPS;
        longer = some_windows(text, start + i, width, hash + i);
        for (; longer; longer &= longer - 1) {
            int j = __builtin_ctz(longer);
            hash[i + (size_t)j] = one(text, start + i + j, width);
        }
        i += 8 * GROUPS;
    }
#endif
    for (; i < count; i++)
        hash[i] = one(text, start + i, width);
}

/* ---- characters ---- */

enum { ROW = 32, MAX_ROW_WIDTH = 64, ROW_BYTES = (ROW + MAX_ROW_WIDTH) * 4 };

/* MurmurHash3_x86_32 of ROW windows of n bytes that begin at ROW bytes in a row, n a
 * multiple of 4: plain loops, which the compiler turns into vectors.  What each four
 * bytes contribute is computed once for all the windows that hold them. */
static void murmur_row(const unsigned char *p, int n, uint32_t seed, uint64_t *hash)
{
    uint32_t h[ROW], k[ROW + MAX_ROW_WIDTH];

    for (int j = 0; j < ROW + n - 4; j++) {
        k[j] = p[j] | (uint32_t)p[j + 1] << 8 | (uint32_t)p[j + 2] << 16 | (uint32_t)p[j + 3] << 24;
        k[j] = murmur3_mixed(k[j]);
    }
    for (int j = 0; j < ROW; j++)
        h[j] = seed;
    for (int i = 0; i < n; i += 4)
        for (int j = 0; j < ROW; j++)
            h[j] = hash_rotl32(h[j] ^ k[i + j], 13) * 5 + 0xe6546b64u;
    for (int j = 0; j < ROW; j++) {
        h[j] = murmur3_end(h[j], (uint32_t)n);
        hash[j] = h[j] ? h[j] : 1;
    }
}

/* The same of ROW windows of `width` characters of any bytes, 4 or more in each and up to ROW_BYTES in all.  Windows that have
 * ended go along until the longest has. */
static void murmur_any_row(const unsigned char *p, const uint32_t *start, int width, uint32_t seed, uint64_t *hash)
{
    uint32_t word[ROW_BYTES], mixed[2 * ROW_BYTES], h[ROW];
    int32_t at[ROW], n[ROW], most = 0, bytes = (int32_t)(start[ROW - 1 + width] - start[0]);

    p += start[0];
    for (int j = 0; j + 4 <= bytes; j++) {
        word[j] = p[j] | (uint32_t)p[j + 1] << 8 | (uint32_t)p[j + 2] << 16 | (uint32_t)p[j + 3] << 24;
        mixed[j] = murmur3_mixed(word[j]);
    }
    for (int j = 0; j < ROW; j++) {
        at[j] = (int32_t)(start[j] - start[0]);
        n[j] = (int32_t)(start[j + width] - start[j]);
        most = n[j] > most ? n[j] : most;
        h[j] = seed;
    }
    for (int j = bytes - 3; j < bytes + most; j++)
        mixed[j] = 0;
    for (int i = 4; i <= most; i += 4)
        for (int j = 0; j < ROW; j++) {
            uint32_t next = hash_rotl32(h[j] ^ mixed[at[j] + i - 4], 13) * 5 + 0xe6546b64u;
            h[j] = i <= n[j] ? next : h[j];
        }
    for (int j = 0; j < ROW; j++) { /* the last bytes are the upper ones of the last four */
        uint32_t left = (uint32_t)n[j] % 4, k = word[at[j] + n[j] - 4] >> (32 - 8 * left) % 32;
        h[j] = murmur3_end(h[j] ^ murmur3_mixed(left ? k : 0), (uint32_t)n[j]);
        hash[j] = h[j] ? h[j] : 1;
    }
}

void ISA_FN(minhash_window_chars)(const char *text, const uint32_t *start, int width, size_t count,
                                  uint32_t seed, uint64_t *hash)
{
    const unsigned char *p = (const unsigned char *)text;

    for (size_t i = 0; i < count;) {
        /* ASCII: each of the next characters is one byte */
        if (width % 4 == 0 && width <= MAX_ROW_WIDTH && i + ROW <= count &&
            start[i + ROW - 1 + (size_t)width] - start[i] == (uint32_t)(ROW - 1 + width)) {
            murmur_row(p + start[i], width, seed, hash + i);
            i += ROW;
        } else if (width >= 4 && i + ROW <= count && start[i + ROW - 1 + (size_t)width] - start[i] <= ROW_BYTES) {
            murmur_any_row(p, start + i, width, seed, hash + i);
            i += ROW;
        } else {
            uint32_t h = murmur3(p + start[i], start[i + (size_t)width] - start[i], seed);
            hash[i++] = h ? h : 1;
        }
    }
}
