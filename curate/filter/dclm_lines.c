#include "curate/filter/dclm_lines.h"

#include <unicode/uchar.h>

#include "curate/text/phrase.h"
#include "curate/text/uax29.h"

/* What is to become of a line: it stays, goes, or stays as *line then is (in scratch).
 * Negative: an error. */
enum { STAYS, GOES, CHANGES };
typedef int judge_line(struct span *line, double limit, struct buf *scratch);

/* The text without lines that go: each with its newline, the last with the one before it. */
static int each_line(struct span text, judge_line *judge, double limit, bool keep, struct buf *out, size_t *lines,
                     struct span *left)
{
    const char *p = text.p, *end = text.n ? p + text.n : p, *from = p;
    struct buf scratch = {0};
    int fate = STAYS;

    buf_clear(out);
    *left = text;
    *lines = 0;
    if (!text.n)
        return 0;
    for (bool more = true; more && fate >= 0;) {
        const char *q = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        struct span line = {p, (size_t)((q ? q : end) - p)};

        more = q != NULL;
        fate = line.n ? judge(&line, limit, &scratch) : STAYS;
        *lines += fate > STAYS;
        if (fate > STAYS && !keep) {
            int rc = buf_put(out, from, (size_t)(p - from));

            from = fate == GOES && more ? q + 1 : more ? q : end;
            if (rc == 0 && fate == CHANGES)
                rc = buf_put_span(out, line);
            if (rc < 0)
                fate = rc;
        }
        p = more ? q + 1 : end;
    }
    buf_free(&scratch);
    if (fate < 0)
        return fate;
    if (*lines && !keep) {
        TRY(buf_put(out, from, (size_t)(end - from)));
        if (fate == GOES && out->n) /* the last one */
            out->n--;
        *left = buf_span(out);
    }
    return 0;
}

/* ---- lines that go ---- */

static int judge_uppercase(struct span *line, double limit, struct buf *scratch)
{
    size_t upper = 0, high = 0, chars = line->n;
    int n;

    (void)scratch;
    for (size_t i = 0; i < line->n; i++) { /* no jumps, so that it becomes vector code */
        unsigned char c = (unsigned char)line->p[i];
        upper += c >= 'A' && c <= 'Z';
        high += c >= 0x80;
    }
    if (high) {
        upper = chars = 0;
        for (size_t i = 0; i < line->n; i += (size_t)n, chars++) {
            uint32_t c = chars_decode(line->p + i, &n);
            upper += c < 0x80 ? c - 'A' < 26 : u_isUUppercase((UChar32)c) != 0;
        }
    }
    return (double)upper / (double)chars <= limit ? STAYS : GOES;
}

static bool is_python_digit(uint32_t c)
{
    int type;

    if (c < 0x80)
        return c - '0' < 10;
    type = u_getIntPropertyValue((UChar32)c, UCHAR_NUMERIC_TYPE);
    return type == U_NT_DECIMAL || type == U_NT_DIGIT;
}

static int judge_numeric(struct span *line, double limit, struct buf *scratch)
{
    size_t digits = 0, chars = 0;
    int n;

    (void)scratch;
    if (line->n < 1000 && limit > 0.999 && !is_python_digit(chars_decode(line->p, &n)))
        return STAYS; /* one that is none is enough */
    for (size_t i = 0; i < line->n; i += (size_t)n, chars++)
        digits += is_python_digit(chars_decode(line->p + i, &n));
    return (double)digits / (double)chars <= limit ? STAYS : GOES;
}

/* The letter that c is in lower case, by full case mapping; 0 if it is none of ASCII. */
static char lower_letter(uint32_t c) { return (char)(c == 0x212A ? 'k' : c >= 0x80 ? 0 : c - 'A' < 26 ? c | 32 : c); }

static bool is_word_character(uint32_t c) { return c == '_' || uax29_alnum(c); }

static const char *skip_marks(const char *p, const char *end)
{
    for (int n; p < end && !is_word_character(chars_decode(p, &n));)
        p += n;
    return p;
}

/* The end of the ASCII word (small letters) at p, in any case; NULL if it is another. */
static const char *skip_word(const char *p, const char *end, const char *word)
{
    for (int n; *word; word++, p += n)
        if (p == end || lower_letter(chars_decode(p, &n)) != *word)
            return NULL;
    return p;
}

/* \W*\d[,.\d]*[kmb]?\s+(word)\W* is the whole line? */
static int judge_counter(struct span *line, double limit, struct buf *scratch)
{
    static const char *const counted[] = {"likes", "shares", "comments", "retweets", "reposts", "quotes", "bookmarks",
                                          "upvotes", "downvotes", "downloads", "views", "followers"};
    const char *end = line->p + line->n, *p = skip_marks(line->p, end), *from;
    char c;
    int n;

    (void)limit;
    (void)scratch;
    if (p == end || !u_isdigit((UChar32)chars_decode(p, &n)))
        return STAYS;
    for (n = 0; p < end && (*p == ',' || *p == '.' || u_isdigit((UChar32)chars_decode(p, &n))); p += n)
        n = (unsigned char)*p < 0x80 ? 1 : n;
    if (p < end && ((c = lower_letter(chars_decode(p, &n))) == 'k' || c == 'm' || c == 'b'))
        p += n;
    for (from = p; p < end && chars_space_at(p, end, &n);)
        p += n;
    for (size_t i = 0; p > from && i < sizeof counted / sizeof *counted; i++) {
        const char *q = skip_word(p, end, counted[i]);

        if (q && skip_marks(q, end) == end)
            return GOES;
    }
    return STAYS;
}

/* Words as split() cuts, counted up to `enough`. */
static size_t count_words(struct span s, size_t enough)
{
    const char *p = s.p, *end = s.p + s.n;
    size_t words = 0;
    bool in = false;

    for (int n; p < end && words < enough; p += n) {
        bool space = chars_space_at(p, end, &n);

        words += !space && !in;
        in = !space;
    }
    return words;
}

static int judge_short(struct span *line, double limit, struct buf *scratch)
{
    (void)scratch;
    return (double)count_words(*line, (size_t)limit + 1) < limit ? GOES : STAYS;
}

/* ---- pieces that go ---- */

/* Python's re.IGNORECASE takes these for ASCII letters too. */
static char folded_letter(uint32_t c)
{
    return (char)(c == 0x130 || c == 0x131 ? 'i' : c == 0x17F ? 's' : lower_letter(c));
}

/* The end of the phrase at p, '?' being any character; NULL if it is not there. */
static const char *skip_phrase(const char *p, const char *end, const char *phrase)
{
    for (int n; *phrase; phrase++, p += n) {
        uint32_t c;

        if (p == end || ((c = chars_decode(p, &n)), *phrase != '?' && folded_letter(c) != *phrase))
            return NULL;
    }
    return p;
}

/* Takes [from, to) out of a line of few words; a line that is or becomes blank goes. */
static int cut(struct span *line, double limit, struct buf *scratch, const char *from, const char *to)
{
    const char *end = line->p + line->n;

    if (!chars_lstrip(*line).n)
        return GOES;
    if (to == from || (double)count_words(*line, (size_t)limit + 1) > limit)
        return STAYS;
    buf_clear(scratch);
    TRY(buf_put(scratch, line->p, (size_t)(from - line->p)));
    TRY(buf_put(scratch, to, (size_t)(end - to)));
    *line = buf_span(scratch);
    return chars_lstrip(*line).n ? CHANGES : GOES;
}

/* The place of the phrase, which begins at p, with a white space character before it. */
static const char *with_space(const char *p, struct span line)
{
    int n, white;

    if (p == line.p)
        return p;
    chars_last((struct span){line.p, (size_t)(p - line.p)}, &n);
    return chars_space_at(p - n, p, &white) ? p - n : p;
}

static int judge_blank(struct span *line, double limit, struct buf *scratch)
{
    return cut(line, limit, scratch, line->p, line->p);
}

static int judge_cart(struct span *line, double limit, struct buf *scratch)
{
    const char *p = line->p, *end = line->p + line->n, *from = p;
    int n, fate = judge_blank(line, limit, scratch);

    if (fate != STAYS || (double)count_words(*line, (size_t)limit + 1) > limit)
        return fate;
    buf_clear(scratch);
    while (p < end) {
        const char *q = skip_phrase(p, end, "items in cart");

        if (q) {
            struct span before = {from, (size_t)(p - from)};

            TRY(buf_put(scratch, from, (size_t)(with_space(p, before) - from)));
            from = p = q;
        } else {
            chars_decode(p, &n);
            p += n;
        }
    }
    if (from == line->p)
        return STAYS;
    TRY(buf_put(scratch, from, (size_t)(end - from)));
    *line = buf_span(scratch);
    return chars_lstrip(*line).n ? CHANGES : GOES;
}

/* "Read more" and three characters. */
static int judge_read_more(struct span *line, double limit, struct buf *scratch)
{
    const char *end = line->p + line->n, *p = end, *q;

    for (int i = 0; i < 12 && p > line->p; i++)
        while (--p > line->p && ((unsigned char)*p & 0xC0) == 0x80)
            ;
    q = skip_phrase(p, end, "read more???");
    return q == end && p < end ? cut(line, limit, scratch, with_space(p, *line), end) : judge_blank(line, limit, scratch);
}

static int judge_sign_in(struct span *line, double limit, struct buf *scratch)
{
    const char *end = line->p + line->n, *q = skip_phrase(line->p, end, "sign-in");
    int n;

    if (q && q < end && chars_space_at(q, end, &n))
        q += n;
    return cut(line, limit, scratch, line->p, q ? q : line->p);
}

/* ---- the steps ---- */

int dclm_newlines(struct span text, double limit, bool keep, struct buf *out, size_t *lines, struct span *left)
{
    const char *p = text.p, *end = text.p + text.n, *from = p;
    size_t most = (size_t)limit;

    buf_clear(out);
    *left = text;
    *lines = 0;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        const char *q = p;

        while (p < end && *p == '\n')
            p++;
        if ((size_t)(p - q) <= most || keep)
            continue;
        TRY(buf_put(out, from, (size_t)(q - from) + most));
        *lines += (size_t)(p - q) - most;
        from = p;
    }
    if (!*lines)
        return 0;
    TRY(buf_put(out, from, (size_t)(end - from)));
    *left = buf_span(out);
    return 0;
}

#define STEP(name, judge, STRIPPED)                                                                   \
    int dclm_##name(struct span text, double limit, bool keep, struct buf *out, size_t *lines,        \
                    struct span *left)                                                                \
    {                                                                                                 \
        int rc = each_line(text, judge, limit, keep, out, lines, left);                               \
        *left = STRIPPED(*left);                                                                      \
        return rc;                                                                                    \
    }
#define AS_IT_IS(s) (s)
STEP(uppercase, judge_uppercase, chars_strip)
STEP(numeric, judge_numeric, chars_strip)
STEP(counter, judge_counter, chars_strip)
STEP(short, judge_short, AS_IT_IS)
STEP(cart, phrase_hints(text) & PHRASE_CART ? judge_cart : judge_blank, chars_strip)
STEP(read_more, judge_read_more, chars_strip)
STEP(sign_in, judge_sign_in, chars_strip)
