/* tokenize/ranks_later.h -- what is made when a text needs it, for that takes most of the time to open a tokenizer: the pairs of
 * rank files and of merges that are in the order of the tokens that they make, and Unigram's trie.  Most words are tokens, and
 * the first of those that are not are merged by their bytes, pieces of the first KiB looked up in the vocabulary.  So short
 * texts need none of it, nor does decoding.
 */
#ifndef TOKENIZE_RANKS_LATER_H
#define TOKENIZE_RANKS_LATER_H

#include "tokenize/bpe.h"
#include "tokenize/tokenizer.h"

struct ranks_later;

/* Says that t has ranks (bpe_set_bytes) and no pairs yet, or a Unigram model of different pieces and no trie of them: made is
 * NULL then; or n merges (bpe_set_bytes or bpe_begin) and no pairs.  made[i]: of the i-th the token that it makes, times 256,
 * and how many bytes its first one has; tokens in order.  No two tokens have the same bytes, none that merges join has more
 * than 255; both are there as far as a hash can tell, else deriving fails.  Takes made (free).  ERR_NOMEM. */
int ranks_later_begin(struct tokenizer *t, uint32_t n, uint32_t *made, struct err *e);
void ranks_later_free(struct ranks_later *x);

/* True if all that t needs (pairs, a trie) is there. */
bool ranks_derived(const struct tokenizer *t);
/* A word of 1 to BPE_SHORT bytes without any pairs: as bpe_encode_words (all its bytes have tokens) or chars_encode_words, but
 * much slower. */
void ranks_encode_word(const struct tokenizer *t, struct bpe_word *w);

#endif
