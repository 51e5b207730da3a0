/* tokenize/train_unigram.h -- Unigram as a kind of tokenizer that is trained: from counted words to tokens with scores.
 */
#ifndef TOKENIZE_TRAIN_UNIGRAM_H
#define TOKENIZE_TRAIN_UNIGRAM_H

#include "tokenize/train_symbols.h"
#include "tokenize/unigram_train.h"

/* Zero-initialise. */
struct train_unigram {
    struct unigram_train u;
    struct buf chars; /* struct train_char: those that have tokens in any case */
};

/* Takes what is to be known of the words.  Free in any case. */
int train_unigram_read(struct train_unigram *t, struct word_counts *words, const struct train_options *x, struct err *e);
/* Finds the pieces and gives them to the symbols, behind those that are there, the best first. */
int train_unigram_find(struct train_unigram *t, const struct train_options *x, struct train_symbols *s, struct err *e);
void train_unigram_free(struct train_unigram *t);

#endif
