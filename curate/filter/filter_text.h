/* curate/filter/filter_text.h -- a text as the rules see it: what they share is computed once.
 *
 * Inside the filter only.  Each part is computed when a rule first asks for it.  A part
 * that fails (memory, limits) leaves the code in t->rc and the reason in t->err; the
 * numbers are then worth nothing.
 */
#ifndef CURATE_FILTER_TEXT_H
#define CURATE_FILTER_TEXT_H

#include "curate/stream/doc.h"
#include "curate/text/grams.h"
#include "curate/text/scan.h"
#include "curate/text/segment.h"

struct setting;
struct filter_lists;
struct bad_words;

struct filter_text {
    struct span text;
    struct err *err;
    int rc;
    unsigned have;
    struct doc *doc;
    const struct filter_lists *lists;

    /* of the preset that is asked */
    void *own;                 /* its state (curate/filter/filter_preset.h) */
    const struct setting *set; /* one a rule */
    bool all; /* signals are wanted whole, though the verdict may be clear before */

    size_t chars; /* code points */
    bool ascii;
    const struct lang *lang; /* see filter_lang */
    struct words words;      /* spaCy's, or ICU's */
    struct segmenter segmenter;
    struct grams grams;
    struct scan scan;
    struct words split; /* as str.split() cuts */
    struct grams split_grams;
    struct span *span; /* lines or paragraphs, for counting copies */
    size_t cap_span;
};

/* Begins another text, which is borrowed and must outlive its use; what was found in the last is forgotten. */
void filter_text_set(struct filter_text *t, struct span text);
void filter_text_free(struct filter_text *t);

/* A string field of the document; p is NULL if there is none. */
struct span filter_field(struct filter_text *t, const char *key);
/* The same of its object `source` (doc_source). */
struct span filter_source(struct filter_text *t, const char *key);
/* The language to go by: English unless --lang says another, or to take the document's
 * field; NULL: one that is not known. */
const struct lang *filter_lang(struct filter_text *t);
/* The next list of bad words for the document's language, from *b on, which starts with
 * NULL.  False if there is none. */
bool filter_next_bad_words(struct filter_text *t, const struct bad_words **b);
/* Words as spaCy's English tokenizer cuts them, or segment_split in other languages. */
int filter_split_words(struct filter_text *t, struct span text, struct words *ws);
/* Code points, words, numbered words of the text, computed at the first call. */
size_t filter_chars(struct filter_text *t);
size_t filter_words(struct filter_text *t);
const struct word_type *filter_types(struct filter_text *t, size_t *n);
/* The bytes by class, words as str.split() cuts, these numbered. */
const struct scan *filter_scan(struct filter_text *t);
const struct words *filter_split(struct filter_text *t);
const struct word_type *filter_split_types(struct filter_text *t, size_t *n);
/* n, which counts words or what stands in them, over the words as str.split() cuts: NaN if there are none. */
double filter_of_split(struct filter_text *t, size_t n);
/* Occurrences of what in s, none overlapping another. */
size_t filter_count(struct span s, const char *what);
/* Has it a letter (general category L)? */
bool filter_has_letter(struct span s);
/* the be to of and that have with */
bool filter_stop_word(struct span s);
/* Room for n spans in t->span; false: t->rc says why. */
bool filter_room(struct filter_text *t, size_t n);
/* True the first time it is called for this part (a bit) since *have was 0. */
bool filter_first(unsigned *have, unsigned part);
/* Notes a failure; returns 0 for convenience. */
double filter_fail(struct filter_text *t, int rc, const char *what);
#endif
