/* tokenize/marks.h -- where text with U+2581 for spaces falls into words that no token joins. */
#ifndef TOKENIZE_MARKS_H
#define TOKENIZE_MARKS_H

#include "tokenize/vocab.h"

#define SPACE_MARK "\xe2\x96\x81" /* U+2581 */

/* Zero-initialise. */
struct word_marks {
    bool cuts;            /* there is something to cut by; set by the owner */
    uint8_t crossed[256]; /* bytes such that some token has one, then a mark */
};

void word_marks_find(struct word_marks *m, const struct vocab *v);
/* The length of the word at p (n > 0): up to the next mark that is not behind another one or a
 * byte that is crossed. */
size_t word_marks_length(const struct word_marks *m, const uint8_t *p, size_t n);

#endif
