/* The rules of C4 (Raffel et al. 2020) as datatrove 0.10 computes them: c4_filters.py,
 * C4QualityFilter.  Unlike the others it also removes lines. */
#include <math.h>
#include <stddef.h>

#include <unicode/uchar.h>

#include "curate/filter_text.h"

/* ---- phrases, whatever their case ---- */

/* U+212A, the Kelvin sign, is the only character beyond ASCII whose lower case is a
 * letter of these phrases (U+0130 becomes two characters). */
static const char kelvin[] = "\xE2\x84\xAA";

/* Is the phrase (small letters) at p? */
static bool phrase_at(const char *p, const char *end, const char *phrase)
{
    for (; *phrase; phrase++) {
        if (p == end)
            return false;
        if (*phrase == 'k' && end - p >= 3 && memcmp(p, kelvin, 3) == 0) {
            p += 3;
            continue;
        }
        if (*p != *phrase && !(*p >= 'A' && *p <= 'Z' && (*p | 32) == *phrase))
            return false;
        p++;
    }
    return true;
}

static bool has_phrase(struct span s, const char *phrase)
{
    const char *end = s.p + s.n;
    char c = phrase[0];

    for (const char *p = s.p; p < end; p++)
        if ((*p | 32) == c && phrase_at(p, end, phrase))
            return true;
    return false;
}

/* Phrases that may be in a line, by three letters of each (two of "cookies"). */
enum { MAY_SCRIPT = 1, MAY_COOKIES = 2, MAY_LOREM = 4, MAY_POLICY = 8, MAY_TERMS = 16 };
static unsigned find_hints(struct span s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    uint8_t any = 0;

    for (size_t i = 2; i < s.n; i++) { /* no jumps, so that it becomes vector code */
        uint8_t a = p[i - 2] | 32, b = p[i - 1] | 32, c = p[i] | 32;
        any |= (uint8_t)(-((a == 'j') & (b == 'a') & (c == 'v')) & MAY_SCRIPT);
        any |= (uint8_t)(-((b == 'k') & (c == 'i')) & MAY_COOKIES);
        any |= (uint8_t)(-((a == 'm') & (b == ' ') & (c == 'i')) & MAY_LOREM);
        any |= (uint8_t)(-((a == 'y') & (b == ' ') & (c == 'p')) & MAY_POLICY);
        any |= (uint8_t)(-((a == 'f') & (b == ' ') & (c == 'u')) & MAY_TERMS);
        any |= (uint8_t)(-((p[i - 2] == 0xE2) & (p[i - 1] == 0x84)) & MAY_COOKIES);
    }
    return any;
}

static bool has_policy(struct span s, unsigned hints)
{
    static const char *const cookies[] = {"cookie policy", "uses cookies", "use of cookies", "use cookies"};

    if (hints & MAY_TERMS && has_phrase(s, "terms of use"))
        return true;
    if (hints & MAY_POLICY && has_phrase(s, "privacy policy"))
        return true;
    for (size_t i = 0; hints & MAY_COOKIES && i < sizeof cookies / sizeof *cookies; i++)
        if (has_phrase(s, cookies[i]))
            return true;
    return false;
}

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

static bool ends_sentence(struct span s)
{
    char c = s.n ? s.p[s.n - 1] : 0;

    if (c == '.')
        return !(s.n >= 3 && s.p[s.n - 2] == '.' && s.p[s.n - 3] == '.');
    return c == '?' || c == '!' || c == '"' || c == '\'';
}

static size_t count_sentences(struct filter_text *t, struct span line)
{
    int rc = words_split(&t->c4.words, line, t->err);

    if (rc < 0) {
        filter_fail(t, rc, "words");
        return 0;
    }
    return words_count_sentences(&t->c4.words, line);
}

/* The rules for one stripped line, in datatrove's order.  The line goes to the end of
 * t->c4.out (which has a newline in front of it) and is taken back if it is dropped.
 * False: it dropped the whole text. */
static bool judge_line(struct filter_text *t, struct span stripped)
{
    const struct filter_params *c = t->params;
    struct buf *out = &t->c4.out;
    size_t before = out->n, n_words;
    struct span line;
    bool too_long;
    unsigned hints;

    n_words = count_words(stripped, c->min_words, c->max_word_length, &too_long);
    if (too_long) {
        t->c4.long_word++;
        return true;
    }
    if (buf_putc(out, '\n') < 0 ||
        (isnan(c->remove_citations) ? buf_put_span(out, stripped) : put_uncited(out, stripped)) < 0)
        return filter_fail(t, ERR_NOMEM, "a text") != 0;
    line.p = out->p + before + 1;
    line.n = out->n - before - 1;
    hints = find_hints(line);
    if (!isnan(c->terminal_punct) && !ends_sentence(line)) {
        t->c4.no_terminal++;
    } else if ((double)n_words < c->min_words) {
        t->c4.few_words++;
    } else if (!isnan(c->lorem_ipsum) && hints & MAY_LOREM && has_phrase(line, "lorem ipsum")) {
        t->c4.lorem_ipsum++;
        return t->params->all;
    } else if (!isnan(c->javascript) && hints & MAY_SCRIPT && has_phrase(line, "javascript")) {
        t->c4.javascript++;
    } else if (!isnan(c->curly_bracket) && memchr(line.p, '{', line.n)) {
        t->c4.curly_bracket++;
        return t->params->all;
    } else if (!isnan(c->policy) && has_policy(line, hints)) {
        t->c4.policy++;
    } else {
        if (t->params->all || (double)t->c4.sentences < c->min_sentences)
            t->c4.sentences += count_sentences(t, line);
        return true;
    }
    out->n = before;
    return true;
}

static void judge(struct filter_text *t)
{
    struct span rest = t->text, line;
    struct buf out = t->c4.out;
    struct words words = t->c4.words;

    if (!filter_first(t, PART_C4))
        return;
    memset(&t->c4, 0, sizeof t->c4);
    t->c4.out = out;
    t->c4.words = words;
    buf_clear(&t->c4.out);
    while (chars_next_line(&rest, &line))
        if (!judge_line(t, chars_strip(line)))
            return;
}

double c4_count(struct filter_text *t, int offset)
{
    size_t n;

    judge(t);
    memcpy(&n, (const char *)&t->c4 + offset, sizeof n);
    return (double)n;
}

struct span c4_rewritten(struct filter_text *t)
{
    judge(t);
    return chars_strip(buf_span(&t->c4.out));
}
