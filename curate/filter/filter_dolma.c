/* The Gopher and C4 taggers of dolma 1.2 (taggers/gopher.py, taggers/c4.py) with the
 * thresholds of Dolma v1.5 (configs/dolma-v1_5/mixing/cc-head.yaml). */
#include "curate/text/phrase.h"
#include "curate/filter/filter_preset.h"

enum { PART_WORDS = 1, PART_LINES = 2, PART_GRAMS = 4, PART_C4 = 8 };
enum { NO_ENDING, TOO_FEW, IGNORE_EMPTY }; /* the rules that others look at come first */

struct dolma {
    unsigned have;
    struct {
        size_t chars, symbols, with_letter, required, javascript;
        size_t of_length[64]; /* words of so many characters, the last: or more */
    } word;
    struct {
        size_t bullets, ellipses;
        struct copies copies;
    } line;
    double top[3];        /* n = 2, 3, 4 */
    double duplicates[6]; /* n = 5 to 10 */
    struct {
        size_t lines, no_ending, too_few;
        struct buf out; /* the lines that stay */
    } c4;
};

/* ---- words ---- */

static struct dolma *measure_words(struct filter_text *t)
{
    struct dolma *d = t->own;
    const struct word_type *w;
    size_t n;

    if (!filter_first(&d->have, PART_WORDS))
        return d;
    memset(&d->word, 0, sizeof d->word);
    w = filter_split_types(t, &n);
    for (size_t i = 0; i < n; i++, w++) {
        struct span s = {t->text.p + w->off, w->len};

        d->word.chars += (size_t)w->count * w->chars;
        d->word.of_length[w->chars < 63 ? w->chars : 63] += w->count;
        if (filter_has_letter(s)) {
            d->word.with_letter += w->count;
            d->word.required += filter_stop_word(s) ? w->count : 0;
            d->word.javascript += s.n == 10 && phrase_in(s, "javascript");
        }
        if (memchr(s.p, '#', s.n) || (w->len > w->chars && memmem(s.p, s.n, "\xE2\x80\xA6", 3)))
            d->word.symbols += w->count;
    }
    return d;
}

static double of_words(struct filter_text *t, size_t n) { return n ? filter_of_split(t, n) : 0; }

static double word_count(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)filter_split(t)->n;
}

/* The length of the word that would be number `at` if they were sorted by length. */
static size_t length_at(struct filter_text *t, const struct dolma *d, size_t at)
{
    size_t n_types, low = 63, high = t->text.n;
    const struct word_type *w = filter_split_types(t, &n_types);

    for (size_t len = 0; len < 63; at -= d->word.of_length[len++])
        if (at < d->word.of_length[len])
            return len;
    while (low < high) { /* the least length that so many of the long words do not exceed */
        size_t mid = low + (high - low) / 2, n = 0;

        for (size_t i = 0; i < n_types; i++)
            n += w[i].chars >= 63 && w[i].chars <= mid ? w[i].count : 0;
        if (n > at)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

static double median_length(struct filter_text *t, int arg)
{
    const struct dolma *d = measure_words(t);
    size_t n = filter_split(t)->n;

    (void)arg;
    return n ? (double)(length_at(t, d, (n - 1) / 2) + length_at(t, d, n / 2)) / 2 : 0;
}

static double symbols(struct filter_text *t, int arg)
{
    (void)arg;
    return of_words(t, measure_words(t)->word.symbols);
}

static double letter_words(struct filter_text *t, int arg)
{
    (void)arg;
    return of_words(t, measure_words(t)->word.with_letter);
}

static double required_words(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)measure_words(t)->word.required;
}

static double characters(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)filter_scan(t)->chars;
}

/* ---- lines ---- */

static const struct dolma *measure_lines(struct filter_text *t)
{
    bool runs = !isnan(t->set[IGNORE_EMPTY].threshold); /* of newlines separate lines */
    struct dolma *d = t->own;
    const char *p = t->text.p, *end = t->text.p + t->text.n;
    size_t n = 0;

    if (!filter_first(&d->have, PART_LINES))
        return d;
    memset(&d->line, 0, sizeof d->line);
    for (bool more = true; more; n++) {
        const char *q = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        struct span s = {p, (size_t)((q ? q : end) - p)};

        more = q != NULL;
        for (p = more ? q + 1 : end; runs && p < end && *p == '\n'; p++)
            ;
        if (!filter_room(t, n + 1))
            return d;
        t->span[n] = s;
        d->line.bullets += s.n && (s.p[0] == '*' || s.p[0] == '-');
        d->line.ellipses += s.n >= 3 && memcmp(s.p + s.n - 3, "\xE2\x80\xA6", 3) == 0;
    }
    if (grams_count_copies(&t->split_grams, t->span, n, &d->line.copies) < 0)
        filter_fail(t, ERR_NOMEM, "the lines of a text");
    return d;
}

static double bullet_lines(struct filter_text *t, int arg)
{
    const struct dolma *d = measure_lines(t);

    (void)arg;
    return (double)d->line.bullets / (double)d->line.copies.spans;
}

static double ellipsis_lines(struct filter_text *t, int arg)
{
    const struct dolma *d = measure_lines(t);

    (void)arg;
    return (double)d->line.ellipses / (double)d->line.copies.spans;
}

/* ---- repetition ---- */

static double of_chars(size_t n, size_t chars) { return (double)n / (double)(chars ? chars : 1); }

static double duplicate_lines(struct filter_text *t, int by_chars)
{
    const struct copies *c = &measure_lines(t)->line.copies;

    return by_chars ? of_chars(c->all_chars, measure_words(t)->word.chars) : (double)c->all / (double)c->spans;
}

static const struct dolma *measure_grams(struct filter_text *t)
{
    struct dolma *d = t->own;
    struct grams *g = &t->split_grams;
    size_t chars = measure_words(t)->word.chars, words = filter_split(t)->n, all = chars;

    if (!filter_first(&d->have, PART_GRAMS))
        return d;
    for (size_t n = 2; n <= 10 && n <= words; n++) {
        struct gram_top top;
        size_t repeated = 0;

        if (grams_step(g, words, n) < 0) {
            filter_fail(t, ERR_NOMEM, "the n-grams of a text");
            break;
        }
        /* characters of all n-grams: each is one of n - 1 words and the word behind it */
        all += chars - grams_chars(g, 0, n - 1) - grams_chars(g, words - (n - 1), n - 1);
        if (n <= 4) {
            top = grams_top(g, words, n);
            d->top[n - 2] = of_chars(top.count * grams_chars(g, top.first, n), chars);
            continue;
        }
        for (size_t i = 0; i < g->n_places; i++)
            repeated += grams_chars(g, g->place[i], n);
        d->duplicates[n - 5] = of_chars(repeated, all);
    }
    return d;
}

static double top_gram(struct filter_text *t, int n)
{
    return filter_split(t)->n < (size_t)n ? NAN : measure_grams(t)->top[n - 2];
}

static double duplicate_grams(struct filter_text *t, int n)
{
    return filter_split(t)->n < (size_t)n ? NAN : measure_grams(t)->duplicates[n - 5];
}

/* ---- c4 ---- */

static bool strips(struct filter_text *t, int rule)
{
    return !isnan(t->set[rule].threshold) && t->set[rule].action == ACTION_STRIP;
}

static const struct dolma *judge_lines(struct filter_text *t)
{
    bool strip_unended = strips(t, NO_ENDING), strip_few = strips(t, TOO_FEW);
    double least = isnan(t->set[TOO_FEW].threshold) ? 3 : t->set[TOO_FEW].threshold;
    struct dolma *d = t->own;
    const struct words *ws = filter_split(t);
    const char *p = t->text.p, *end = t->text.p + t->text.n;
    size_t k = 0;

    if (!filter_first(&d->have, PART_C4))
        return d;
    d->c4.lines = d->c4.no_ending = d->c4.too_few = 0;
    buf_clear(&d->c4.out);
    for (bool more = true; more;) {
        const char *q = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        struct span line = {p, (size_t)((q ? q + 1 : end) - p)};
        size_t first = k;
        bool unended, few;

        more = q != NULL;
        p += line.n;
        while (k < ws->n && ws->w[k].off < (size_t)(p - t->text.p))
            k++;
        unended = k == first || !memchr(".?!\"", t->text.p[ws->w[k - 1].off + ws->w[k - 1].len - 1], 4);
        few = (double)(k - first) < least;
        d->c4.lines++;
        d->c4.no_ending += unended;
        d->c4.too_few += few;
        if ((strip_unended || strip_few) && !(unended && strip_unended) && !(few && strip_few) &&
            buf_put_span(&d->c4.out, line) < 0)
            filter_fail(t, ERR_NOMEM, "a text");
    }
    return d;
}

static double unended_lines(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)judge_lines(t)->c4.no_ending;
}

static double short_lines(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)judge_lines(t)->c4.too_few;
}

static double line_count(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)judge_lines(t)->c4.lines;
}

static double javascript(struct filter_text *t, int arg)
{
    (void)arg;
    return measure_words(t)->word.javascript > 0;
}

static double lorem_ipsum(struct filter_text *t, int arg)
{
    (void)arg;
    return phrase_hints(t->text) & PHRASE_LOREM && phrase_in(t->text, "lorem ipsum");
}

static double curly_brace(struct filter_text *t, int arg)
{
    (void)arg;
    return t->text.n && memchr(t->text.p, '{', t->text.n);
}

static struct span rewritten(struct filter_text *t)
{
    return strips(t, NO_ENDING) || strips(t, TOO_FEW) ? buf_span(&judge_lines(t)->c4.out) : t->text;
}

static void release(void *own) { buf_free(&((struct dolma *)own)->c4.out); }

#define OFF .off = true
#define TOP(n, threshold) \
    {RULE("fraction_of_characters_in_most_common_" #n "grams", top_gram, n, RULE_ABOVE, threshold, \
          "share of characters in the most frequent " #n "-gram")}
#define DUPLICATE(n, threshold) \
    {RULE("fraction_of_characters_in_duplicate_" #n "grams", duplicate_grams, n, RULE_ABOVE, threshold, \
          "share of characters in " #n "-grams that occur twice")}
static const struct rule rules[] = {
    [NO_ENDING] = {RULE("lines_with_no_ending_punctuation", unended_lines, 0, RULE_ABOVE, 0,
                        "lines without an end mark"), OFF, .lines = true,
                   .action = ACTION_STRIP},
    [TOO_FEW] = {RULE("lines_with_too_few_words", short_lines, 0, RULE_BELOW, 3, "lines of too few words"), OFF, .lines = true,
                 .action = ACTION_STRIP},
    [IGNORE_EMPTY] = {RULE("ignore_empty_lines", NULL, 0, RULE_SETTING, 1, "whether empty lines are passed over"), OFF},
    {RULE("word_count", word_count, 0, RULE_BELOW, 50, "words")},
    {RULE("word_count_max", word_count, 0, RULE_ABOVE, 100000, "words"), .key = "word_count"},
    {RULE("median_word_length", median_length, 0, RULE_BELOW, 3, "median characters of a word")},
    {RULE("median_word_length_max", median_length, 0, RULE_ABOVE, 10,
          "median characters of a word"), .key = "median_word_length"},
    {RULE("symbol_to_word_ratio", symbols, 0, RULE_ABOVE, 0.1, "words with # or an ellipsis / words")},
    {RULE("fraction_of_words_with_alpha_character", letter_words, 0, RULE_BELOW, 0.8, "share of words with a letter")},
    {RULE("required_word_count", required_words, 0, RULE_BELOW, 2, "occurrences of the, be, to, of, and, that, have, with")},
    {RULE("fraction_of_lines_starting_with_bullet_point", bullet_lines, 0, RULE_ABOVE, 0.9,
          "share of lines that begin with a bullet")},
    {RULE("fraction_of_lines_ending_with_ellipsis", ellipsis_lines, 0, RULE_ABOVE, 0.3,
          "share of lines that end in an ellipsis")},
    {RULE("fraction_of_duplicate_lines", duplicate_lines, 0, RULE_ABOVE, 0.3, "share of lines that have an equal")},
    {RULE("fraction_of_characters_in_duplicate_lines", duplicate_lines, 1, RULE_ABOVE, 0.3,
          "characters of lines that have an equal / those of words")},
    TOP(2, 0.2),
    TOP(3, 0.18),
    TOP(4, 0.16),
    DUPLICATE(5, 0.15),
    DUPLICATE(6, 0.14),
    DUPLICATE(7, 0.13),
    DUPLICATE(8, 0.12),
    DUPLICATE(9, 0.11),
    DUPLICATE(10, 0.10),
    {RULE("character_count", characters, 0, RULE_SIGNAL, 0, "characters")},
    {RULE("has_javascript", javascript, 0, RULE_ABOVE, 0, "1 if the text has the word javascript"), OFF},
    {RULE("has_lorem_ipsum", lorem_ipsum, 0, RULE_ABOVE, 0, "1 if the text has lorem ipsum"), OFF},
    {RULE("has_curly_brace", curly_brace, 0, RULE_ABOVE, 0, "1 if the text has a curly bracket"), OFF},
    {RULE("line_count", line_count, 0, RULE_SIGNAL, 0, "lines")},
    {0},
};

const struct preset filter_dolma = {
    .name = "dolma",
    .source = "dolma 1.2 taggers gopher_v1, c4_v1; Dolma v1.5 mixing/cc-head.yaml",
    .rules = rules,
    .size = sizeof(struct dolma),
    .free = release,
    .rewritten = rewritten,
    .rounded = true,
};
