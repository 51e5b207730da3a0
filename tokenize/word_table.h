/* tokenize/word_table.h -- a bounded table of pieces seen, with their ids.
 *
 * An entry is 32 bytes: a key of 16 (the piece itself, when it has at most 15 bytes) and up to
 * five ids of 24 bits.  Longer pieces and longer lists of ids lie in a second store; a
 * long piece is compared byte for byte, so the table never mistakes one for another.
 * Open addressing within WORDS_WINDOW entries: a full window loses one of its entries,
 * a full store empties the table.  One a thread.
 */
#ifndef TOKENIZE_WORD_TABLE_H
#define TOKENIZE_WORD_TABLE_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

#include "base/mem.h"

enum {
    WORDS_KEY = 15,    /* bytes of a piece that fit into the key */
    WORDS_INLINE = 5,  /* ids that fit into an entry */
    WORDS_STORED = 255, /* n of an entry whose ids are in the store */
    WORDS_WINDOW = 8,
    WORDS_LONGEST = 16384 /* longer pieces are not kept; tables drawn with lines come close */
};

struct word {
    uint64_t lo, hi; /* hi >> 56: the length, or 0x80 for a long piece; 0: free */
    uint8_t ids[15];
    uint8_t n;
};

struct word_table {
    struct word *entries; /* mask + 1 + WORDS_WINDOW */
    uint64_t mask;
    size_t mapped;
    struct buf store; /* for each long list: the ids; for each long piece: length, bytes, ids */
    unsigned turn;
};

/* 2^log2_entries entries, in huge pages if the system has them.  ERR_NOMEM. */
int word_table_init(struct word_table *w, unsigned log2_entries);
void word_table_free(struct word_table *w);

struct word_key {
    uint64_t lo, hi, hash;
};

/* The key of a piece of n <= 15 bytes; 16 bytes must be readable at p. */
static inline struct word_key word_key_of(const uint8_t *p, size_t n)
{
    static const uint8_t ones[32] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    struct word_key k;
    uint64_t m;

    memcpy(&k.lo, p, 8);
    memcpy(&m, ones + 16 - n, 8);
    k.lo &= m;
    memcpy(&k.hi, p + 8, 8);
    memcpy(&m, ones + 24 - n, 8);
    k.hi = (k.hi & m) | (uint64_t)n << 56;
#ifdef __SSE4_2__
    k.hash = _mm_crc32_u64(_mm_crc32_u64(0, k.lo), k.hi);
#else
    k.hash = (k.lo * 0x9E3779B97F4A7C15ULL ^ k.hi) * 0xff51afd7ed558ccdULL;
    k.hash ^= k.hash >> 32;
#endif
    return k;
}

/* The entry of the piece, its ids in *ids (24 bits each, packed, for entries with n <=
 * WORDS_INLINE; else *stored, *n of them); NULL if it is not there. */
const struct word *word_table_find(const struct word_table *w, const uint8_t *p, size_t n, const uint32_t **stored,
                              size_t *count);
/* Remembers the ids of a piece (if it is short enough).  Failing for want of memory is
 * no error: the piece is not remembered. */
void word_table_put(struct word_table *w, const uint8_t *p, size_t n, const uint32_t *ids, size_t count);

static inline uint32_t word_id(const struct word *x, unsigned i)
{
    return x->ids[3 * i] | (uint32_t)x->ids[3 * i + 1] << 8 | (uint32_t)x->ids[3 * i + 2] << 16;
}

#endif
