/* tokenize/merges.h -- the heart of BPE training: from counted words to merges. */
#ifndef TOKENIZE_MERGES_H
#define TOKENIZE_MERGES_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

/* Words as symbols: word w is symbols[start[w] .. start[w + 1] - 1]; they shrink as
 * pairs are joined.  Owned by the caller. */
struct merges_words {
    uint32_t *symbols;
    uint64_t *start; /* n + 1 */
    int64_t *count;
    uint32_t n; /* < 2^32 - 1 */
};

struct merge {
    uint32_t left, right, id;
};

/* Joins pairs until there are `target` tokens or no pair occurs often enough.  join says
 * what id two tokens become: a new one (*tokens counts them), or that of a token which
 * has the same text.  found: struct merge, appended in order, the same pair perhaps
 * twice: then the later one counts.  ERR_NOMEM. */
int merges_find(struct merges_words *words, uint64_t min_frequency, uint32_t target, uint32_t *tokens,
                int (*join)(void *state, uint32_t left, uint32_t right, uint32_t *id), void *state,
                struct buf *found, struct err *e);

#endif
