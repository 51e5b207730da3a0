/* tokenize/word_table.h -- a bounded table of pieces seen, with their ids.
 *
 * Three parts.  Entries of 32 bytes hold pieces of at most 15 bytes with up to five ids, in
 * sets of two that share a cache line.  Entries of 64 bytes, a cache line each, hold longer
 * pieces that fit into 62 bytes together with their ids.  What is larger lies in a store
 * that entries of the first kind point to.  Ids take three bytes everywhere.  Pieces are
 * compared byte for byte, so the table never mistakes one for another; a full window loses
 * one of its entries, a full store empties the table.  Memory is touched as it is needed: both kinds
 * of entries begin with few and double.  One a thread.
 */
#ifndef TOKENIZE_WORD_TABLE_H
#define TOKENIZE_WORD_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/isa.h"
#include "base/mem.h"
#include "tokenize/pages.h"

enum {
    WORDS_SHORT = 15,   /* bytes of a piece that fit into a short entry */
    WORDS_INLINE = 5,   /* ids there */
    WORDS_STORED = 255, /* n of an entry whose ids are in the store */
    WORDS_LINE = 62,    /* bytes of a piece and its ids in a long entry */
    WORDS_LONGEST = 16384, /* longer pieces are not kept; tables drawn with lines come close */
    WORDS_SLACK = 80,   /* bytes behind the ids that writers may touch */
    WORDS_BATCH = 64,
    WORDS_LOG2 = 19
};

struct known_word {
    uint8_t key[16]; /* word_hash.h's; of a long piece: hash, length and 0x80; all 0: free */
    uint8_t ids[15]; /* or where in the store they are, and how many: uint32_t each */
    uint8_t n;
};

struct word_line {
    uint8_t n, count; /* 0: free */
    uint8_t bytes[WORDS_LINE];
};

struct word_table {
    struct known_word *words;
    struct word_line *lines; /* in the same memory, behind the most words there can be */
    uint64_t set_mask;       /* of a key's hash, to where its set begins, in bytes from words (word_set) */
    uint64_t line_mask;      /* of a long piece's hash, to the number of its first line */
    uint64_t words_used, lines_used;
    uint64_t most_words, most_lines;
    struct pages pages;
    struct buf store; /* for each: the piece, if it is a long one, then its ids */
    unsigned turn;
};

static inline const uint8_t *word_stored(const struct word_table *w, const struct known_word *x, size_t *count)
{
    uint32_t at[2];

    memcpy(at, x->ids, sizeof at);
    *count = at[1];
    return (const uint8_t *)w->store.p + at[0];
}

/* At most 2^log2_words short entries, 3 <= log2_words <= WORDS_LOG2, and half as many long ones, in huge pages if the
 * system has them.  ERR_NOMEM. */
int word_table_init(struct word_table *w, unsigned log2_words);
void word_table_free(struct word_table *w);

/* Half of the words; a quarter of the lines, whose windows are narrow. */
static inline bool word_table_full_words(const struct word_table *w)
{
    return w->words_used > w->set_mask / sizeof *w->words / 2;
}
static inline bool word_table_full_lines(const struct word_table *w)
{
    return w->lines_used > w->line_mask / 4;
}
void word_table_double(struct word_table *w);
/* Doubles what is full.  What was sought before is to be sought again. */
static inline void word_table_make_room(struct word_table *w)
{
    if (word_table_full_words(w) || word_table_full_lines(w))
        word_table_double(w);
}

/* The ids of the piece, 3 bytes each with WORDS_SLACK readable behind; NULL if it is not there. */
const uint8_t *word_table_find(struct word_table *w, const uint8_t *p, size_t n, size_t *count);
static inline uint32_t word_id(const uint8_t *ids, size_t i)
{
    uint32_t x; /* one byte more is readable */

    memcpy(&x, ids + 3 * i, sizeof x);
    return x & 0xFFFFFF;
}
static inline void word_pack(uint8_t *to, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (int b = 0; b < 3; b++)
            to[3 * i + (size_t)b] = (uint8_t)(ids[i] >> 8 * b);
}
/* Remembers the ids of a piece that is not there (if it is short enough).  Failing for want of
 * memory is no error: the piece is not remembered. */
void word_table_put(struct word_table *w, const uint8_t *p, size_t n, const uint32_t *ids, size_t count);

/* ---- many pieces at a time (words_simd.c) ---- */

/* Pieces cuts[i]..cuts[i + 1] of a text, looked for together so that memory is asked early. */
struct word_batch {
    uint8_t key[WORDS_BATCH][16];
    uint64_t at[WORDS_BATCH][2]; /* [0]: where to look, in bytes from words */
    const uint8_t *text;
    size_t size; /* of the text */
    const uint32_t *cuts;
    size_t n, sought, next; /* pieces, at most WORDS_BATCH; looked for; written */
    unsigned seconds; /* pieces that were not in the first entry of their set */
    bool either;      /* the batch before had many of them */
};

/* The first WORDS_BATCH of n pieces. */
static inline void word_batch_begin(struct word_batch *b, struct span text, const uint32_t *cuts, size_t n)
{
    b->text = (const uint8_t *)text.p;
    b->size = text.n;
    b->cuts = cuts;
    b->n = n < WORDS_BATCH ? n : WORDS_BATCH;
    b->sought = b->next = 0;
    b->seconds = 0;
}

/* The ids of piece i of a batch that was sought, a short one, if it stands at the beginning of its set; NULL: word_table_find tells. */
static inline const uint8_t *word_batch_find(const struct word_table *w, const struct word_batch *b, size_t i, size_t *count)
{
    const struct known_word *x = (const struct known_word *)(const void *)((const char *)w->words + b->at[i][0]);

    for (int k = 0; k < 2 && b->cuts[i + 1] - b->cuts[i] <= WORDS_SHORT; k++)
        if (memcmp(x[k].key, b->key[i], sizeof x->key) == 0 && x[k].n != WORDS_STORED) {
            *count = x[k].n;
            return x[k].ids;
        }
    return NULL;
}

/* Begins to look for the pieces of b that have not been sought. */
ISA_DECLARE(void, words_seek, (const struct word_table *w, struct word_batch *b));
/* Writes ids of two or four bytes to o up to b->n or a piece, b->next, that is not where it is looked
 * for first, and begins to look for pieces of the next batch.  Returns the end of what it wrote; it may touch
 * WORDS_SLACK bytes more. */
ISA_DECLARE(char *, words_put2, (const struct word_table *w, struct word_batch *b, struct word_batch *ahead, char *o));
ISA_DECLARE(char *, words_put4, (const struct word_table *w, struct word_batch *b, struct word_batch *ahead, char *o));

#endif
