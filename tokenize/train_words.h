/* tokenize/train_words.h -- counted words as the cells that merges are found in: in memory, or in a
 * temporary file if they do not fit.
 */
#ifndef TOKENIZE_TRAIN_WORDS_H
#define TOKENIZE_TRAIN_WORDS_H

#include "tokenize/merges.h"
#include "tokenize/train_count.h"
#include "tokenize/word_file.h"

struct train_words {
    struct merges_words m;
    struct word_file file;
    bool on_disk;            /* the words are in the file, and m is room for some */
    void *room;              /* what m's arrays lie in */
    uint64_t room_size;
    const uint32_t *byte_id; /* while words are filled in */
    struct buf word;
};

/* Makes cells of all words; byte_id: the token of each byte.  ERR_LIMIT: more cells than fit.
 * Release with train_words_free in any case. */
int train_words_make(struct train_words *w, struct word_counts *c, const struct train_options *x,
                     const uint32_t *byte_id, struct err *e);
void train_words_free(struct train_words *w);

#endif
