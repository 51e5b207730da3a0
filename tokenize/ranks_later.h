/* tokenize/ranks_later.h -- what is made when a text needs it, for that takes most of the time to open a tokenizer: the pairs of
 * rank files, of merges and of SentencePiece's models, and Unigram's trie.  Most words are tokens, and
 * the first of those that are not are merged by their bytes, pieces of the first KiB looked up in the vocabulary.  So short
 * texts need none of it, nor does decoding.
 */
#ifndef TOKENIZE_RANKS_LATER_H
#define TOKENIZE_RANKS_LATER_H

#include "tokenize/bpe.h"
#include "tokenize/tokenizer.h"

struct ranks_later;

/* Says that t has ranks (bpe_set_bytes) and no pairs yet, or a SentencePiece model whose symbols and pairs chars_make is to make,
 * or a Unigram model of different pieces and no trie of them: made is NULL then; or n merges (bpe_set_bytes or bpe_begin) and no
 * pairs.  made[i]: of the i-th the token that it makes, times 256, and how many bytes its first one has; tokens in order, no
 * two merges the same.  rank[i]: its rank; NULL: i.  No two tokens have the same bytes, none that merges join has more than 255;
 * both are there as far as a hash can tell, else deriving fails.  Takes made and rank (free).  ERR_NOMEM. */
int ranks_later_begin(struct tokenizer *t, uint32_t n, uint32_t *made, uint32_t *rank, struct err *e);
void ranks_later_free(struct ranks_later *x);

/* True if all that t needs (pairs, a trie) is there. */
bool ranks_derived(const struct tokenizer *t);
/* A word of 1 to BPE_SHORT bytes without any pairs: as bpe_encode_words (all its bytes have tokens) or chars_encode_words, but
 * much slower. */
void ranks_encode_word(const struct tokenizer *t, struct bpe_word *w);

/* Merges of which it is not known yet whether they can wait so.  Zero-initialise. */
enum { MERGE_NOTES_AHEAD = 32 };
struct merge_notes {
    struct buf made, joined; /* as above; the bytes of a token */
    uint32_t last;           /* what the last one makes */
    bool unordered, twins;   /* the tokens made; a pair came twice */
    uint64_t lengths[4];     /* bits: bytes of first ones of the last token's merges */
    uint64_t asked[MERGE_NOTES_AHEAD][2];
};
/* The next merge, of two tokens by their bytes: 1; 0: they cannot wait, be it that a token is missing; ERR_NOMEM. */
int merge_notes_put(struct merge_notes *m, const struct tokenizer *t, struct span left, struct span right, struct err *e);
/* These are all: 1, ranks_later_begin was called; 0: they cannot wait; ERR_NOMEM. */
int merge_notes_end(struct merge_notes *m, struct tokenizer *t, struct err *e);
void merge_notes_free(struct merge_notes *m);

#endif
