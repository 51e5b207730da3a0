#include "curate/text/rpv2_text.h"

#include <pthread.h>
#include <stdlib.h>
#include <unicode/ustring.h>

#include "base/icu_normal.h"
#include "curate/text/py_chars.h"

static const uint8_t *class;
static const UNormalizer2 *nfd;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void)
{
    UErrorCode u = U_ZERO_ERROR;

    nfd = unorm2_getNFDInstance(&u);
    class = U_FAILURE(u) ? NULL : py_chars();
}

void rpv2_text_free(struct rpv2_text *t)
{
    free(t->line);
    buf_free(&t->norm);
    words_free(&t->words);
    free(t->u[0]);
    free(t->u[1]);
    memset(t, 0, sizeof *t);
}

/* ---- the raw text ---- */

static size_t count_runs(struct span s, char c, size_t n)
{
    size_t count = 0, run = 0;

    for (size_t i = 0; i < s.n; i++) {
        run = s.p[i] == c ? run + 1 : 0;
        if (run == n) {
            count++;
            run = 0;
        }
    }
    return count;
}

/* Occurrences of "#", "..." and the ellipsis character. */
static size_t count_symbols(struct span s)
{
    size_t count = count_runs(s, '#', 1) + count_runs(s, '.', 3);

    for (const char *p = s.p, *end = s.p + s.n; end - p >= 3 && (p = memchr(p, 0xE2, (size_t)(end - p - 2))); p++)
        count += memcmp(p, "\xE2\x80\xA6", 3) == 0;
    return count;
}

/* A word of the raw text ends: any and all are the classes of its characters, joined by or. */
static inline void end_word(struct rpv2_text *t, uint8_t any)
{
    t->raw.words++;
    t->raw.with_alpha += (any & PY_ALPHA) != 0;
    t->raw.all_caps += (any & (PY_UPPER | PY_LOWER)) == PY_UPPER;
}

/* Words, sentences and characters.  A sentence (\b[^.!?]+[.!?]*) begins where a word
 * begins or ends, at something that is no end mark. */
static void scan_raw(struct rpv2_text *t, struct span text, bool (*is_stop_word)(const void *, struct span),
                     const void *list)
{
    const char *p = text.p, *end = text.p + text.n, *word = p;
    uint8_t before = 0, any = 0, kind = 0; /* kind: of the word at hand; 0: none */
    enum { OUTSIDE, WITHIN, MARKS } sentence = OUTSIDE;
    struct span w;
    int n;

    for (; p < end; p += n) {
        uint8_t c = class[chars_decode(p, &n)], k = c & PY_SPACE ? 0 : c & PY_WORD ? PY_WORD : PY_PUNCT;

        t->chars++;
        if (k != kind) {
            w = (struct span){word, (size_t)(p - word)};
            if (kind) {
                end_word(t, any);
                t->raw.stop_words += is_stop_word && is_stop_word(list, w);
            }
            word = p;
            kind = k;
            any = 0;
        }
        any |= c;
        if (sentence == WITHIN && c & PY_END)
            sentence = MARKS;
        else if (sentence == MARKS && !(c & PY_END))
            sentence = OUTSIDE;
        if (sentence == OUTSIDE && (before ^ c) & PY_WORD && !(c & PY_END)) {
            sentence = WITHIN;
            t->raw.sentences++;
        }
        before = c;
    }
    w = (struct span){word, (size_t)(p - word)};
    if (kind) {
        end_word(t, any);
        t->raw.stop_words += is_stop_word && is_stop_word(list, w);
    }
}

static bool is_bullet(struct span s)
{
    static const uint32_t bullets[] = {0x2022, 0x2023, 0x25B6, 0x25C0, 0x25E6, 0x25A0, 0x25A1, 0x25AA, 0x25AB, 0x2013};
    uint32_t c;
    int n;

    if (!s.n || (unsigned char)s.p[0] != 0xE2)
        return false;
    c = chars_decode(s.p, &n);
    for (size_t i = 0; i < sizeof bullets / sizeof *bullets; i++)
        if (c == bullets[i])
            return true;
    return false;
}

/* What is seen of a line as it stands; l->start is set. */
static void measure_raw_line(struct rpv2_line *l, struct span s)
{
    struct span r = chars_rstrip(s);
    char last = r.n ? r.p[r.n - 1] : 0;
    int n;

    l->ellipsis = span_ends(r, "...") || span_ends(r, "\xE2\x80\xA6");
    l->terminal = last == '.' || last == '!' || last == '?' || span_ends(r, "\xE2\x80\x9D");
    l->bullet = is_bullet(chars_lstrip(s));
    l->end = l->start;
    for (size_t i = 0; i < s.n; i += (size_t)n) {
        l->upper += (class[chars_decode(s.p + i, &n)] & PY_UPPER) != 0;
        l->end++;
    }
}

/* ---- the normalised text ---- */

/* Appends the normal form of an ASCII line; out has room for its bytes. */
static void normalise_ascii(struct buf *out, struct span s)
{
    size_t from = out->n;
    bool space = false;

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i], k = class[c];

        if (k & PY_PUNCT)
            continue;
        if (k & PY_SPACE) {
            space = true;
            continue;
        }
        if (space && out->n > from)
            out->p[out->n++] = ' ';
        space = false;
        out->p[out->n++] = (char)(k & PY_UPPER ? c | 32 : c);
    }
}

static bool u_room(struct rpv2_text *t, size_t n)
{
    if (n <= t->cap_u)
        return true;
    for (int i = 0; i < 2; i++) {
        free(t->u[i]);
        t->u[i] = malloc((n + n / 2) * sizeof **t->u);
    }
    t->cap_u = t->u[0] && t->u[1] ? n + n / 2 : 0;
    return t->cap_u != 0;
}

/* Strips and folds white space in place; returns what is left. */
static int32_t fold_spaces(uint16_t *u, int32_t n)
{
    int32_t k = 0;
    bool space = false;

    for (int32_t i = 0; i < n; i++) {
        if (class[u[i]] & PY_SPACE) {
            space = true;
            continue;
        }
        if (space && k)
            u[k++] = ' ';
        space = false;
        u[k++] = u[i];
    }
    return k;
}

/* As normalise_ascii, for any line. */
static int normalise_any(struct rpv2_text *t, struct span s)
{
    UErrorCode u = U_ZERO_ERROR;
    size_t most = 3 * s.n + 16; /* lower case and NFD lengthen UTF-16 below this */
    int32_t n = 0, m = 0;
    int len;

    if (!u_room(t, most))
        return ERR_NOMEM;
    for (size_t i = 0; i < s.n; i += (size_t)len) {
        uint32_t c = chars_decode(s.p + i, &len);
        if (!(class[c] & PY_PUNCT))
            U16_APPEND_UNSAFE(t->u[0], n, c);
    }
    n = u_strToLower(t->u[1], (int32_t)t->cap_u, t->u[0], n, "", &u);
    n = fold_spaces(t->u[1], n);
    n = icu_normalize(nfd, t->u[1], n, t->u[0], (int32_t)t->cap_u, &u);
    if (U_FAILURE(u) || buf_reserve(&t->norm, 3 * (size_t)n) < 0)
        return ERR_NOMEM;
    u_strToUTF8(t->norm.p + t->norm.n, (int32_t)(t->norm.cap - t->norm.n), &m, t->u[0], n, &u);
    if (U_FAILURE(u)) /* U_STRING_NOT_TERMINATED_WARNING is none */
        return ERR_NOMEM;
    t->norm.n += (size_t)m;
    return 0;
}

static int add_word(struct rpv2_text *t, struct rpv2_line *l, size_t from, size_t to)
{
    TRY(words_put(&t->words, from, to));
    l->words++;
    l->javascript += to - from == 10 && memcmp(t->norm.p + from, "javascript", 10) == 0;
    return 0;
}

/* Counts in the normal form of a line, which begins at byte `from` of t->norm. */
static int measure_norm_line(struct rpv2_text *t, struct rpv2_line *l, size_t from)
{
    const char *p = t->norm.p;
    size_t word = from;
    int n;

    for (size_t i = from; i < t->norm.n; i += (size_t)n) {
        uint32_t c = chars_decode(p + i, &n);

        l->chars++;
        l->numeric += (class[c] & PY_NUMERIC) != 0;
        if (c == ' ') {
            TRY(add_word(t, l, word, i));
            word = i + 1;
        }
    }
    return word < t->norm.n ? add_word(t, l, word, t->norm.n) : 0;
}

static int take_line(struct rpv2_text *t, struct span s, size_t start)
{
    struct rpv2_line *l;
    size_t from;
    bool ascii = true;

    TRY(mem_grow(&t->line, &t->cap_lines, t->n_lines + 1, sizeof *t->line));
    l = &t->line[t->n_lines++];
    *l = (struct rpv2_line){.start = start};
    measure_raw_line(l, s);
    for (size_t i = 0; i < s.n; i++)
        ascii &= (unsigned char)s.p[i] < 0x80;
    TRY(buf_reserve(&t->norm, s.n + 1));
    if (t->norm.n) /* taken back if the line is empty */
        t->norm.p[t->norm.n++] = ' ';
    from = t->norm.n;
    if (ascii)
        normalise_ascii(&t->norm, s);
    else
        TRY(normalise_any(t, s));
    if (t->norm.n == from) {
        t->norm.n -= from > 0;
        return 0;
    }
    TRY(measure_norm_line(t, l, from));
    t->norm_chars += l->chars + (from > 0);
    return 0;
}

int rpv2_text_set(struct rpv2_text *t, struct span text, bool (*is_stop_word)(const void *list, struct span word),
                  const void *list, struct err *e)
{
    size_t start = 0;

    pthread_once(&once, prepare);
    if (!class)
        return err_set(e, ERR_NOMEM, "no memory for the classes of characters");
    if (text.n >= 1U << 28) /* a line that long must do for ICU when it is normalised */
        return err_set(e, ERR_LIMIT, "a text of %zu bytes, 2^28 or more", text.n);
    t->chars = t->norm_chars = t->n_lines = t->words.n = t->norm.n = 0;
    memset(&t->raw, 0, sizeof t->raw);
    if (buf_reserve(&t->norm, 1) < 0) /* so that it is somewhere even if it is empty */
        return err_set(e, ERR_NOMEM, "no memory for a text");
    scan_raw(t, text, is_stop_word, list);
    t->raw.symbols = count_symbols(text);
    t->raw.braces = count_runs(text, '{', 1) + count_runs(text, '}', 1);
    for (struct span rest = text; rest.n;) {
        const char *q = memchr(rest.p, '\n', rest.n);
        struct span s = {rest.p, q ? (size_t)(q - rest.p) + 1 : rest.n};

        if (take_line(t, s, start) < 0)
            return err_set(e, ERR_NOMEM, "no memory for the lines of a text");
        start = t->line[t->n_lines - 1].end;
        rest.p += s.n;
        rest.n -= s.n;
    }
    return 0;
}
