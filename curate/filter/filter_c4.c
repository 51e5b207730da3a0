/* The rules of C4 (Raffel et al. 2020) as datatrove 0.10 computes them: c4_filters.py,
 * C4QualityFilter.  Unlike the others it also removes lines. */
#include <unicode/uchar.h>

#include "curate/text/phrase.h"
#include "curate/filter/filter_preset.h"

enum { LONG_WORD, NO_TERMINAL, FEW_WORDS, LOREM_IPSUM, JAVASCRIPT, CURLY_BRACKET, POLICY, SENTENCES, CITATIONS,
       N_RULES };

struct c4 {
    unsigned have;
    size_t count[N_RULES]; /* lines, or sentences */
    enum filter_action last; /* of the rule that struck last */
    bool stop;             /* a rule drops the whole text */
    struct buf out;        /* the lines that stay */
    struct words words;
};

/* ---- one line ---- */

/* Words as split() cuts: at least how many (counted up to `enough`), and whether one has
 * more characters than `longest`. */
static size_t count_words(struct span s, double enough, double longest, bool *too_long)
{
    const char *p = s.p, *end = s.p + s.n;
    bool watch = (double)s.n > longest;
    size_t n = 0;

    *too_long = false;
    while (p < end) {
        const char *from;
        int len = 1;

        while (p < end && chars_space_at(p, end, &len))
            p += len;
        for (from = p; p < end && !chars_space_at(p, end, &len);)
            p += (unsigned char)*p < 0x80 ? 1 : len;
        n += p > from;
        if (watch && (double)(p - from) > longest) {
            struct span word = {from, (size_t)(p - from)};
            *too_long |= (double)chars_count(word) > longest;
        }
        if (!watch && !((double)n < enough))
            break;
    }
    return n;
}

/* Length of the citation mark at p ('['): [12], [edit], [citation needed]; 0 if none. */
static size_t citation_at(const char *p, const char *end)
{
    static const char edit[] = "[edit]", needed[] = "[citation needed]";
    const char *q = p + 1;
    int n;

    while (q < end && *q != ']' && u_isdigit((UChar32)chars_decode(q, &n)))
        q += n;
    if (q < end && *q == ']')
        return (size_t)(q - p) + 1;
    if ((size_t)(end - p) >= sizeof edit - 1 && memcmp(p, edit, sizeof edit - 1) == 0)
        return sizeof edit - 1;
    if ((size_t)(end - p) >= sizeof needed - 1 && memcmp(p, needed, sizeof needed - 1) == 0)
        return sizeof needed - 1;
    return 0;
}

/* Appends s without its citation marks. */
static int put_uncited(struct buf *out, struct span s)
{
    const char *p = s.p, *end = s.p + s.n, *q = p;

    while (q < end && (q = memchr(q, '[', (size_t)(end - q))) != NULL) {
        size_t n = citation_at(q, end);

        if (!n) {
            q++;
            continue;
        }
        TRY(buf_put(out, p, (size_t)(q - p)));
        p = q += n;
    }
    return buf_put(out, p, (size_t)(end - p));
}

static bool has_policy(struct span s, unsigned hints)
{
    static const char *const cookies[] = {"cookie policy", "uses cookies", "use of cookies", "use cookies"};

    return (hints & PHRASE_TERMS && phrase_in(s, "terms of use")) ||
           (hints & PHRASE_PRIVACY && phrase_in(s, "privacy policy")) ||
           (hints & PHRASE_COOKIE && phrase_in_any(s, cookies, sizeof cookies / sizeof *cookies));
}

/* Beyond English the end marks of all scripts count, and the quotation marks that close;
 * in Thai, which has no such marks, any line ends well. */
static bool ends_sentence(struct span s, const struct lang *lang)
{
    static const char quotes[] = "»”’」』";
    char c = s.n ? s.p[s.n - 1] : 0;
    struct span last = s;
    int n;

    if (c == '.')
        return !(s.n >= 3 && s.p[s.n - 2] == '.' && s.p[s.n - 3] == '.');
    if (c == '?' || c == '!' || c == '"' || c == '\'')
        return true;
    if (!s.n || lang == lang_english())
        return false;
    if (chars_classes()[chars_last(s, &n)] & CHAR_TERMINAL || lang_traits(lang) & LANG_NO_END_MARKS)
        return true;
    last = (struct span){s.p + s.n - n, (size_t)n};
    return memmem(quotes, sizeof quotes - 1, last.p, last.n) != NULL;
}

static size_t count_sentences(struct filter_text *t, struct words *words, struct span line)
{
    int rc = filter_split_words(t, line, words);

    if (rc < 0) {
        filter_fail(t, rc, "words");
        return 0;
    }
    return words_count_sentences(words, line);
}

/* A line for which a rule holds: counts it.  True if no other rule is to see it. */
static bool strike(struct filter_text *t, int rule)
{
    struct c4 *c = t->own;

    c->count[rule]++;
    c->last = t->set[rule].action;
    c->stop |= c->last == ACTION_DROP;
    return c->last != ACTION_ANNOTATE;
}

/* The rules for one line without its citations, in datatrove's order; n_words and
 * too_long are of the line with them.  True if a rule struck it. */
static bool judge_line(struct filter_text *t, struct span line, size_t n_words, bool too_long)
{
    const struct setting *set = t->set;
    unsigned hints = phrase_hints(line);

    return (too_long && strike(t, LONG_WORD)) ||
           (!isnan(set[NO_TERMINAL].threshold) && !ends_sentence(line, filter_lang(t)) && strike(t, NO_TERMINAL)) ||
           ((double)n_words < set[FEW_WORDS].threshold && strike(t, FEW_WORDS)) ||
           (!isnan(set[LOREM_IPSUM].threshold) && hints & PHRASE_LOREM && phrase_in(line, "lorem ipsum") &&
            strike(t, LOREM_IPSUM)) ||
           (!isnan(set[JAVASCRIPT].threshold) && hints & PHRASE_SCRIPT && phrase_in(line, "javascript") &&
            strike(t, JAVASCRIPT)) ||
           (!isnan(set[CURLY_BRACKET].threshold) && memchr(line.p, '{', line.n) && strike(t, CURLY_BRACKET)) ||
           (!isnan(set[POLICY].threshold) && has_policy(line, hints) && strike(t, POLICY));
}

/* One stripped line.  It goes to the end of c->out, a newline in front of it, and is taken
 * back if a rule strips it. */
static void take_line(struct filter_text *t, struct span stripped)
{
    const struct setting *set = t->set;
    struct c4 *c = t->own;
    size_t before = c->out.n, n_words;
    struct span line;
    bool too_long;

    n_words = count_words(stripped, set[FEW_WORDS].threshold, set[LONG_WORD].threshold, &too_long);
    if (lang_traits(filter_lang(t)) & LANG_UNSPACED) {
        int rc = filter_split_words(t, stripped, &c->words);
        if (rc < 0) {
            filter_fail(t, rc, "words");
            return;
        }
        n_words = c->words.n;
        too_long = false;
    }
    if (buf_putc(&c->out, '\n') < 0 || (isnan(set[CITATIONS].threshold) ? buf_put_span(&c->out, stripped)
                                                                        : put_uncited(&c->out, stripped)) < 0) {
        filter_fail(t, ERR_NOMEM, "a text");
        return;
    }
    line.p = c->out.p + before + 1;
    line.n = c->out.n - before - 1;
    if (judge_line(t, line, n_words, too_long)) {
        if (c->last == ACTION_STRIP)
            c->out.n = before;
    } else if (t->all || set[SENTENCES].action == ACTION_ANNOTATE || (double)c->count[SENTENCES] < set[SENTENCES].threshold) {
        c->count[SENTENCES] += count_sentences(t, &c->words, line);
    }
}

static const struct c4 *judge(struct filter_text *t)
{
    struct span rest = t->text, line;
    struct c4 *c = t->own;

    if (!filter_first(&c->have, 1))
        return c;
    memset(c->count, 0, sizeof c->count);
    c->stop = false;
    buf_clear(&c->out);
    while ((t->all || !c->stop) && t->rc == 0 && chars_next_line(&rest, &line))
        take_line(t, chars_strip(line));
    return c;
}

static double count(struct filter_text *t, int rule) { return (double)judge(t)->count[rule]; }

static struct span rewritten(struct filter_text *t) { return chars_strip(buf_span(&judge(t)->out)); }

static void release(void *own)
{
    struct c4 *c = own;

    buf_free(&c->out);
    words_free(&c->words);
}

#define LINES(name, rule, kind, threshold, words) RULE(name, count, rule, kind, threshold, words), .lines = true
static const struct rule rules[] = {
    [LONG_WORD] = {LINES("line_too_long_word", LONG_WORD, RULE_ABOVE, 1000, "lines with a word too long"),
                   .action = ACTION_STRIP},
    [NO_TERMINAL] = {LINES("line_no_terminal_punct", NO_TERMINAL, RULE_ABOVE, 0, "lines without an end mark"),
                     .action = ACTION_STRIP},
    [FEW_WORDS] = {LINES("line_too_few_words", FEW_WORDS, RULE_BELOW, 3, "lines of too few words"), .action = ACTION_STRIP},
    [LOREM_IPSUM] = {LINES("lorem_ipsum", LOREM_IPSUM, RULE_ABOVE, 0, "lines with lorem ipsum")},
    [JAVASCRIPT] = {LINES("line_javascript", JAVASCRIPT, RULE_ABOVE, 0, "lines with javascript"), .action = ACTION_STRIP},
    [CURLY_BRACKET] = {LINES("curly_bracket", CURLY_BRACKET, RULE_ABOVE, 0, "lines with a curly bracket")},
    [POLICY] = {LINES("line_policy", POLICY, RULE_ABOVE, 0, "lines with the words of a policy"), .action = ACTION_STRIP},
    [SENTENCES] = {RULE("too_few_sentences", count, SENTENCES, RULE_BELOW, 5, "sentences of the lines that stay")},
    [CITATIONS] = {RULE("remove_citations", NULL, 0, RULE_SETTING, 1, "whether marks such as [1] are taken out")},
    {0},
};

const struct preset filter_c4 = {
    .name = "c4",
    .source = "datatrove 0.10 C4QualityFilter; Raffel et al. 2020",
    .rules = rules,
    .size = sizeof(struct c4),
    .free = release,
    .rewritten = rewritten,
};
