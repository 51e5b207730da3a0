/* curate/text/rpv2_text.h -- a text as RedPajama-Data v2 looks at it.
 *
 * Two forms.  The raw text: its lines (each with its newline) and its words, which are
 * runs of word characters (Python's \w: letters, numbers, the underscore) and runs of
 * what is neither that nor white space.  The normalised text: ASCII punctuation
 * removed, lower case, white space stripped and folded to single spaces, then NFD; its
 * words stand between the spaces.
 * Source: togethercomputer/RedPajama-Data, app/src (Apache-2.0): core/document.py,
 * utilities/text/normalization.py, core/quality_signals.
 */
#ifndef CURATE_RPV2_TEXT_H
#define CURATE_RPV2_TEXT_H

#include "curate/text/grams.h"

struct rpv2_line {
    size_t start, end; /* code points of the raw text, the newline within */
    size_t upper;      /* capital letters in it */
    size_t words, javascript, numeric, chars; /* of the normalised line; chars: code points */
    bool terminal, ellipsis, bullet;
};

struct rpv2_text {
    size_t chars; /* code points of the raw text */
    struct {
        size_t words, with_alpha, all_caps, stop_words; /* alpha: a to z, A to Z */
        size_t sentences, symbols, braces;
    } raw;
    struct rpv2_line *line;
    size_t n_lines, cap_lines;

    struct buf norm; /* the normalised text */
    size_t norm_chars;
    struct words words; /* of norm; only w, n, cap are used */
    uint16_t *u[2];     /* a line on its way through ICU */
    size_t cap_u;
};

/* Measures text (valid UTF-8, below 2^28 bytes, else ERR_LIMIT).  is_stop_word tells of a
 * raw word; NULL: none is.  Start with zeroes, free at the end.  ERR_NOMEM. */
int rpv2_text_set(struct rpv2_text *t, struct span text, bool (*is_stop_word)(const void *list, struct span word),
                  const void *list, struct err *e);
void rpv2_text_free(struct rpv2_text *t);
#endif
