/* tokenize/merges.h -- the heart of BPE training: from counted words to merges.
 *
 * Words lie in one array of cells, a token a cell at first.  A token that is made has its id in the
 * first and in the last cell of its two, so both neighbours of a place are found in one step, and joining
 * moves nothing.
 *
 * It goes in rounds.  A round looks after the most frequent pairs only: their counts in a table, their
 * places in lists, the best on top of a heap.  When none of them is left, all words are read again, which takes up the
 * cells that joining has left, for the most frequent pairs there are then.  So memory and time go to pairs that
 * will be joined soon, not to the millions of rare ones, and a word of any length costs what its joins cost.
 *
 * Words that do not fit into memory are in a file.  Then a round has not the words in memory but the runs of tokens in
 * them that its pairs hold together, each different run once, with the count of all its words; and it
 * is about as many pairs as their runs fit, always the most frequent ones.  Between two runs nothing is joined in this
 * round: a pair that comes to stand there occurs no more often than the one that was there, which is not among the
 * round's.  (A pair that join refuses may occur often and still is not among them: it too holds runs together.)  The
 * next reading of the file puts what runs have become in their places.  So the number of readings depends on the memory,
 * and nothing else does.
 *
 * All places of a pair are known when the later of its two tokens is made; after that they only
 * become fewer.  So no two pairs may make the same token.  Of bytes they do not: how the bytes of a token were joined
 * depends on nothing around them.  Where words that are tokens already are joined, join has to refuse the later pair.
 */
#ifndef TOKENIZE_MERGES_H
#define TOKENIZE_MERGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

#define MERGES_END UINT32_MAX           /* a cell between words */
#define MERGES_CELLS_MAX (UINT32_MAX - 1)

/* Owned by the caller.  Each word is its bytes' tokens, MERGES_END behind it; one MERGES_END is in
 * front of all. */
struct merges_words {
    uint32_t *cells;
    uint32_t *word;   /* that a cell belongs to */
    uint64_t *count;  /* of a word */
    uint32_t *lists;  /* room for 2 * n_cells, with a file for 2 * max_cells */
    uint64_t n_cells; /* <= MERGES_CELLS_MAX */
    uint64_t n_words;
    uint64_t max_listed; /* of the lists, to be used unless a single pair needs more */
    uint64_t *counters, n_counters; /* may lie in lists, with a file in all other arrays */
    /* with a file, room for what the round takes from it: */
    uint64_t max_cells, max_words, n_runs;
    uint32_t *runs;   /* max_cells: what is in the cells, as it was at first; n_runs of them */
    uint32_t *first, *now; /* max_words: where a word begins in runs, and in cells */
    uint32_t *slots;  /* merges_slots(max_words) */
};

/* A power of two, at least twice as much. */
static inline uint64_t merges_slots(uint64_t max_words)
{
    uint64_t n = 16;

    while (n < max_words * 2)
        n *= 2;
    return n;
}

struct word_file;

struct merges_rules {
    uint64_t min_frequency; /* pairs that occur less are not joined */
    uint32_t target;        /* tokens */
    uint32_t max_length;    /* tokens are shorter, in bytes (but two bytes are always joined); 0: no bound */
    /* Among pairs of the same count: false: the one of the lowest ids, as Hugging Face's
     * trainer; true: the one that comes first in the cells, as tiktoken's. */
    bool first_place;
    const uint32_t *lengths; /* for max_length, of the tokens there are at first; NULL: 1 each */
    uint64_t pairs;         /* to look after at a time, about; at least 2 */
    /* Makes the token of two: its id (*tokens counts new ones), or MERGES_END: they are not to be joined. */
    int (*join)(void *state, uint32_t left, uint32_t right, uint32_t *id, struct err *e);
    void *state;
};

struct merge {
    uint32_t left, right, id;
};

/* Joins pairs until there are rules->target tokens or no pair occurs often enough.  file: has all the words, and `words` is
 * room for some of them; NULL: `words` has them all.  found: struct merge, appended in order.  ERR_NOMEM,
 * ERR_IO, or what join gives. */
int merges_find(struct merges_words *words, struct word_file *file, const struct merges_rules *rules, uint32_t *tokens,
                struct buf *found, struct err *e);

#endif
