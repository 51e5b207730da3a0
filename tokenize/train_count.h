/* tokenize/train_count.h -- the distinct words of a corpus and how often each occurs, within a
 * bound of memory: what does not fit goes to temporary files.
 */
#ifndef TOKENIZE_TRAIN_COUNT_H
#define TOKENIZE_TRAIN_COUNT_H

#include "tokenize/tally.h"
#include "tokenize/train.h"
#include "tokenize/train_across.h"

struct word_counts {
    struct tally tally;      /* of all words, or */
    bool on_disk;
    struct spill words;      /* of all words, in parts, each in the order asked for */
    uint64_t part[TALLY_PARTS + 1];
    bool in_order;           /* word_counts_each is to give words in the order of the corpus */
    uint64_t n, bytes;       /* distinct words, and their bytes */
    uint64_t total;          /* the sum of count * length: < 2^63 */
};

/* Reads the files (none: standard input) and counts the words, or, across not NULL, the segments of the texts, whose bytes are
 * tokens.  Release with word_counts_free in any case. */
int word_counts_make(struct word_counts *w, char *const *paths, int n_paths, const struct train_across *across,
                     const struct train_options *x, struct train_result *r, struct err *e);
/* Puts the words on disk if they are in memory. */
int word_counts_move(struct word_counts *w, const struct train_options *x, struct err *e);
/* Takes one word, of kinds that are scored with a zero byte behind it if it ended its text; 0, or what ends the giving. */
typedef int word_counts_fn(void *arg, struct span word, uint64_t count, struct err *e);
/* Gives each word to fn. */
int word_counts_each(struct word_counts *w, word_counts_fn *fn, void *arg, struct err *e);
void word_counts_free(struct word_counts *w);

#endif
