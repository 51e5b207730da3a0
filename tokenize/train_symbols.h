/* tokenize/train_symbols.h -- the tokens that training begins with, and those that it makes.
 */
#ifndef TOKENIZE_TRAIN_SYMBOLS_H
#define TOKENIZE_TRAIN_SYMBOLS_H

#include "tokenize/train.h"
#include "tokenize/train_count.h"
#include "tokenize/vocab.h"

/* Zero-initialise. */
struct train_symbols {
    const struct train_kind *kind;
    struct vocab vocab;    /* tokens as they stand in the file: of bytes mapped by format_map_bytes, special ones as they are */
    uint32_t byte_id[256]; /* not of kinds of characters */
    uint32_t *first, *inside; /* of kinds of characters: the token of a code point that begins a word, and of one that does not;
                               * MERGES_END: none */
    bool across;           /* words are segments: their bytes are tokens, uint32_t each (train_across.h) */
    uint32_t first_joined; /* special tokens and those of bytes have lower ids */
    struct buf scores;     /* Unigram: a float for each token from first_joined on */
    struct buf text;       /* scratch */
};

struct train_char {
    uint64_t count;
    uint32_t cp;
};

/* The characters of the words that make up the wanted share of all, the most frequent first, appended to `chars` as struct
 * train_char; U+0000, which SentencePiece refuses, and `never` are none of them. */
int train_chars_choose(struct word_counts *words, double coverage, uint32_t never, struct buf *chars, struct err *e);
/* ERR_ARG, for so many tokens that there have to be. */
int train_no_room(uint32_t tokens, uint32_t vocab_size, struct err *e);

/* Different special tokens of the options. */
uint32_t train_specials(const struct train_options *x);
/* Takes the first tokens: special ones, bytes, and of kinds of characters those of the words that make up x->coverage of all.
 * ERR_ARG: the vocabulary has no room for them.  Free in any case. */
int train_symbols_make(struct train_symbols *s, struct word_counts *words, const struct train_options *x, struct err *e);
/* Special tokens behind all others, where they are to be there (ties as tiktoken's). */
int train_symbols_end(struct train_symbols *s, const struct train_options *x, struct err *e);
void train_symbols_free(struct train_symbols *s);

/* The tokens of a word, which are no more than its bytes; MERGES_END stands for characters without one.  Their number. */
size_t train_symbols_of(const struct train_symbols *s, struct span word, uint32_t *to);
/* The score of a token, of kinds that are scored; 0 of those that are not pieces of text. */
float train_symbols_score(const struct train_symbols *s, uint32_t id);
/* True if there is such a token, and it is of characters or made of such. */
bool train_symbols_joins(const struct train_symbols *s, struct span token);
/* The token of two (merges_rules.join); state: the symbols.  The second has none for two that make a token there is. */
int train_symbols_join(void *state, uint32_t left, uint32_t right, uint32_t *id, struct err *e);
int train_symbols_join_new(void *state, uint32_t left, uint32_t right, uint32_t *id, struct err *e);

#endif
