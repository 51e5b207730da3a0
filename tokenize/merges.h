/* tokenize/merges.h -- the heart of BPE training: from counted words to merges.
 *
 * Words lie in one array of cells, a cell for each byte.  A token has its id in its first and
 * in its last cell, so both neighbours of a place are found in one step, and joining moves
 * nothing.
 *
 * Only pairs that occur at least `bar` times are looked after: their counts in a table, their
 * places in lists, the most frequent on top of a heap.  When none is left, all words are read
 * again with a lower bar.  So memory and time go to pairs that will be joined soon, not to
 * the millions of rare ones, and a word of any length costs what its joins cost.
 *
 * All places of a pair are known when the later of its two tokens is made; after that they only
 * become fewer.  No two pairs make the same token: how the bytes of a token were joined depends
 * on nothing around them.
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
    uint32_t *lists;  /* room for 3 * n_cells */
    uint64_t n_cells; /* <= MERGES_CELLS_MAX */
};

struct merges_rules {
    uint64_t min_frequency; /* pairs that occur less are not joined */
    uint32_t target;        /* tokens */
    uint32_t max_length;    /* tokens are shorter, in bytes (but two bytes are always joined); 0: no bound */
    /* Among pairs of the same count: false: the one of the lowest ids, as Hugging Face's
     * trainer; true: the one that comes first in the cells, as tiktoken's. */
    bool first_place;
    uint64_t pairs;         /* to look after at a time, about; at least 1000 */
    /* Makes the token of two: its id (*tokens counts new ones). */
    int (*join)(void *state, uint32_t left, uint32_t right, uint32_t *id, struct err *e);
    void *state;
    void (*rest)(void *rest_state); /* called between small pieces of work; may be NULL */
    void *rest_state;
};

struct merge {
    uint32_t left, right, id;
};

/* Joins pairs until there are rules->target tokens or no pair occurs often enough.  found: struct
 * merge, appended in order.  ERR_NOMEM, or what join gives. */
int merges_find(struct merges_words *words, const struct merges_rules *rules, uint32_t *tokens, struct buf *found,
                struct err *e);

#endif
