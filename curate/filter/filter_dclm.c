/* The filters of DCLM-Baseline's RefinedWeb pipeline, in its order: baselines/ of
 * github.com/mlfoundations/dclm, baselines_configs/dclm_baseline_refinedweb.yaml, from
 * newline_removal_modifier on but for the language; mappers/filters/content_filters.py. */
#include "curate/filter/dclm_lines.h"
#include "curate/filter/filter_preset.h"
#include "curate/text/uax29.h"

enum { PART_TOKENS = 1, PART_WORDS = 2, PART_SYMBOLS = 4, PART_LINES = 8, PART_PARAGRAPHS = 16, PART_GRAMS = 32,
       PART_STEPS = 64 };
/* The rules that other functions look at come first, in the order of the steps. */
enum { NEWLINES, UPPERCASE, NUMERIC, COUNTER, SHORT, CART, READ_MORE, SIGN_IN, N_STEPS };

struct pieces {
    struct copies copies;
    size_t chars;
};
struct dclm {
    unsigned have;
    size_t tokens; /* fastText's, of letters and numbers */
    struct {
        size_t chars, with_letter, stop_words;
    } word; /* as split() cuts */
    size_t symbols, bullets, ellipses;
    struct pieces lines, paragraphs; /* stripped, not empty */
    struct words words;              /* UAX #29 */
    struct grams grams;
    double repeated[9]; /* n = 2 to 10 */
    size_t struck[N_STEPS];
    struct buf a, b, prepared;
    struct span left;
    struct scan scan; /* of what is left */
    struct words split;
};

/* ---- words ---- */

/* White space for fastText. */
static bool cuts_token(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || !c; }

/* Tokens that fastText cuts and that begin with a letter or a number.  Each begins where a
 * word of split() does, or behind a NUL. */
static size_t count_tokens(struct span text, const struct words *split)
{
    size_t n = 0;
    int len;

    if (text.n && memchr(text.p, '\0', text.n)) {
        for (size_t i = 0; i < text.n; i++)
            n += !cuts_token(text.p[i]) && (i == 0 || cuts_token(text.p[i - 1])) &&
                 uax29_alnum(chars_decode(text.p + i, &len));
        return n;
    }
    for (size_t i = 0; i < split->n; i++) {
        const char *p = text.p + split->w[i].off;
        n += uax29_alnum(chars_decode(p, &len)) && (p == text.p || cuts_token(p[-1]));
    }
    return n;
}

static size_t tokens(struct filter_text *t)
{
    struct dclm *d = t->own;

    if (filter_first(&d->have, PART_TOKENS))
        d->tokens = count_tokens(t->text, filter_split(t));
    return d->tokens;
}

static double page_length(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)tokens(t);
}

static bool is_stop_word(struct span s)
{
    char lower[4];

    for (size_t i = 0; i < s.n && i < 4; i++)
        lower[i] = (char)(s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] | 32 : s.p[i]);
    return s.n <= 4 && filter_stop_word((struct span){lower, s.n});
}

static const struct dclm *measure_words(struct filter_text *t)
{
    struct dclm *d = t->own;
    const struct word_type *w;
    size_t n;

    if (!filter_first(&d->have, PART_WORDS))
        return d;
    memset(&d->word, 0, sizeof d->word);
    w = filter_split_types(t, &n);
    for (size_t i = 0; i < n; i++, w++) {
        struct span s = {t->text.p + w->off, w->len};

        d->word.chars += (size_t)w->count * w->chars;
        d->word.with_letter += filter_has_letter(s) ? w->count : 0;
        d->word.stop_words += is_stop_word(s) ? w->count : 0;
    }
    return d;
}

static double word_length(struct filter_text *t, int arg)
{
    (void)arg;
    return filter_of_split(t, measure_words(t)->word.chars);
}

static double letterless_words(struct filter_text *t, int arg)
{
    (void)arg;
    return filter_of_split(t, filter_split(t)->n - measure_words(t)->word.with_letter);
}

static double stop_words(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)measure_words(t)->word.stop_words;
}

static double symbols(struct filter_text *t, int arg)
{
    struct dclm *d = t->own;

    (void)arg;
    if (filter_first(&d->have, PART_SYMBOLS))
        d->symbols = filter_count(t->text, "#") + filter_count(t->text, "...") + filter_count(t->text, ". . .") +
                     (filter_scan(t)->ascii ? 0 : filter_count(t->text, "\xE2\x80\xA6"));
    return filter_of_split(t, d->symbols);
}

/* ---- lines and paragraphs ---- */

/* Cuts at each `newlines` newlines; counts the pieces that are not blank. */
static size_t cut_pieces(struct filter_text *t, size_t newlines, struct pieces *x)
{
    const char *p = t->text.p, *end = t->text.p + t->text.n, *q;
    size_t n = 0;

    memset(x, 0, sizeof *x);
    for (bool more = true; more; p = more ? q + newlines : end) {
        struct span s;

        for (q = p; q < end && (q = memchr(q, '\n', (size_t)(end - q))) != NULL; q++)
            if (newlines == 1 || (q + 1 < end && q[1] == '\n'))
                break;
        more = q && q < end;
        q = more ? q : end;
        s = chars_strip((struct span){p, (size_t)(q - p)});
        if (!s.n)
            continue;
        if (!filter_room(t, n + 1))
            return 0;
        t->span[n++] = s;
        x->chars += filter_scan(t)->ascii ? s.n : chars_count(s);
    }
    if (grams_count_copies(&t->split_grams, t->span, n, &x->copies) < 0)
        filter_fail(t, ERR_NOMEM, "the lines of a text");
    return n;
}

static const struct dclm *measure_lines(struct filter_text *t)
{
    struct dclm *d = t->own;
    size_t n;

    if (!filter_first(&d->have, PART_LINES))
        return d;
    d->bullets = d->ellipses = 0;
    n = cut_pieces(t, 1, &d->lines);
    for (size_t i = 0; i < n; i++) {
        struct span s = t->span[i];

        d->bullets += s.p[0] == '*' || s.p[0] == '-' || span_starts(s, "\xE2\x97\x8F") || span_starts(s, "\xE2\x80\xA2");
        d->ellipses += span_ends(s, "...") || span_ends(s, ". . .") || span_ends(s, "\xE2\x80\xA6");
    }
    return d;
}

static double bullet_lines(struct filter_text *t, int arg)
{
    const struct dclm *d = measure_lines(t);

    (void)arg;
    return (double)d->bullets / (double)d->lines.copies.spans;
}

static double ellipsis_lines(struct filter_text *t, int arg)
{
    const struct dclm *d = measure_lines(t);

    (void)arg;
    return (double)d->ellipses / (double)d->lines.copies.spans;
}

static double repeated_pieces(const struct pieces *x, int by_chars)
{
    return by_chars ? (double)x->copies.all_chars / (double)x->chars : (double)x->copies.all / (double)x->copies.spans;
}

static double repeated_lines(struct filter_text *t, int by_chars)
{
    return repeated_pieces(&measure_lines(t)->lines, by_chars);
}

static double repeated_paragraphs(struct filter_text *t, int by_chars)
{
    struct dclm *d = t->own;

    if (filter_first(&d->have, PART_PARAGRAPHS))
        cut_pieces(t, 2, &d->paragraphs);
    return repeated_pieces(&d->paragraphs, by_chars);
}

/* ---- n-grams ---- */

/* Characters of the longest of the most frequent n-grams, as often as it occurs. */
static size_t count_top(const struct grams *g, size_t n)
{
    size_t count = 1, chars = 0;

    for (size_t i = 0; i < g->n_grams; i++) {
        const struct gram *x = &g->gram[i];
        size_t len;

        if (x->count < 2 || x->count < count)
            continue;
        len = grams_chars(g, x->first, n);
        chars = x->count > count || len > chars ? len : chars;
        count = x->count;
    }
    return count > 1 ? count * chars : 0;
}

static double repeated_grams(struct filter_text *t, int n)
{
    struct dclm *d = t->own;
    struct grams *g = &d->grams;
    int rc;

    if (!filter_first(&d->have, PART_GRAMS))
        return d->repeated[n - 2];
    memset(d->repeated, 0, sizeof d->repeated);
    rc = uax29_split(&d->words, t->text, t->err);
    if (rc == 0)
        rc = grams_number_words(g, &d->words, t->text, filter_scan(t)->ascii);
    for (size_t k = 2; k <= 10 && k <= d->words.n && rc == 0; k++) {
        rc = grams_step(g, d->words.n, k);
        if (rc == 0)
            d->repeated[k - 2] = (double)(k <= 4 ? count_top(g, k) : grams_covered(g, k)) /
                                 (double)grams_chars(g, 0, d->words.n);
    }
    if (rc < 0)
        filter_fail(t, rc, "the n-grams of a text");
    return d->repeated[n - 2];
}

/* ---- what changes the text ---- */

static struct span prepared(struct filter_text *t)
{
    struct dclm *d = t->own;
    struct span left = t->text;

    if (!isnan(t->set[NEWLINES].threshold) &&
        dclm_newlines(t->text, t->set[NEWLINES].threshold, false, &d->prepared, &d->struck[NEWLINES], &left) < 0)
        filter_fail(t, ERR_NOMEM, "a text");
    return left;
}

static struct dclm *take_steps(struct filter_text *t)
{
    static dclm_step *const steps[N_STEPS] = {
        [UPPERCASE] = dclm_uppercase, [NUMERIC] = dclm_numeric,     [COUNTER] = dclm_counter, [SHORT] = dclm_short,
        [CART] = dclm_cart,           [READ_MORE] = dclm_read_more, [SIGN_IN] = dclm_sign_in,
    };
    struct dclm *d = t->own;
    struct buf *out = &d->a;

    if (!filter_first(&d->have, PART_STEPS))
        return d;
    d->left = t->text;
    for (int i = UPPERCASE; i < N_STEPS; i++) {
        d->struck[i] = 0;
        if (isnan(t->set[i].threshold))
            continue;
        if (steps[i](d->left, t->set[i].threshold, t->set[i].action != ACTION_STRIP, out, &d->struck[i], &d->left) < 0)
            filter_fail(t, ERR_NOMEM, "a text");
        if (d->struck[i] && t->set[i].action == ACTION_STRIP) /* what is left lies in out */
            out = out == &d->a ? &d->b : &d->a;
    }
    return d;
}

static double struck_lines(struct filter_text *t, int rule) { return (double)take_steps(t)->struck[rule]; }

static double nothing_left(struct filter_text *t, int arg)
{
    (void)arg;
    return take_steps(t)->left.n == 0;
}

static double removed_words(struct filter_text *t, int arg)
{
    struct dclm *d = take_steps(t);
    size_t before = tokens(t), after = before;

    (void)arg;
    if (d->left.n < t->text.n) {
        int rc = scan_text(&d->scan, d->left);

        if (rc == 0)
            rc = scan_split(&d->scan, d->left, &d->split, t->err);
        if (rc < 0)
            return filter_fail(t, rc, "words");
        after = count_tokens(d->left, &d->split);
    }
    return ((double)before - (double)after) / (double)before;
}

static struct span rewritten(struct filter_text *t) { return take_steps(t)->left; }

static void release(void *own)
{
    struct dclm *d = own;

    words_free(&d->words);
    words_free(&d->split);
    grams_free(&d->grams);
    scan_free(&d->scan);
    buf_free(&d->a);
    buf_free(&d->b);
    buf_free(&d->prepared);
}

#define STEP(name, step, kind, threshold, words) \
    [step] = {RULE(name, struck_lines, step, kind, threshold, words), .lines = true, .action = ACTION_STRIP}
#define REPEATED(n, threshold) \
    {RULE("repetition_" #n "_gram", repeated_grams, n, RULE_ABOVE, threshold, \
          "share of characters in repeated " #n "-grams")}
static const struct rule rules[] = {
    [NEWLINES] = {RULE("max_newlines", NULL, 0, RULE_SETTING, 2, "newlines in a row that stay")},
    STEP("uppercase_ratio_line", UPPERCASE, RULE_ABOVE, 0.5, "lines of mostly capitals"),
    STEP("numeric_ratio_line", NUMERIC, RULE_ABOVE, 0.999999, "lines of digits alone"),
    STEP("counter_line", COUNTER, RULE_ABOVE, 0, "lines that are a counter, such as 3 likes"),
    STEP("line_length", SHORT, RULE_BELOW, 2, "lines of too few words"),
    STEP("items_in_cart_line", CART, RULE_BELOW, 10, "lines that say how many items are in the cart"),
    STEP("read_more_line", READ_MORE, RULE_BELOW, 10, "lines that say read more"),
    STEP("sign_in_line", SIGN_IN, RULE_BELOW, 10, "lines that say sign in"),
    {RULE("page_length", page_length, 0, RULE_BELOW, 50, "words that begin with a letter or digit")},
    {RULE("page_length_max", page_length, 0, RULE_ABOVE, 100000,
          "words that begin with a letter or digit"), .key = "page_length"},
    {RULE("word_length", word_length, 0, RULE_BELOW, 3, "mean characters of a word")},
    {RULE("word_length_max", word_length, 0, RULE_ABOVE, 10, "mean characters of a word"), .key = "word_length"},
    {RULE("symbol_ratio", symbols, 0, RULE_ABOVE, 0.1, "symbols / words")},
    {RULE("bullet_count", bullet_lines, 0, RULE_ABOVE, 0.9, "share of lines that begin with a bullet")},
    {RULE("ellipsis_count", ellipsis_lines, 0, RULE_ABOVE, 0.3, "share of lines that end in an ellipsis")},
    {RULE("alphabetic_word_ratio", letterless_words, 0, RULE_ABOVE, 0.2, "share of words without a letter")},
    {RULE("stop_word", stop_words, 0, RULE_BELOW, 2, "occurrences of the, be, to, of, and, that, have, with")},
    {RULE("repetition_line", repeated_lines, 0, RULE_ABOVE, 0.3, "share of lines that have an equal")},
    {RULE("repetition_paragraph", repeated_paragraphs, 0, RULE_ABOVE, 0.3, "share of paragraphs that have an equal")},
    {RULE("repetition_line_char", repeated_lines, 1, RULE_ABOVE, 0.2, "share of characters in lines that have an equal")},
    {RULE("repetition_paragraph_char", repeated_paragraphs, 1, RULE_ABOVE, 0.2,
          "share of characters in paragraphs that have an equal")},
    REPEATED(2, 0.2),
    REPEATED(3, 0.18),
    REPEATED(4, 0.16),
    REPEATED(5, 0.15),
    REPEATED(6, 0.14),
    REPEATED(7, 0.13),
    REPEATED(8, 0.12),
    REPEATED(9, 0.11),
    REPEATED(10, 0.10),
    {RULE("nothing_left", nothing_left, 0, RULE_ABOVE, 0, "1 if no line is left")},
    {RULE("word_removal_ratio", removed_words, 0, RULE_ABOVE, 0.05, "share of words that went with lines")},
    {0},
};

const struct preset filter_dclm = {
    .name = "dclm",
    .source = "DCLM baselines_configs/dclm_baseline_refinedweb.yaml",
    .rules = rules,
    .size = sizeof(struct dclm),
    .free = release,
    .prepared = prepared,
    .rewritten = rewritten,
};
