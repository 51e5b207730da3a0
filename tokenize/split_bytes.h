/* tokenize/split_bytes.h -- the steps behind ByteLevel, which see each byte as a character of its own and so may cut within one
 * of the text (Falcon's digits: the last byte of "½" is a number to them).
 *
 * A table of those characters, which pieces are cut by byte by byte.
 */
#ifndef TOKENIZE_SPLIT_BYTES_H
#define TOKENIZE_SPLIT_BYTES_H

#include "tokenize/split_table.h"

struct split_bytes;

/* 1; 0: beyond such a table (what split_table_make refuses, and marks); ERR_NOMEM. */
int split_bytes_make(struct split_bytes **b, const struct split_step *steps, size_t n);
void split_bytes_free(struct split_bytes *b);

/* Where cutting stands; zero-initialise. */
struct split_bytes_state {
    uint32_t at; /* the byte to be read next */
    bool begun;  /* `at` is within a piece, and this is the state there: */
    uint8_t state;
};

/* Writes ends of what the piece text[s->at..end) is cut to, most >= 3; their number.  s->at is `end` when the piece is done. */
size_t split_bytes_cut(const struct split_bytes *b, const uint8_t *text, uint32_t end, struct split_bytes_state *s, uint32_t *ends,
                       size_t most);

#endif
