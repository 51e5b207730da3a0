/* The quality signals of RedPajama-Data v2 (Weber et al. 2024) as app/src/core/quality_signals
 * computes them.  Values are rounded to 8 decimals, as there.  The data set comes without
 * filters of its own: thresholds are those of the example on its card, filled up from
 * Gopher (Rae et al. 2021) where a signal has Gopher's meaning; the others are off. */
#include "curate/filter/filter_preset.h"
#include "curate/filter/filter_lists.h"
#include "curate/text/rpv2_text.h"

enum { PART_TEXT = 1, PART_TYPES = 2, PART_GRAMS = 4 };

struct rpv2 {
    unsigned have;
    struct rpv2_text text;
    struct grams grams;
    struct gram_top top[3];
    size_t covered[6];
    size_t word_chars; /* of the normalised words */
};

static bool is_stop_word(const void *lang, struct span word) { return lang_rpv2_stop_word(lang, word); }

static struct rpv2 *see(struct filter_text *t)
{
    struct rpv2 *r = t->own;

    if (filter_first(&r->have, PART_TEXT)) {
        const struct lang *lang = filter_lang(t);
        int rc = rpv2_text_set(&r->text, t->text, lang_has_rpv2_stop_words(lang) ? is_stop_word : NULL, lang, t->err);
        if (rc < 0) {
            rpv2_text_free(&r->text);
            filter_fail(t, rc, "a text");
        }
    }
    return r;
}

static struct rpv2 *number_words(struct filter_text *t)
{
    struct rpv2 *r = see(t);

    if (!filter_first(&r->have, PART_TYPES) || t->rc < 0)
        return r;
    r->word_chars = 0;
    if (grams_number_words(&r->grams, &r->text.words, buf_span(&r->text.norm), r->text.norm_chars == r->text.norm.n) < 0) {
        r->grams.n_types = 0;
        filter_fail(t, ERR_NOMEM, "the words of a text");
    }
    for (size_t i = 0; i < r->grams.n_types; i++)
        r->word_chars += (size_t)r->grams.type[i].count * r->grams.type[i].chars;
    return r;
}

static struct rpv2 *find_grams(struct filter_text *t)
{
    struct rpv2 *r = number_words(t);
    size_t n_words = r->text.words.n;

    if (!filter_first(&r->have, PART_GRAMS) || t->rc < 0)
        return r;
    for (size_t n = 2; n <= 10; n++) {
        if (grams_step(&r->grams, n_words, n) < 0) {
            filter_fail(t, ERR_NOMEM, "the n-grams of a text");
            return r;
        }
        if (n <= 4)
            r->top[n - 2] = grams_top(&r->grams, n_words, n);
        else
            r->covered[n - 5] = grams_covered(&r->grams, n);
    }
    return r;
}

static double round8(double x) { return rint(x * 1e8) / 1e8; }
static double ratio(size_t part, size_t whole) { return round8((double)part / (double)whole); }

/* ---- signals of the document; NAN where the original has None ---- */

static double word_count(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)see(t)->text.words.n;
}

static double mean_word_length(struct filter_text *t, int arg)
{
    struct rpv2 *r = number_words(t);

    (void)arg;
    return ratio(r->word_chars, r->text.words.n);
}

enum { SYMBOLS, NO_ALPH, ALL_CAPS, STOP_WORDS };
static double of_raw_words(struct filter_text *t, int what)
{
    const struct rpv2_text *x = &see(t)->text;

    if (what == STOP_WORDS) {
        if (!lang_has_rpv2_stop_words(filter_lang(t)))
            return NAN;
        return x->words.n ? ratio(x->raw.stop_words, x->raw.words) : 0;
    }
    if (what == NO_ALPH)
        return round8(1 - (double)x->raw.with_alpha / (double)x->raw.words);
    return ratio(what == SYMBOLS ? x->raw.symbols : x->raw.all_caps, x->raw.words);
}

static double ellipsis_lines(struct filter_text *t, int arg)
{
    const struct rpv2_text *x = &see(t)->text;
    size_t n = 0;

    (void)arg;
    for (size_t i = 0; i < x->n_lines; i++)
        n += x->line[i].ellipsis;
    return ratio(n, x->n_lines);
}

static double sentences(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)see(t)->text.raw.sentences;
}

static double unique_words(struct filter_text *t, int arg)
{
    struct rpv2 *r = number_words(t);

    (void)arg;
    return ratio(r->grams.n_types, r->text.words.n);
}

static double entropy(struct filter_text *t, int arg)
{
    struct rpv2 *r = number_words(t);
    double total = (double)r->text.words.n, sum = 0;

    (void)arg;
    for (size_t i = 0; i < r->grams.n_types; i++) {
        double p = r->grams.type[i].count / total;
        sum -= p * log(p);
    }
    return total > 0 ? round8(sum) : NAN;
}

static double braces(struct filter_text *t, int arg)
{
    const struct rpv2_text *x = &see(t)->text;

    (void)arg;
    return x->chars ? ratio(x->raw.braces, x->chars) : 0;
}

static double lorem_ipsum(struct filter_text *t, int arg)
{
    static const char phrase[] = "lorem ipsum";
    const struct rpv2_text *x = &see(t)->text;
    const char *p = x->norm.p, *end = x->norm.n ? p + x->norm.n : p;
    size_t n = 0;

    (void)arg;
    while (p < end && (p = memmem(p, (size_t)(end - p), phrase, sizeof phrase - 1)) != NULL) {
        p += sizeof phrase - 1;
        n++;
    }
    return n ? ratio(n, x->norm_chars) : 0;
}

static double top_gram(struct filter_text *t, int n)
{
    struct rpv2 *r = find_grams(t);
    const struct gram_top *top = &r->top[n - 2];

    if (t->rc < 0 || top->count <= 1)
        return 0;
    return ratio(grams_chars(&r->grams, top->first, (size_t)n) * top->count, r->word_chars);
}

static double covered_by_grams(struct filter_text *t, int n)
{
    struct rpv2 *r = find_grams(t);

    return t->rc == 0 && r->word_chars ? ratio(r->covered[n - 5], r->word_chars) : 0;
}

/* Runs of normalised words that are on a list for the language; NAN if there is none. */
static double bad_words(struct filter_text *t, int arg)
{
    const struct rpv2_text *x = &see(t)->text;
    const char *p = x->norm.p, *end = x->norm.n ? p + x->norm.n : p;
    const struct bad_words *b = NULL;
    size_t n = 0;

    (void)arg;
    if (t->rc < 0 || !filter_next_bad_words(t, &b))
        return NAN;
    do
        for (size_t i = 0; i < x->words.n; i++) {
            uint32_t node = 0;

            for (const char *q = p + x->words.w[i].off; q < end; q++) {
                if (*q == ' ')
                    n += b->trie.ends[node];
                if (!(node = word_trie_next(&b->trie, node, (unsigned char)*q)))
                    break;
            }
            n += b->trie.ends[node]; /* node is 0 but at the end of the text, and nothing ends at the root */
        }
    while (filter_next_bad_words(t, &b));
    return (double)n;
}

/* 1 if the host, with user and port as they stand, is among the domains.  The original has
 * the number of its set of categories, or None. */
static double listed_host(struct filter_text *t, int arg)
{
    struct span url = filter_field(t, "url");

    (void)arg;
    return url.p ? word_set_has(&t->lists->urls.domains, url_authority(url)) : NAN;
}

/* As CCNet counts them in the text at hand. */
static double length(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)see(t)->text.chars;
}
static double n_lines(struct filter_text *t, int arg)
{
    (void)arg;
    return (double)see(t)->text.n_lines;
}

/* ---- signals of lines ---- */

enum { JAVASCRIPT, TERMINAL, NUM_WORDS, UPPERCASE, NUMERIC, BULLET };
static double of_line(const struct rpv2_line *l, int what)
{
    switch (what) {
    case JAVASCRIPT:
        return (double)l->javascript;
    case TERMINAL:
        return l->terminal;
    case NUM_WORDS:
        return (double)l->words;
    case UPPERCASE:
        return ratio(l->upper, l->end - l->start);
    case NUMERIC:
        return l->chars ? ratio(l->numeric, l->chars) : 0;
    default:
        return l->bullet;
    }
}

/* The mean over the lines, for a threshold. */
static double mean_of_lines(struct filter_text *t, int what)
{
    const struct rpv2_text *x = &see(t)->text;
    double sum = 0;

    for (size_t i = 0; i < x->n_lines; i++)
        sum += of_line(&x->line[i], what);
    return sum / (double)x->n_lines;
}

/* [[start,end,value],...] in code points, a line each. */
static int put_lines(struct filter_text *t, int what, struct buf *json)
{
    const struct rpv2_text *x = &see(t)->text;

    TRY(t->rc);
    TRY(buf_putc(json, '['));
    if (what == BULLET && x->n_lines == 0)
        TRY(buf_puts(json, "[0,0,null]"));
    for (size_t i = 0; i < x->n_lines; i++) {
        const struct rpv2_line *l = &x->line[i];

        TRY(buf_puts(json, i ? ",[" : "["));
        TRY(json_put_int(json, (int64_t)l->start));
        TRY(buf_putc(json, ','));
        TRY(json_put_int(json, (int64_t)l->end));
        TRY(buf_putc(json, ','));
        TRY(json_put_num(json, of_line(l, what)));
        TRY(buf_putc(json, ']'));
    }
    return buf_putc(json, ']');
}

static void release(void *own)
{
    struct rpv2 *r = own;

    rpv2_text_free(&r->text);
    grams_free(&r->grams);
}

#define DOC(name, signal, arg, kind, threshold, words) {RULE("rps_doc_" name, signal, arg, kind, threshold, words)}
#define MOST(name, signal, threshold, words) \
    {RULE("rps_doc_" name "_most", signal, 0, RULE_ABOVE, threshold, words), .key = "rps_doc_" name}
#define TOP(n, threshold) \
    DOC("frac_chars_top_" #n "gram", top_gram, n, RULE_ABOVE, threshold, \
        "share of characters in the most frequent " #n "-gram")
#define DUPE(n, threshold) \
    DOC("frac_chars_dupe_" #n "grams", covered_by_grams, n, RULE_ABOVE, threshold, \
        "share of characters in " #n "-grams that occur twice")
#define LINE(name, what, kind, threshold, words) \
    {RULE("rps_lines_" name, mean_of_lines, what, kind, threshold, words), .put = put_lines}
#define MODEL(name, words) {RULE(name, NULL, 0, RULE_ABOVE, RULE_OFF, words), .needs = NEEDS_MODEL}
#define IMPORTANCE(name, title) \
    MODEL("rps_doc_" name "_importance", "log of the likelihood by a model of " title " / that by one of the web"), \
    MODEL("rps_doc_" name "_importance_length_correction", \
          "log of the likelihood by a model of " title " / that by one of the web, corrected for length")
static const struct rule rules[] = {
    DOC("word_count", word_count, 0, RULE_BELOW, 50, "words"),
    MOST("word_count", word_count, 100000, "words"),
    DOC("mean_word_length", mean_word_length, 0, RULE_BELOW, 3, "mean characters of a word"),
    MOST("mean_word_length", mean_word_length, 10, "mean characters of a word"),
    DOC("symbol_to_word_ratio", of_raw_words, SYMBOLS, RULE_ABOVE, 0.1, "symbols / words"),
    LINE("start_with_bulletpoint", BULLET, RULE_ABOVE, 0.9, "share of lines that begin with a bullet"),
    TOP(2, 0.2),
    TOP(3, 0.18),
    TOP(4, 0.16),
    DUPE(5, 0.15),
    DUPE(6, 0.14),
    DUPE(7, 0.13),
    DUPE(8, 0.12),
    DUPE(9, 0.11),
    DUPE(10, 0.10),
    DOC("frac_lines_end_with_ellipsis", ellipsis_lines, 0, RULE_ABOVE, 0.3, "share of lines that end in an ellipsis"),
    DOC("frac_no_alph_words", of_raw_words, NO_ALPH, RULE_ABOVE, 0.2, "share of words without a letter"),
    DOC("stop_word_fraction", of_raw_words, STOP_WORDS, RULE_BELOW, RULE_OFF, "share of stop words"),
    DOC("frac_unique_words", unique_words, 0, RULE_BELOW, RULE_OFF, "distinct words / words"),
    DOC("unigram_entropy", entropy, 0, RULE_BELOW, RULE_OFF, "entropy of the words"),
    DOC("frac_all_caps_words", of_raw_words, ALL_CAPS, RULE_ABOVE, RULE_OFF, "share of words in capitals"),
    DOC("num_sentences", sentences, 0, RULE_BELOW, RULE_OFF, "sentences"),
    DOC("lorem_ipsum", lorem_ipsum, 0, RULE_ABOVE, RULE_OFF, "occurrences of lorem ipsum / characters"),
    DOC("curly_bracket", braces, 0, RULE_ABOVE, RULE_OFF, "curly brackets / characters"),
    LINE("ending_with_terminal_punctution_mark", TERMINAL, RULE_BELOW, RULE_OFF, "share of lines that end in punctuation"),
    LINE("javascript_counts", JAVASCRIPT, RULE_ABOVE, RULE_OFF, "mean occurrences of javascript in a line"),
    LINE("num_words", NUM_WORDS, RULE_BELOW, RULE_OFF, "mean words of a line"),
    LINE("numerical_chars_fraction", NUMERIC, RULE_ABOVE, RULE_OFF, "mean share of digits in a line"),
    LINE("uppercase_letter_fraction", UPPERCASE, RULE_ABOVE, RULE_OFF, "mean share of capitals in a line"),
    {RULE("ccnet_length", length, 0, RULE_BELOW, RULE_OFF, "characters")},
    {RULE("ccnet_nlines", n_lines, 0, RULE_BELOW, RULE_OFF, "lines")},
    {RULE("rps_doc_ldnoobw_words", bad_words, 0, RULE_ABOVE, RULE_OFF, "words on the list"), .needs = NEEDS_BAD_WORDS},
    {RULE("rps_doc_ut1_blacklist", listed_host, 0, RULE_ABOVE, RULE_OFF, "1 if the host is listed"), .needs = NEEDS_URL_DOMAINS},
    IMPORTANCE("books", "books"),
    IMPORTANCE("openwebtext", "OpenWebText"),
    IMPORTANCE("wikipedia", "Wikipedia"),
    MODEL("rps_doc_ml_palm_score", "score of a classifier for Wikipedia, OpenWebText and books"),
    MODEL("rps_doc_ml_wikipedia_score", "score of a classifier for Wikipedia's articles"),
    MODEL("rps_doc_ml_wikiref_score", "score of a classifier for pages that Wikipedia cites"),
    MODEL("ccnet_bucket", "head, middle or tail, by perplexity"),
    MODEL("ccnet_language_score", "score of the language found"),
    MODEL("ccnet_original_length", "characters before lines were deduplicated"),
    MODEL("ccnet_original_nlines", "lines before lines were deduplicated"),
    MODEL("ccnet_perplexity", "perplexity by a model of Wikipedia"),
    {0},
};

const struct preset filter_rpv2 = {
    .name = "rpv2",
    .source = "RedPajama-Data v2 quality signals; Weber et al. 2024",
    .rules = rules,
    .size = sizeof(struct rpv2),
    .free = release,
};
