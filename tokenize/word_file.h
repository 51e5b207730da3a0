/* tokenize/word_file.h -- counted words that do not fit into memory, in a temporary file: read in blocks, and
 * written anew in the course of a reading when words have changed.
 */
#ifndef TOKENIZE_WORD_FILE_H
#define TOKENIZE_WORD_FILE_H

#include "base/spill.h"
#include "tokenize/merges.h"

/* Changes the n tokens of a word, which become no more; their number then. */
typedef uint64_t word_file_renew(void *arg, uint32_t *tokens, uint64_t n);

struct word_file {
    const char *dir;
    struct spill words, fresh; /* fresh: written while words is read */
    struct spill_reader reader;
    struct merges_words block;
    size_t cell_room, owner_room, count_room; /* of the block */
    struct buf out;
    word_file_renew *renew; /* of this reading */
    void *arg;
};

/* dir: for temporary files; NULL: $TMPDIR or /tmp; it has to stay.  Close it in any case. */
int word_file_open(struct word_file *f, const char *dir, struct err *e);
/* Appends a word.  One of a single token has no pairs and is left out. */
int word_file_put(struct word_file *f, const uint32_t *tokens, size_t n, uint64_t count, struct err *e);
/* After the last word. */
int word_file_end(struct word_file *f, struct err *e);
/* Goes to the front.  renew: NULL, or changes each word in the reading that follows, for good; then it has to be read to
 * its end. */
int word_file_rewind(struct word_file *f, word_file_renew *renew, void *arg, struct err *e);
/* The next words, each token in one cell.  1; 0: the end. */
int word_file_next(struct word_file *f, const struct merges_words **block, struct err *e);
void word_file_close(struct word_file *f);

#endif
