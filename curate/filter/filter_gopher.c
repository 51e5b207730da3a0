/* The rules of Gopher (Rae et al. 2021, table A1 and section A.1.1) as datatrove 0.10
 * computes them: gopher_quality_filter.py, gopher_repetition_filter.py. */
#include "curate/filter/filter_preset.h"

enum { PART_WORDS = 1, PART_LINES = 2, PART_PARAGRAPHS = 4, PART_RUNS = 8, PART_TOP = 16, PART_DUPLICATES = 32 };

struct quality {
    unsigned have;
    size_t words, chars; /* of the words that are more than symbols */
    size_t with_letter, stop_words;
    size_t lines, bullets, ellipses; /* lines as splitlines() cuts */
};
struct repetition {
    unsigned have;
    struct copies paragraphs, runs; /* cut at \n{2,} and at \n+ */
    struct gram_top top[3];
    size_t duplicate_chars[6];
};

/* ---- quality ---- */

static const struct quality *measure_words(struct filter_text *t)
{
    struct quality *q = t->own;
    const uint16_t *class = chars_classes();
    const struct lang *lang = filter_lang(t);
    const struct word_type *type;
    uint64_t stop_words = 0;
    size_t n;

    if (!filter_first(&q->have, PART_WORDS))
        return q;
    q->words = q->chars = q->with_letter = 0;
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
            q->words += type->count;
            q->chars += (size_t)type->count * type->chars;
        }
        q->with_letter += any ? type->count : 0;
        stop_words |= lang_stop_words(lang, s);
    }
    q->stop_words = (size_t)__builtin_popcountll(stop_words);
    return q;
}

static double words(struct filter_text *t, int arg)
{
    const struct quality *q = measure_words(t);

    (void)arg;
    return (double)q->words;
}

static double mean_length(struct filter_text *t, int arg)
{
    const struct quality *q = measure_words(t);

    (void)arg;
    return (double)q->chars / (double)q->words;
}

static double hashes(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)filter_count(t->text, "#") / (double)filter_words(t);
}

static double ellipses(struct filter_text *t, int arg)
{
    size_t n = filter_count(t->text, "...");

    (void)arg;
    filter_chars(t);
    if (!t->ascii)
        n += filter_count(t->text, "\xE2\x80\xA6");
    return (double)n / (double)filter_words(t);
}

static const struct quality *measure_lines(struct filter_text *t)
{
    struct quality *q = t->own;
    struct span rest = t->text, line;

    if (!filter_first(&q->have, PART_LINES))
        return q;
    q->lines = q->bullets = q->ellipses = 0;
    while (chars_next_line(&rest, &line)) {
        struct span s = chars_strip(line);

        q->lines++;
        q->bullets += span_starts(s, "-") || span_starts(s, "\xE2\x80\xA2");
        q->ellipses += span_ends(s, "...") || span_ends(s, "\xE2\x80\xA6");
    }
    return q;
}

static double bullet_lines(struct filter_text *t, int arg)
{
    const struct quality *q = measure_lines(t);

    (void)arg;
    return (double)q->bullets / (double)q->lines;
}

static double ellipsis_lines(struct filter_text *t, int arg)
{
    const struct quality *q = measure_lines(t);

    (void)arg;
    return (double)q->ellipses / (double)q->lines;
}

static double letter_words(struct filter_text *t, int arg)
{
    const struct quality *q = measure_words(t);

    (void)arg;
    return (double)q->with_letter / (double)filter_words(t);
}

static double stop_words(struct filter_text *t, int arg)
{
    const struct quality *q = measure_words(t);

    (void)arg;
    return (double)q->stop_words;
}

/* ---- repetition ---- */

static double empty(struct filter_text *t, int arg)
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

static double paragraph_copies(struct filter_text *t, int by_chars)
{
    struct repetition *r = t->own;

    if (filter_first(&r->have, PART_PARAGRAPHS))
        count_pieces(t, chars_strip(t->text), 2, &r->paragraphs);
    return copies_ratio(t, &r->paragraphs, by_chars);
}

static double line_copies(struct filter_text *t, int by_chars)
{
    struct repetition *r = t->own;

    if (filter_first(&r->have, PART_RUNS))
        count_pieces(t, t->text, 1, &r->runs);
    return copies_ratio(t, &r->runs, by_chars);
}

static double top_gram(struct filter_text *t, int n)
{
    struct repetition *r = t->own;
    struct gram_top *top = &r->top[n - 2];
    size_t n_types, len = (size_t)n;

    filter_types(t, &n_types);
    if (filter_first(&r->have, PART_TOP))
        for (size_t k = 2; k <= 4; k++) {
            if (grams_step(&t->grams, t->words.n, k) < 0)
                return filter_fail(t, ERR_NOMEM, "the n-grams of a text");
            r->top[k - 2] = grams_top(&t->grams, t->words.n, k);
        }
    if (!top->count)
        return 0;
    return (double)((grams_chars(&t->grams, top->first, len) + len - 1) * top->count) / (double)filter_chars(t);
}

static double duplicate_grams(struct filter_text *t, int n)
{
    struct repetition *r = t->own;
    size_t n_types;

    filter_types(t, &n_types);
    if (filter_first(&r->have, PART_DUPLICATES) &&
        grams_find_duplicates(&t->grams, &t->words, t->text, r->duplicate_chars) < 0)
        return filter_fail(t, ERR_NOMEM, "the n-grams of a text");
    return (double)r->duplicate_chars[n - 5] / (double)filter_chars(t);
}

static const struct rule quality[] = {
    {RULE("gopher_short_doc", words, 0, RULE_BELOW, 50, "words that are more than symbols")},
    {RULE("gopher_long_doc", words, 0, RULE_ABOVE, 100000, "words that are more than symbols")},
    {RULE("gopher_below_avg_threshold", mean_length, 0, RULE_BELOW, 3, "mean characters of a word")},
    {RULE("gopher_above_avg_threshold", mean_length, 0, RULE_ABOVE, 10, "mean characters of a word")},
    {RULE("gopher_too_many_hashes", hashes, 0, RULE_ABOVE, 0.1, "# signs / words")},
    {RULE("gopher_too_many_ellipsis", ellipses, 0, RULE_ABOVE, 0.1, "ellipses / words")},
    {RULE("gopher_too_many_bullets", bullet_lines, 0, RULE_ABOVE, 0.9, "share of lines that begin with a bullet")},
    {RULE("gopher_too_many_end_ellipsis", ellipsis_lines, 0, RULE_ABOVE, 0.3, "share of lines that end in an ellipsis")},
    {RULE("gopher_below_alpha_threshold", letter_words, 0, RULE_BELOW, 0.8, "share of words with a letter")},
    {RULE("gopher_enough_stop_words", stop_words, 0, RULE_BELOW, 2, "different stop words")},
    {0},
};

#define TOP(n, threshold) \
    {RULE("top_" #n "_gram", top_gram, n, RULE_ABOVE, threshold, "share of characters in the most frequent " #n "-gram")}
#define DUPLICATED(n, threshold) \
    {RULE("duplicated_" #n "_n_grams", duplicate_grams, n, RULE_ABOVE, threshold, \
          "share of characters in " #n "-grams that were there before")}
static const struct rule repetition[] = {
    {RULE("empty", empty, 0, RULE_ABOVE, 0, "1 if there is no text")},
    {RULE("dup_para_frac", paragraph_copies, 0, RULE_ABOVE, 0.3, "share of paragraphs that are copies")},
    {RULE("dup_para_char_frac", paragraph_copies, 1, RULE_ABOVE, 0.2, "share of characters in copies of paragraphs")},
    {RULE("dup_line_frac", line_copies, 0, RULE_ABOVE, 0.3, "share of lines that are copies")},
    {RULE("dup_line_char_frac", line_copies, 1, RULE_ABOVE, 0.2, "share of characters in copies of lines")},
    TOP(2, 0.2),
    TOP(3, 0.18),
    TOP(4, 0.16),
    DUPLICATED(5, 0.15),
    DUPLICATED(6, 0.14),
    DUPLICATED(7, 0.13),
    DUPLICATED(8, 0.12),
    DUPLICATED(9, 0.11),
    DUPLICATED(10, 0.10),
    {0},
};

const struct preset filter_gopher_quality = {
    .name = "gopher-quality",
    .source = "datatrove 0.10 GopherQualityFilter; Rae et al. 2021",
    .rules = quality,
    .size = sizeof(struct quality),
};
const struct preset filter_gopher_repetition = {
    .name = "gopher-repetition",
    .source = "datatrove 0.10 GopherRepetitionFilter; Rae et al. 2021",
    .rules = repetition,
    .size = sizeof(struct repetition),
};
