/* The 28 English heuristics of NeMo Curator 1.4, in the order of its English pipeline
 * (heuristic_filter_english_pipeline.yaml): nemo_curator/stages/text/filters/heuristic/. */
#include <unicode/uchar.h>

#include "base/ascii.h"
#include "curate/text/phrase.h"
#include "curate/filter/filter_preset.h"

enum { PART_LINES = 1, PART_PARAGRAPHS = 2, PART_WORDS = 4, PART_GRAMS = 8, PART_URLS = 16 };
enum { COMMON_WORDS = 15 }; /* the number of this rule, which stops counting at its threshold */

struct nemo {
    unsigned have;
    struct {
        size_t lines, bullets, endless, ellipses, chars;
        struct copies copies;
    } line; /* cut at \n, those of white space alone left out */
    struct {
        size_t boilerplate, chars;
        bool lorem;
        struct copies copies;
    } paragraph; /* cut at \n\n */
    struct {
        size_t chars, longest, with_letter, common, symbols;
    } word;
    size_t url_chars;
    size_t top_chars[3];       /* that the most frequent n-gram takes, n = 2, 3, 4 */
    size_t duplicate_chars[6]; /* n = 5 to 10 */
    struct buf gram;
};

/* ---- characters ---- */

static double of_chars(struct filter_text *t, size_t n)
{
    return t->text.n ? (double)n / (double)filter_scan(t)->chars : 1;
}

static double not_plain(struct filter_text *t, int arg)
{
    const struct scan *s = filter_scan(t);

    (void)arg;
    return of_chars(t, s->chars - s->plain);
}

static double digits(struct filter_text *t, int arg)
{
    (void)arg;
    return of_chars(t, filter_scan(t)->digits);
}

static double white_space(struct filter_text *t, int arg)
{
    (void)arg;
    return of_chars(t, filter_scan(t)->white);
}

static double brackets(struct filter_text *t, int arg)
{
    (void)arg;
    return of_chars(t, filter_scan(t)->brackets);
}

/* The end of the URL characters that begin at p. */
static const char *url_end(const char *p, const char *end)
{
    static const bool in_url[128] = {
        ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['$'] = true, ['-'] = true, ['_'] = true,
        ['@'] = true, ['.'] = true, ['&'] = true, ['+'] = true, ['/'] = true, [':'] = true, ['='] = true, ['?'] = true,
        ['#'] = true, ['~'] = true, ['!'] = true, ['*'] = true, ['('] = true, [')'] = true, [','] = true,
    };

    for (; p < end; p++) {
        unsigned char c = (unsigned char)*p;

        if (c < 128 && in_url[c])
            continue;
        if (c != '%' || end - p < 3 || !ascii_is_hex(p[1]) || !ascii_is_hex(p[2]))
            break;
        p += 2;
    }
    return p;
}

static size_t count_url_chars(struct span text)
{
    const char *p = text.p, *end = text.p + text.n, *from = p;
    size_t chars = 0;

    while (p < end && (p = memchr(p, ':', (size_t)(end - p))) != NULL) {
        size_t scheme = p - from >= 5 && memcmp(p - 5, "https", 5) == 0  ? 5
                        : p - from >= 4 && memcmp(p - 4, "http", 4) == 0 ? 4
                                                                         : 0;
        const char *q;

        if (!scheme || end - p < 3 || p[1] != '/' || p[2] != '/' || (q = url_end(p + 3, end)) == p + 3) {
            p++;
            continue;
        }
        chars += (size_t)(q - p) + scheme;
        from = p = q;
    }
    return chars;
}

static double urls(struct filter_text *t, int arg)
{
    struct nemo *n = t->own;

    (void)arg;
    if (filter_first(&n->have, PART_URLS))
        n->url_chars = count_url_chars(t->text);
    return of_chars(t, n->url_chars);
}

/* ---- lines and paragraphs ---- */

static bool is_bullet(struct span s)
{
    static const char *const bullets[] = {
        "\xE2\x80\xA2", "\xE2\x80\xA3", "\xE2\x81\x83", "\xE2\x81\x8C", "\xE2\x81\x8D", "\xE2\x88\x99",
        "\xE2\x97\x8B", "\xE2\x97\x8F", "\xE2\x97\x98", "\xE2\x97\xA6", "\xE2\xA6\xBE", "\xE2\xA6\xBF",
    };

    for (size_t i = 0; s.n >= 3 && s.p[0] == bullets[0][0] && i < sizeof bullets / sizeof *bullets; i++)
        if (memcmp(s.p, bullets[i], 3) == 0)
            return true;
    return false;
}

static const char *const ellipses[] = {"...",     "[...]",      "\xE2\x80\xA6", "(...)", "[\xE2\x80\xA6]",
                                       "-\xC2\xBB", "read more..", "read more"};
enum { N_ELLIPSES = sizeof ellipses / sizeof *ellipses, ELLIPSIS_WORDS = 6 }; /* those without a space */

static bool ends_in_ellipsis(struct span s)
{
    switch ((unsigned char)s.p[s.n - 1]) { /* their last bytes */
    case '.': case ']': case 0xA6: case ')': case 0xBB: case 'e': case 'E':
        for (size_t i = 0; i < N_ELLIPSES; i++)
            if (phrase_ends(s, ellipses[i]))
                return true;
    }
    return false;
}

static bool ends_sentence(char c) { return c == '.' || c == '?' || c == '!' || c == '"' || c == '\''; }

static struct nemo *measure_lines(struct filter_text *t)
{
    struct nemo *m = t->own;
    const char *p = t->text.p, *end = t->text.p + t->text.n;
    size_t n = 0, blank = 0;

    if (!filter_first(&m->have, PART_LINES))
        return m;
    memset(&m->line, 0, sizeof m->line);
    for (bool more = true; more;) {
        const char *q = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        struct span line = {p, (size_t)((q ? q : end) - p)}, s;

        more = q != NULL;
        p = more ? q + 1 : end;
        blank += more; /* the newline */
        if (!line.n)
            continue;
        s = chars_strip(line);
        if (!s.n) {
            blank += chars_count(line);
            continue;
        }
        if (!filter_room(t, n + 1))
            return m;
        t->span[n++] = line;
        m->line.bullets += is_bullet(s);
        m->line.endless += !ends_sentence(s.p[s.n - 1]);
        m->line.ellipses += ends_in_ellipsis(s);
    }
    m->line.lines = n;
    m->line.chars = filter_scan(t)->chars - blank;
    if (grams_count_copies(&t->split_grams, t->span, n, &m->line.copies) < 0)
        filter_fail(t, ERR_NOMEM, "the lines of a text");
    return m;
}

static double bullet_lines(struct filter_text *t, int arg)
{
    const struct nemo *m = measure_lines(t);

    (void)arg;
    return (double)m->line.bullets / (double)m->line.lines;
}

static double endless_lines(struct filter_text *t, int arg)
{
    const struct nemo *m = measure_lines(t);

    (void)arg;
    return (double)m->line.endless / (double)m->line.lines;
}

static double ellipsis_lines(struct filter_text *t, int arg)
{
    const struct nemo *m = measure_lines(t);

    (void)arg;
    return (double)m->line.ellipses / (double)m->line.lines;
}

/* The share that is left without copies. */
static double without_copies(const struct copies *c, size_t chars, int by_chars)
{
    return by_chars ? (double)(chars - c->chars) / (double)chars : (double)(c->spans - c->copies) / (double)c->spans;
}

static double unique_lines(struct filter_text *t, int by_chars)
{
    const struct nemo *m = measure_lines(t);

    return without_copies(&m->line.copies, m->line.chars, by_chars);
}

static bool is_boilerplate(struct span s, unsigned hints)
{
    static const char *const privacy[] = {"privacy policy", "privacy overview", "privacy & cookies policy",
                                          "privacy and cookies policy"};
    /* The list also has longer sentences; those that contain one of these are left out. */
    static const char *const cookies[] = {
        "cookie policy", "uses cookies", "use of cookies", "use cookies",
        ("necessary cookies are absolutely essential for the website to function properly. this category only "
         "includes cookies that ensures basic functionalities and security features of the website. these cookies "
         "do not store any personal information."),
        ("any cookies that may not be particularly necessary for the website to function and is used specifically "
         "to collect user personal data via analytics, ads, other embedded contents are termed as non-necessary "
         "cookies. it is mandatory to procure user consent prior to running these cookies on your website."),
        ("if you continue to browse this site without changing your cookie settings, you agree to this use. "
         "acceptread more"),
    };

    return (hints & PHRASE_TERMS && phrase_in(s, "terms of use")) ||
           (hints & PHRASE_PRIVACY && phrase_in_any(s, privacy, sizeof privacy / sizeof *privacy)) ||
           (hints & PHRASE_COOKIE && phrase_in_any(s, cookies, sizeof cookies / sizeof *cookies));
}

static struct nemo *measure_paragraphs(struct filter_text *t)
{
    struct nemo *m = t->own;
    const char *p = t->text.p, *end = t->text.p + t->text.n;
    unsigned any;
    size_t n = 0;

    if (!filter_first(&m->have, PART_PARAGRAPHS))
        return m;
    memset(&m->paragraph, 0, sizeof m->paragraph);
    any = phrase_hints(t->text);
    for (bool more = true; more; n++) {
        const char *q = p;
        struct span s;
        unsigned hints;

        while (q < end && (q = memchr(q, '\n', (size_t)(end - q))) != NULL && q + 1 < end && q[1] != '\n')
            q++;
        more = q && q + 1 < end;
        s = (struct span){p, (size_t)((more ? q : end) - p)};
        p = more ? q + 2 : end;
        if (!filter_room(t, n + 1))
            return m;
        t->span[n] = s;
        if (!any || !(hints = phrase_hints(s)))
            continue;
        m->paragraph.lorem |= hints & PHRASE_LOREM && phrase_in(s, "lorem ipsum");
        m->paragraph.boilerplate += is_boilerplate(s, hints);
    }
    m->paragraph.chars = filter_scan(t)->chars - 2 * (n - 1);
    if (grams_count_copies(&t->split_grams, t->span, n, &m->paragraph.copies) < 0)
        filter_fail(t, ERR_NOMEM, "the paragraphs of a text");
    return m;
}

static double boilerplate(struct filter_text *t, int arg)
{
    const struct nemo *m = measure_paragraphs(t);

    (void)arg;
    return m->paragraph.lorem ? 1 : (double)m->paragraph.boilerplate / (double)m->paragraph.copies.spans;
}

static double unique_paragraphs(struct filter_text *t, int by_chars)
{
    const struct nemo *m = measure_paragraphs(t);

    return without_copies(&m->paragraph.copies, m->paragraph.chars, by_chars);
}

/* ---- words ---- */

static bool has_letter(struct span s)
{
    int len;

    for (size_t k = 0; k < s.n; k += (size_t)len) {
        uint32_t c = chars_decode(s.p + k, &len);
        if (c < 0x80 ? (c | 32) >= 'a' && (c | 32) <= 'z' : u_isUAlphabetic((UChar32)c))
            return true;
    }
    return false;
}

/* An ellipsis, or runs of # that are more than half as many as its characters. */
static bool is_symbol(struct span s, size_t chars)
{
    size_t runs = 0;

    for (size_t i = 0; i < ELLIPSIS_WORDS; i++)
        if (span_is(s, ellipses[i]))
            return true;
    for (size_t i = 0; i < s.n; i++)
        runs += s.p[i] == '#' && (i == 0 || s.p[i - 1] != '#');
    return 2 * runs > chars;
}

static struct nemo *measure_words(struct filter_text *t)
{
    struct nemo *m = t->own;
    const struct word_type *w;
    size_t n;

    if (!filter_first(&m->have, PART_WORDS))
        return m;
    memset(&m->word, 0, sizeof m->word);
    w = filter_split_types(t, &n);
    for (size_t i = 0; i < n; i++, w++) {
        struct span s = {t->text.p + w->off, w->len};

        m->word.chars += (size_t)w->count * w->chars;
        m->word.longest = w->chars > m->word.longest ? w->chars : m->word.longest;
        if (has_letter(s)) {
            m->word.with_letter += w->count;
            m->word.common += filter_stop_word(s) ? w->count : 0;
        }
        if (s.n <= 5 || memchr(s.p, '#', s.n))
            m->word.symbols += is_symbol(s, w->chars) ? w->count : 0;
    }
    return m;
}

static double symbols(struct filter_text *t, int arg)
{
    (void)arg;
    return filter_of_split(t, measure_words(t)->word.symbols);
}

static double word_count(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)filter_split(t)->n;
}

static double letter_words(struct filter_text *t, int arg)
{
    (void)arg;
    return filter_of_split(t, measure_words(t)->word.with_letter);
}

static double common_words(struct filter_text *t, int arg)
{
    double n = (double)measure_words(t)->word.common, enough = ceil(t->set[COMMON_WORDS].threshold);

    (void)arg;
    return n > enough ? enough : n;
}

static double mean_length(struct filter_text *t, int arg)
{
    (void)arg;
    return filter_of_split(t, measure_words(t)->word.chars);
}

static double longest_word(struct filter_text *t, int arg)
{
    (void)arg;
    return filter_split(t)->n ? (double)measure_words(t)->word.longest : NAN;
}

/* ---- n-grams ---- */

/* Characters that the n-gram, one space between its words, takes wherever it stands in the
 * text, words or not. */
static size_t count_top(struct filter_text *t, size_t first, size_t n)
{
    struct nemo *m = t->own;
    const struct word *w = filter_split(t)->w + first;
    const char *p = t->text.p, *end = t->text.p + t->text.n;
    size_t count = 0;

    buf_clear(&m->gram);
    for (size_t i = 0; i < n; i++)
        if ((i && buf_putc(&m->gram, ' ') < 0) || buf_put(&m->gram, t->text.p + w[i].off, w[i].len) < 0)
            return (size_t)filter_fail(t, ERR_NOMEM, "the n-grams of a text");
    while ((p = memmem(p, (size_t)(end - p), m->gram.p, m->gram.n)) != NULL) {
        count++;
        p += m->gram.n;
    }
    return count * (grams_chars(&t->split_grams, first, n) + n - 1);
}

/* Characters of n-grams that were there before, spaces included, no word counted twice. */
static size_t count_duplicates(const struct grams *g, size_t n)
{
    size_t chars = 0, end = 0; /* behind the last word that was counted */

    for (size_t i = 0; i < g->n_places; i++) {
        size_t at = g->place[i], from = at > end ? at : end, words = at + n - from;

        if (g->gram[g->here[at]].first == at)
            continue;
        chars += grams_chars(g, from, words) + (words < n ? words : n - 1);
        end = at + n;
    }
    return chars;
}

static struct nemo *measure_grams(struct filter_text *t)
{
    struct nemo *m = t->own;
    struct grams *g = &t->split_grams;
    size_t n_types, n_words = filter_split(t)->n;

    if (!filter_first(&m->have, PART_GRAMS))
        return m;
    filter_split_types(t, &n_types);
    for (size_t n = 2; n <= 10 && n <= n_words; n++) {
        if (grams_step(g, n_words, n) < 0) {
            filter_fail(t, ERR_NOMEM, "the n-grams of a text");
            break;
        }
        if (n <= 4)
            m->top_chars[n - 2] = count_top(t, grams_top(g, n_words, n).first, n);
        else
            m->duplicate_chars[n - 5] = count_duplicates(g, n);
    }
    return m;
}

static double top_gram(struct filter_text *t, int n)
{
    if (filter_split(t)->n < (size_t)n)
        return 1;
    return of_chars(t, measure_grams(t)->top_chars[n - 2]);
}

static double duplicate_grams(struct filter_text *t, int n)
{
    if (filter_split(t)->n < (size_t)n)
        return 1;
    return of_chars(t, measure_grams(t)->duplicate_chars[n - 5]);
}

static void release(void *own) { buf_free(&((struct nemo *)own)->gram); }

#define TOP(n, threshold) \
    {RULE("repeating_top_" #n "grams", top_gram, n, RULE_ABOVE, threshold, \
          "share of characters in the most frequent " #n "-gram")}
#define REPEATED(n, threshold) \
    {RULE("repeating_dup_" #n "gram", duplicate_grams, n, RULE_ABOVE, threshold, \
          "share of characters in " #n "-grams that were there before")}
static const struct rule rules[] = {
    {RULE("alpha_numeric", not_plain, 0, RULE_ABOVE, 0.25, "share of characters that are no letters, digits or marks of ASCII")},
    {RULE("symbol_to_word", symbols, 0, RULE_ABOVE, 0.1, "symbols / words")},
    {RULE("numbers_ratio", digits, 0, RULE_ABOVE, 0.15, "share of digits")},
    {RULE("urls_ratio", urls, 0, RULE_ABOVE, 0.2, "share of characters in URLs")},
    {RULE("white_space", white_space, 0, RULE_ABOVE, 0.25, "share of white space")},
    {RULE("parentheses_ratio", brackets, 0, RULE_ABOVE, 0.1, "share of brackets")},
    {RULE("boilerplate_string_ratio", boilerplate, 0, RULE_ABOVE, 0.4, "share of paragraphs with a boilerplate phrase")},
    {RULE("repeated_lines", unique_lines, 0, RULE_BELOW, 0.7, "distinct lines / lines")},
    {RULE("repeated_paragraphs", unique_paragraphs, 0, RULE_BELOW, 0.7, "distinct paragraphs / paragraphs")},
    {RULE("repeated_lines_char", unique_lines, 1, RULE_BELOW, 0.8, "characters of distinct lines / those of lines")},
    {RULE("repeated_paragraphs_char", unique_paragraphs, 1, RULE_BELOW, 0.8,
          "characters of distinct paragraphs / those of paragraphs")},
    {RULE("word_count", word_count, 0, RULE_BELOW, 50, "words")},
    {RULE("word_count_max", word_count, 0, RULE_ABOVE, 100000, "words"), .key = "word_count"},
    {RULE("punctuation", endless_lines, 0, RULE_ABOVE, 0.85, "share of lines without an end mark")},
    {RULE("words_without_alphabets", letter_words, 0, RULE_BELOW, 0.8, "share of words with a letter")},
    [COMMON_WORDS] = {RULE("common_english_words", common_words, 0, RULE_BELOW, 2,
                           "occurrences of the, be, to, of, and, that, have, with")},
    {RULE("mean_word_length", mean_length, 0, RULE_BELOW, 3, "mean characters of a word")},
    {RULE("mean_word_length_max", mean_length, 0, RULE_ABOVE, 10, "mean characters of a word"), .key = "mean_word_length"},
    {RULE("max_word_length", longest_word, 0, RULE_ABOVE, 1000, "characters of the longest word")},
    {RULE("ellipsis", ellipsis_lines, 0, RULE_ABOVE, 0.3, "share of lines that end in an ellipsis")},
    TOP(2, 0.2),
    TOP(3, 0.18),
    TOP(4, 0.16),
    REPEATED(5, 0.15),
    REPEATED(6, 0.14),
    REPEATED(7, 0.13),
    REPEATED(8, 0.12),
    REPEATED(9, 0.11),
    REPEATED(10, 0.10),
    {RULE("bullet_ratio", bullet_lines, 0, RULE_ABOVE, 0.9, "share of lines that begin with a bullet")},
    {0},
};

const struct preset filter_nemo = {
    .name = "nemo",
    .source = "NeMo Curator 1.4 heuristic_filter_english_pipeline",
    .rules = rules,
    .size = sizeof(struct nemo),
    .free = release,
};
