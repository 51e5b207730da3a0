/* curate/text/segment.h -- words of any language: Unicode's text segmentation (UAX 29).
 *
 * ICU's word breaks, with its dictionaries for Thai, Lao, Khmer, Burmese, Chinese and
 * Japanese.  Every piece that is more than white space is a word, punctuation too, a
 * mark at a time, as the tokenizers of datatrove have it.  In languages that elide (French,
 * Italian) an apostrophe between two letters ends a word.
 */
#ifndef CURATE_SEGMENT_H
#define CURATE_SEGMENT_H

#include "curate/text/lang.h"
#include "curate/text/words.h"

/* One a thread; start with zeroes. */
struct segmenter {
    void *breaks; /* UBreakIterator */
    uint16_t *u;
    size_t cap_u;
};

/* Cuts text (valid UTF-8, below 2^28 bytes, else ERR_LIMIT) into ws->w[0..n).  l may be
 * NULL.  ERR_NOMEM; ERR_UNSUPPORTED: ICU has no data. */
int segment_split(struct segmenter *s, const struct lang *l, struct span text, struct words *ws, struct err *e);
void segment_free(struct segmenter *s);
#endif
