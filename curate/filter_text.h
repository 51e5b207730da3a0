/* curate/filter_text.h -- a text as the rules see it: what they share is computed once.
 *
 * Inside the filter only.  Each part is computed when a rule first asks for it.  A part
 * that fails (memory, limits) leaves the code in t->rc and the reason in t->err; the
 * numbers are then worth nothing.
 */
#ifndef CURATE_FILTER_TEXT_H
#define CURATE_FILTER_TEXT_H

#include "curate/grams.h"
#include "curate/scan.h"

struct setting;

struct filter_text {
    struct span text;
    struct err *err;
    int rc;
    unsigned have;

    /* of the preset that is asked */
    void *own;                 /* its state (curate/filter_preset.h) */
    const struct setting *set; /* one a rule */
    bool all; /* signals are wanted whole, though the verdict may be clear before */

    size_t chars; /* code points */
    bool ascii;
    struct words words; /* spaCy's */
    struct grams grams;
    struct scan scan;
    struct words split; /* as str.split() cuts */
    struct grams split_grams;
    struct span *span; /* lines or paragraphs, for counting copies */
    size_t cap_span;
};

void filter_text_set(struct filter_text *t, struct span text);
void filter_text_free(struct filter_text *t);

/* Code points, words, numbered words of the text, computed at the first call. */
size_t filter_chars(struct filter_text *t);
size_t filter_words(struct filter_text *t);
const struct word_type *filter_types(struct filter_text *t, size_t *n);
/* The bytes by class, words as str.split() cuts, these numbered. */
const struct scan *filter_scan(struct filter_text *t);
const struct words *filter_split(struct filter_text *t);
const struct word_type *filter_split_types(struct filter_text *t, size_t *n);
/* the be to of and that have with */
bool filter_stop_word(struct span s);
/* Room for n spans in t->span; false: t->rc says why. */
bool filter_room(struct filter_text *t, size_t n);
/* True the first time it is called for this part (a bit) since *have was 0. */
bool filter_first(unsigned *have, unsigned part);
/* Notes a failure; returns 0 for convenience. */
double filter_fail(struct filter_text *t, int rc, const char *what);
#endif
