/* curate/filter_text.h -- a text as the rules see it: what they share is computed once.
 *
 * Inside the filter only.  Each part is computed when a rule first asks for it.  A part
 * that fails (memory, limits) leaves the code in t->rc and the reason in t->err; the
 * numbers are then worth nothing.
 */
#ifndef CURATE_FILTER_TEXT_H
#define CURATE_FILTER_TEXT_H

#include "curate/grams.h"

/* Settings of the rules that look at lines one by one; the rest are thresholds. */
struct filter_params {
    double short_line_length;   /* fineweb: a line of at most so many characters is short */
    double remove_citations;    /* c4; NAN: off */
    /* c4's rules on lines; NAN: off */
    double max_word_length, min_words, terminal_punct, javascript, policy, lorem_ipsum, curly_bracket;
    double min_sentences;
    bool all; /* signals are wanted whole, though the verdict may be clear before */
};

struct filter_text {
    /* set by filter_text_set */
    struct span text;
    const struct filter_params *params;
    struct err *err;
    int rc;
    unsigned have;

    size_t chars; /* code points */
    bool ascii;
    struct words words;
    struct grams grams;
    struct span *span; /* lines or paragraphs, for counting copies */
    size_t cap_span;

    struct {
        size_t words, chars, with_letter, stop_words;
    } quality; /* words and chars: of the words that are more than symbols */
    struct {
        size_t lines, bullets, ellipses;
    } lines; /* as splitlines() cuts */
    struct copies paragraphs, runs; /* cut at \n{2,} and at \n+ */
    struct gram_top top[3];
    size_t duplicate_chars[6];
    struct {
        size_t lines, terminal, shorts, newlines;
        struct copies copies;
    } fineweb;
    struct {
        size_t sentences, long_word, no_terminal, few_words, javascript, policy, lorem_ipsum, curly_bracket;
        struct buf out; /* the lines that stay */
        struct words words;
    } c4;
};

void filter_text_set(struct filter_text *t, struct span text);
void filter_text_free(struct filter_text *t);

/* A rule's signal; arg is the rule's own (the n of n-grams). */
typedef double filter_signal(struct filter_text *t, int arg);

/* Code points, words, numbered words of the text, computed at the first call. */
size_t filter_chars(struct filter_text *t);
size_t filter_words(struct filter_text *t);
const struct word_type *filter_types(struct filter_text *t, size_t *n);
/* Room for n spans in t->span; false: t->rc says why. */
bool filter_room(struct filter_text *t, size_t n);
/* True the first time it is called for this part of this text. */
enum { PART_CHARS = 1, PART_WORDS = 2, PART_TYPES = 4, PART_QUALITY = 8, PART_LINES = 16, PART_PARAGRAPHS = 32,
       PART_RUNS = 64, PART_TOP = 128, PART_DUPLICATES = 256, PART_FINEWEB = 512, PART_C4 = 1024 };
bool filter_first(struct filter_text *t, unsigned part);
/* Notes a failure; returns 0 for convenience. */
double filter_fail(struct filter_text *t, int rc, const char *what);

/* filter_gopher.c */
double gopher_words(struct filter_text *t, int arg);
double gopher_mean_length(struct filter_text *t, int arg);
double gopher_hashes(struct filter_text *t, int arg);
double gopher_ellipses(struct filter_text *t, int arg);
double gopher_bullet_lines(struct filter_text *t, int arg);
double gopher_ellipsis_lines(struct filter_text *t, int arg);
double gopher_letter_words(struct filter_text *t, int arg);
double gopher_stop_words(struct filter_text *t, int arg);
double gopher_empty(struct filter_text *t, int arg);
double gopher_paragraph_copies(struct filter_text *t, int arg); /* arg 1: by characters */
double gopher_line_copies(struct filter_text *t, int arg);
double gopher_top_gram(struct filter_text *t, int n);
double gopher_duplicate_grams(struct filter_text *t, int n);
/* filter_fineweb.c */
double fineweb_empty(struct filter_text *t, int arg);
double fineweb_terminal_lines(struct filter_text *t, int arg);
double fineweb_short_lines(struct filter_text *t, int arg);
double fineweb_line_copies(struct filter_text *t, int arg);
double fineweb_newlines(struct filter_text *t, int arg);
/* filter_c4.c: arg is the byte offset of a counter in t->c4 */
double c4_count(struct filter_text *t, int arg);
/* The text that is left; valid until t looks at another text. */
struct span c4_rewritten(struct filter_text *t);
#endif
