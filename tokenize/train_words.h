/* tokenize/train_words.h -- counted words as the cells that merges are found in: in memory, or in a
 * temporary file if they do not fit.
 */
#ifndef TOKENIZE_TRAIN_WORDS_H
#define TOKENIZE_TRAIN_WORDS_H

#include "tokenize/merges.h"
#include "tokenize/train_symbols.h"
#include "tokenize/word_file.h"

struct train_words {
    struct merges_words m;
    struct word_file file;
    bool on_disk;            /* the words are in the file, and m is room for some */
    void *room;              /* what m's arrays lie in */
    uint64_t room_size;
    const struct train_symbols *symbols; /* while words are filled in */
    struct buf word;
};

/* How many pairs to look after at a time (merges_rules). */
uint64_t train_pairs(const struct train_options *x);
/* Makes cells of all words: their tokens by the symbols.  ERR_LIMIT: more cells than fit.
 * Release with train_words_free in any case. */
int train_words_make(struct train_words *w, struct word_counts *c, const struct train_options *x,
                     const struct train_symbols *symbols, struct err *e);
void train_words_free(struct train_words *w);

#endif
