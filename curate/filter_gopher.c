/* The rules of Gopher (Rae et al. 2021, table A1 and section A.1.1) as datatrove 0.10
 * computes them: gopher_quality_filter.py, gopher_repetition_filter.py. */
#include <math.h>

#include "curate/filter_text.h"

/* ---- quality ---- */

static bool is_stop_word(struct span s)
{
    static const char *const list[] = {"the", "be", "to", "of", "and", "that", "have", "with"};

    for (size_t i = 0; s.n <= 4 && i < sizeof list / sizeof *list; i++)
        if (span_is(s, list[i]))
            return true;
    return false;
}

static void measure_words(struct filter_text *t)
{
    const uint16_t *class = chars_classes();
    const struct word_type *type;
    size_t n;

    if (!filter_first(t, PART_QUALITY))
        return;
    memset(&t->quality, 0, sizeof t->quality);
    type = filter_types(t, &n);
    for (size_t i = 0; i < n; i++, type++) {
        struct span s = {t->text.p + type->off, type->len};
        uint16_t all = CHAR_SYMBOL, any = 0;
        int len;

        for (size_t k = 0; k < s.n && (all || !any); k += (size_t)len) {
            uint16_t c = class[chars_decode(s.p + k, &len)];
            all &= c;
            any |= c & CHAR_LETTER;
        }
        if (!all) {
            t->quality.words += type->count;
            t->quality.chars += (size_t)type->count * type->chars;
        }
        t->quality.with_letter += any ? type->count : 0;
        t->quality.stop_words += is_stop_word(s);
    }
}

double gopher_words(struct filter_text *t, int arg)
{
    (void)arg;
    measure_words(t);
    return (double)t->quality.words;
}

double gopher_mean_length(struct filter_text *t, int arg)
{
    (void)arg;
    measure_words(t);
    return (double)t->quality.chars / (double)t->quality.words;
}

/* Occurrences of what in s, none overlapping another. */
static size_t count_text(struct span s, const char *what, size_t n)
{
    const char *p = s.p, *end = s.p + s.n;
    size_t count = 0;

    while ((size_t)(end - p) >= n && (p = memchr(p, what[0], (size_t)(end - p) - n + 1)) != NULL) {
        if (memcmp(p, what, n) == 0) {
            count++;
            p += n;
        } else {
            p++;
        }
    }
    return count;
}

double gopher_hashes(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)count_text(t->text, "#", 1) / (double)filter_words(t);
}

double gopher_ellipses(struct filter_text *t, int arg)
{
    size_t n = count_text(t->text, "...", 3);

    (void)arg;
    filter_chars(t);
    if (!t->ascii)
        n += count_text(t->text, "\xE2\x80\xA6", 3);
    return (double)n / (double)filter_words(t);
}

static bool starts(struct span s, const char *what, size_t n)
{
    return s.n >= n && memcmp(s.p, what, n) == 0;
}

static bool ends(struct span s, const char *what, size_t n)
{
    return s.n >= n && memcmp(s.p + s.n - n, what, n) == 0;
}

static void measure_lines(struct filter_text *t)
{
    struct span rest = t->text, line;

    if (!filter_first(t, PART_LINES))
        return;
    memset(&t->lines, 0, sizeof t->lines);
    while (chars_next_line(&rest, &line)) {
        struct span s = chars_strip(line);

        t->lines.lines++;
        t->lines.bullets += starts(s, "-", 1) || starts(s, "\xE2\x80\xA2", 3);
        t->lines.ellipses += ends(s, "...", 3) || ends(s, "\xE2\x80\xA6", 3);
    }
}

double gopher_bullet_lines(struct filter_text *t, int arg)
{
    (void)arg;
    measure_lines(t);
    return (double)t->lines.bullets / (double)t->lines.lines;
}

double gopher_ellipsis_lines(struct filter_text *t, int arg)
{
    (void)arg;
    measure_lines(t);
    return (double)t->lines.ellipses / (double)t->lines.lines;
}

double gopher_letter_words(struct filter_text *t, int arg)
{
    (void)arg;
    measure_words(t);
    return (double)t->quality.with_letter / (double)filter_words(t);
}

double gopher_stop_words(struct filter_text *t, int arg)
{
    (void)arg;
    measure_words(t);
    return (double)t->quality.stop_words;
}

/* ---- repetition ---- */

double gopher_empty(struct filter_text *t, int arg)
{
    (void)arg;
    return t->text.n == 0;
}

/* Cuts s at runs of at least `least` newlines, counts copies among the pieces. */
static void count_pieces(struct filter_text *t, struct span s, size_t least, struct copies *c)
{
    const char *p = s.p, *end = s.p + s.n, *from = s.p;
    size_t n = 0;

    memset(c, 0, sizeof *c);
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        const char *q = p;

        while (p < end && *p == '\n')
            p++;
        if ((size_t)(p - q) < least)
            continue;
        if (!filter_room(t, n + 2))
            return;
        t->span[n].p = from;
        t->span[n++].n = (size_t)(q - from);
        from = p;
    }
    if (!filter_room(t, n + 1))
        return;
    t->span[n].p = from;
    t->span[n++].n = (size_t)(end - from);
    if (grams_count_copies(&t->grams, t->span, n, c) < 0)
        filter_fail(t, ERR_NOMEM, "the lines of a text");
}

static double copies_ratio(struct filter_text *t, const struct copies *c, int by_chars)
{
    return by_chars ? (double)c->chars / (double)filter_chars(t) : (double)c->copies / (double)c->spans;
}

double gopher_paragraph_copies(struct filter_text *t, int by_chars)
{
    if (filter_first(t, PART_PARAGRAPHS))
        count_pieces(t, chars_strip(t->text), 2, &t->paragraphs);
    return copies_ratio(t, &t->paragraphs, by_chars);
}

double gopher_line_copies(struct filter_text *t, int by_chars)
{
    if (filter_first(t, PART_RUNS))
        count_pieces(t, t->text, 1, &t->runs);
    return copies_ratio(t, &t->runs, by_chars);
}

double gopher_top_gram(struct filter_text *t, int n)
{
    size_t n_types, chars = 0;
    const struct word_type *type = filter_types(t, &n_types);
    struct gram_top *top = &t->top[n - 2];

    if (filter_first(t, PART_TOP) && grams_find_top(&t->grams, t->words.n, t->top) < 0)
        return filter_fail(t, ERR_NOMEM, "the n-grams of a text");
    if (!top->count)
        return 0;
    for (int i = 0; i < n; i++)
        chars += type[t->grams.id[top->first + (size_t)i]].chars;
    chars += (size_t)n - 1; /* the spaces between */
    return (double)(chars * top->count) / (double)filter_chars(t);
}

double gopher_duplicate_grams(struct filter_text *t, int n)
{
    size_t n_types;

    filter_types(t, &n_types);
    if (filter_first(t, PART_DUPLICATES) &&
        grams_find_duplicates(&t->grams, &t->words, t->text, t->duplicate_chars) < 0)
        return filter_fail(t, ERR_NOMEM, "the n-grams of a text");
    return (double)t->duplicate_chars[n - 5] / (double)filter_chars(t);
}
