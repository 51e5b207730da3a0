/* tokenize/split_bytes.h -- the steps behind ByteLevel, which see each byte as a character of its own and so may cut within one
 * of the text (Falcon's digits: the last byte of "½" is a number to them).
 *
 * A table of those characters, which pieces are cut by byte by byte.
 */
#ifndef TOKENIZE_SPLIT_BYTES_H
#define TOKENIZE_SPLIT_BYTES_H

#include "tokenize/split_table.h"

struct split_bytes;

/* As split_table_make. */
int split_bytes_make(struct split_bytes **b, const struct split_step *steps, size_t n);
void split_bytes_free(struct split_bytes *b);

/* Where cutting stands; zero-initialise. */
struct split_bytes_state {
    uint32_t at;    /* the byte to be read next */
    uint32_t quiet; /* up to there is no byte that pieces are cut for */
    bool begun;     /* `at` is within a piece, and this is the state there: */
    uint8_t state;
};

/* Cuts the pieces that end at wide[0..n), one after another, of which the first begins at s->at, or is begun: writes ends as
 * far as there is room, most >= 3, and their number to *written.  Returns how many pieces are done. */
size_t split_bytes_cut(const struct split_bytes *b, const uint8_t *text, const uint32_t *wide, size_t n,
                       struct split_bytes_state *s, uint32_t *ends, size_t most, size_t *written);

#endif
