/* tokenize/marks.h -- where text falls into words that no token joins: before U+2581, which stands for spaces, and between two
 * characters of ASCII that stand side by side in no token. */
#ifndef TOKENIZE_MARKS_H
#define TOKENIZE_MARKS_H

#include "base/isa.h"
#include "tokenize/vocab.h"

#define SPACE_MARK "\xe2\x96\x81" /* U+2581 */

/* Zero-initialise. */
struct word_marks {
    bool cuts;            /* text is cut at all */
    bool at_marks;        /* before marks */
    uint8_t crossed[256]; /* bytes such that some token has one, then a mark */
    /* Characters of ASCII are of eight kinds, a bit each; which kinds some token has behind a character. */
    uint8_t kind[128], joined[128];
};

/* at_marks: text may be cut before marks; in_ascii: within ASCII, too. */
void word_marks_find(struct word_marks *m, const struct vocab *v, bool at_marks, bool in_ascii);
/* The same for one token of two bytes or more, when all of m is there but crossed and joined, or some of these. */
ISA_DECLARE(void, word_marks_note, (struct word_marks *m, const uint8_t *p, size_t n));
/* The ends of words of p[0..n), of which one begins at *at < n, at most max > 0; their number.  *at is the last of them. */
ISA_DECLARE(size_t, word_marks_ends, (const struct word_marks *m, const uint8_t *p, size_t n, size_t *at, uint32_t *ends,
                                      size_t max));

#endif
