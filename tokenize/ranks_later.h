/* tokenize/ranks_later.h -- rank files: their pairs, which take most of the time to open one, are derived when they are
 * needed.  Most words are tokens, and the first of those that are not are merged by their bytes.  So a few texts need no
 * pair, nor does decoding.
 */
#ifndef TOKENIZE_RANKS_LATER_H
#define TOKENIZE_RANKS_LATER_H

#include "tokenize/bpe.h"
#include "tokenize/tokenizer.h"

struct ranks_later;

/* Says that t has ranks (bpe_set_bytes), and no pairs yet.  ERR_NOMEM. */
int ranks_later_begin(struct tokenizer *t, struct err *e);
void ranks_later_free(struct ranks_later *x);

/* True if t's pairs are there: always, but for rank files. */
bool ranks_derived(const struct tokenizer *t);
/* A word of 1 to BPE_SHORT bytes (bpe_has_bytes) without any pairs: as bpe_encode_words, but much slower. */
void ranks_encode_word(const struct bpe *b, const struct vocab *v, struct bpe_word *w);

#endif
