/* curate/text/lang.h -- what the filters know of a language: 31 of the web's largest.
 *
 * The languages are English and thirty more that Common Crawl has most of and that
 * FineWeb-2 has been tuned for: all of them have stop words and thresholds there.
 */
#ifndef CURATE_LANG_H
#define CURATE_LANG_H

#include "base/err.h"
#include "base/mem.h"

/* FineWeb-2's thresholds, by the names of its configuration. */
enum lang_number {
    LANG_DUP_LINE_FRAC,
    LANG_DUP_5_GRAMS, LANG_DUP_6_GRAMS, LANG_DUP_7_GRAMS, LANG_DUP_8_GRAMS, LANG_DUP_9_GRAMS, LANG_DUP_10_GRAMS,
    LANG_LINE_PUNCT_THR,
    LANG_MAX_AVG_WORD_LENGTH, LANG_MIN_AVG_WORD_LENGTH, LANG_MAX_NON_ALPHA_WORDS_RATIO,
    LANG_NEW_LINE_RATIO,
    LANG_TOP_2_GRAMS, LANG_TOP_3_GRAMS, LANG_TOP_4_GRAMS,
    N_LANG_NUMBERS
};

enum {
    LANG_ELIDES = 1,       /* an apostrophe between letters ends a word: l'homme */
    LANG_UNSPACED = 2,     /* no spaces between words */
    LANG_NO_END_MARKS = 8, /* sentences end without a mark */
    LANG_ENDINGS = 4       /* its stop words are endings of words (Korean's particles) */
};

struct lang;

/* The language of a code of ISO 639-1 or 639-3, in small letters, whatever stands behind
 * a hyphen or underscore (pt-BR, deu_Latn); NULL if it is none of these. */
const struct lang *lang_find(struct span code);
const struct lang *lang_english(void);
/* Its code of ISO 639-1; the i-th language, NULL behind the last. */
const char *lang_code(const struct lang *l);
const struct lang *lang_at(int i);
/* LANG_ELIDES and the like; 0 for NULL. */
unsigned lang_traits(const struct lang *l);
/* NAN if there is none (English, or l is NULL). */
double lang_number(const struct lang *l, enum lang_number which);
/* Which stop words of the language word is: a bit for each in the list, 0 if none.  They
 * are compared as they stand, capitals and all. */
uint64_t lang_stop_words(const struct lang *l, struct span word);

/* The stop words of RedPajama-Data v2, of de, en, es, fr, it. */
bool lang_has_rpv2_stop_words(const struct lang *l);
bool lang_rpv2_stop_word(const struct lang *l, struct span word);
#endif
