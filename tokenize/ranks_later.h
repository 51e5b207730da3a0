/* tokenize/ranks_later.h -- pairs that are derived when they are needed, which takes most of the time to open a tokenizer: those
 * of rank files, and of merges whose tokens have their order.  Most words are tokens, and the first of those that are not
 * are merged by their bytes.  So a few texts need no pair, nor does decoding.
 */
#ifndef TOKENIZE_RANKS_LATER_H
#define TOKENIZE_RANKS_LATER_H

#include "tokenize/bpe.h"
#include "tokenize/tokenizer.h"

struct ranks_later;

/* Says that t has ranks (bpe_set_bytes), and no pairs yet.  ERR_NOMEM. */
int ranks_later_begin(struct tokenizer *t, struct err *e);
/* Says that t has n merges (bpe_set_bytes), and no pairs yet: the i-th makes the token first + i of a token that has its first
 * left[i] bytes and of one that has the others.  No two tokens have the same bytes; both tokens are there as far as a
 * hash can tell, else deriving fails.  Takes left (free).  ERR_NOMEM. */
int merges_later_begin(struct tokenizer *t, uint32_t n, uint32_t first, uint8_t *left, struct err *e);
void ranks_later_free(struct ranks_later *x);

/* True if t's pairs are there. */
bool ranks_derived(const struct tokenizer *t);
/* A word of 1 to BPE_SHORT bytes (bpe_has_bytes) without any pairs: as bpe_encode_words, but much slower. */
void ranks_encode_word(const struct tokenizer *t, struct bpe_word *w);

#endif
