/* tokenize/train_words.h -- counted words as the cells that merges are found in: in memory, or in mapped
 * temporary files where they do not fit.
 */
#ifndef TOKENIZE_TRAIN_WORDS_H
#define TOKENIZE_TRAIN_WORDS_H

#include "tokenize/merges.h"
#include "tokenize/train_count.h"

struct train_words {
    struct merges_words m;
    struct spill_map cells, word, count, lists;
    bool on_disk;
    uint64_t memory;
    const uint32_t *byte_id; /* while words are filled in */
    uint64_t at, n;
};

/* Makes cells of all words; byte_id: the token of each byte.  ERR_LIMIT: more cells than fit.
 * Release with train_words_free in any case. */
int train_words_make(struct train_words *w, struct word_counts *c, const struct train_options *x,
                     const uint32_t *byte_id, struct err *e);
/* Keeps the memory that mapped files take within the bound: for merges_rules.rest. */
void train_words_rest(void *words);
void train_words_free(struct train_words *w);

#endif
