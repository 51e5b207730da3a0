/* tokenize/bpe_pairs.h -- the pairs of bpe.h's tables and how they are found: what bpe.c and bpe_simd.c share. */
#ifndef TOKENIZE_BPE_PAIRS_H
#define TOKENIZE_BPE_PAIRS_H

#include "tokenize/bpe.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

enum { BPE_NO_RANK = UINT32_MAX };

/* Four share a cache line, which is full before the next one is used. */
enum { BPE_LINE = 4 };
struct bpe_pair {
    uint64_t key;  /* bpe_key's; 0: free */
    uint32_t next; /* rank + 1 */
    uint32_t id;
};

/* Two bytes: what joining them gives. */
struct bpe_byte_pair {
    uint32_t rank, id;
};

/* Not 0: no pair is of two tokens that there cannot be. */
static inline uint64_t bpe_key(uint32_t left, uint32_t right)
{
    return ~((uint64_t)left << 32 | right);
}
static inline uint32_t bpe_left(uint64_t key)
{
    return (uint32_t)(~key >> 32);
}
static inline uint32_t bpe_right(uint64_t key)
{
    return (uint32_t)~key;
}

/* Instead of those, when all are there: the same pairs in half the room, so that they stay in the cache.  Where
 * id - rank is the same for all of them, eight to a line, each with its numbers in 21, 21 and 22 bits, the last of
 * them rank + 1.  0: free. */
enum { BPE_DENSE_ID = 21, BPE_DENSE_RANK = 22, BPE_DENSE_LINE = 8 };
#define BPE_DENSE_NONE (UINT64_MAX >> BPE_DENSE_RANK) /* no pair's key: no id is as large */
#define BPE_DENSE_IDS ((1u << BPE_DENSE_ID) - 1)
#define BPE_DENSE_RANKS ((UINT64_C(1) << BPE_DENSE_RANK) - 1)

static inline uint64_t bpe_dense_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << BPE_DENSE_ID | right;
}

/* Both tables have their pairs in the order of this. */
static inline uint64_t bpe_hash_key(uint64_t dense_key)
{
    return dense_key * UINT64_C(0x9E3779B97F4A7C15);
}

static inline const uint64_t *bpe_dense_line(const struct bpe *b, uint64_t key)
{
    return b->dense + ((bpe_hash_key(key) >> 32) * b->dense_lines >> 32) * BPE_DENSE_LINE;
}

/* The rank of a pair by its key; BPE_NO_RANK if nothing. */
static inline uint32_t bpe_dense_rank(const struct bpe *b, uint64_t key)
{
    const uint64_t *line = bpe_dense_line(b, key);

    for (;; line += BPE_DENSE_LINE) {
#if defined(__AVX512F__)
        __m512i x = _mm512_load_si512(line);
        __mmask8 hit = _mm512_cmpeq_epi64_mask(_mm512_srli_epi64(x, BPE_DENSE_RANK), _mm512_set1_epi64((int64_t)key));
        if (__builtin_expect(hit | _mm512_testn_epi64_mask(x, x), 1)) { /* none: zero */
            x = _mm512_maskz_compress_epi64(hit, x);
            return (uint32_t)((uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(x)) & BPE_DENSE_RANKS) - 1;
        }
#else
        for (int i = 0; i < BPE_DENSE_LINE; i++)
            if (!line[i] || line[i] >> BPE_DENSE_RANK == key)
                return (uint32_t)(line[i] & BPE_DENSE_RANKS) - 1;
#endif
    }
}

static inline uint32_t bpe_line(const struct bpe *b, uint32_t left, uint32_t right)
{
    return (uint32_t)(bpe_hash_key(bpe_dense_key(left, right)) >> b->shift) * BPE_LINE;
}

/* The rank of joining two tokens and what they become; BPE_NO_RANK if nothing. */
static inline uint32_t bpe_pair_rank(const struct bpe *b, uint32_t left, uint32_t right, uint32_t *id)
{
    uint64_t key = bpe_key(left, right);
    uint32_t at;

    if (b->dense) {
        at = (left | right) > BPE_DENSE_IDS ? BPE_NO_RANK : bpe_dense_rank(b, bpe_dense_key(left, right));
        *id = at + b->dense_id;
        return at;
    }
    at = bpe_line(b, left, right);
#if defined(__AVX512F__)
    for (;; at = (at + BPE_LINE) & b->mask) {
        __m512i line = _mm512_load_si512(b->pairs + at);
        __mmask8 hit = _mm512_mask_cmpeq_epi64_mask(0x55, line, _mm512_set1_epi64((int64_t)key));
        __mmask8 free = _mm512_mask_testn_epi64_mask(0x55, line, line);
        if (__builtin_expect(hit | free, 1)) { /* none: zeros */
            __m128i found = _mm512_castsi512_si128(_mm512_maskz_compress_epi64((__mmask8)(hit << 1), line));
            *id = (uint32_t)_mm_extract_epi32(found, 1);
            return (uint32_t)_mm_cvtsi128_si32(found) - 1;
        }
    }
#else
    for (;; at = (at + BPE_LINE) & b->mask) {
        const struct bpe_pair *p = b->pairs + at;
        for (int i = 0; i < BPE_LINE; i++)
            if (p[i].key == key) {
                *id = p[i].id;
                return p[i].next - 1;
            }
        if (!p[BPE_LINE - 1].key)
            return BPE_NO_RANK;
    }
#endif
}

/* An empty dense table for at most n pairs, instead of the other one. */
int bpe_dense_begin(struct bpe *b, uint32_t n, struct err *e);
/* A pair that is not there.  False: there is no room. */
bool bpe_dense_put(struct bpe *b, uint32_t left, uint32_t right, uint32_t rank);
/* Back to the other table, for good. */
int bpe_dense_undo(struct bpe *b, struct err *e);
/* Gives the memory of the other table back. */
void bpe_dense_only(struct bpe *b);
/* byte_pairs without any. */
int bpe_byte_pairs_begin(struct bpe *b, struct err *e);

/* Joins the symbols id[0..n-1], n <= BPE_SHORT, where rank[i] and joined[i] are what bpe_pair_rank says of symbols
 * i and i + 1 (no rank for the last); rank has room for BPE_SHORT.  Returns how many are left. */
ISA_DECLARE(size_t, bpe_join, (const struct bpe *b, uint32_t *id, uint32_t *rank, uint32_t *joined, size_t n));
/* Encodes n words by the dense pairs, some of them at a time so that memory is asked early. */
ISA_DECLARE(void, bpe_words, (const struct bpe *b, struct bpe_word *words, size_t n));
/* Joins the symbols of n words by any pairs, likewise. */
ISA_DECLARE(void, bpe_symbols, (const struct bpe *b, struct bpe_word *words, size_t n));

#endif
