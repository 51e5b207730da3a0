#include "tokenize/steps_find.h"

#include "base/utf8.h"
#include "tokenize/hf_table.h"
#include "tokenize/split_pcre.h"
#include "tokenize/ucd.h"

static int add(struct buf *matches, size_t end, bool match)
{
    struct step_match m = {(uint32_t)end, match};

    return buf_put(matches, &m, sizeof m);
}

/* The end of the last part. */
static size_t done(const struct buf *matches)
{
    return matches->n ? ((const struct step_match *)(const void *)(matches->p + matches->n))[-1].end : 0;
}

/* The length of the character at text[at]; 1 at the end. */
static size_t char_length(struct span text, size_t at)
{
    uint32_t cp;

    return at < text.n ? (size_t)utf8_next(text.p + at, text.p + text.n, &cp) : 1;
}

/* Empty matches stay, as parts of no length: they cut.  One right behind the match before is none, and the
 * search goes on a character later. */
static int find_pcre(const struct split_pcre *x, struct span text, struct buf *matches, struct err *e)
{
    size_t at = 0, bounds[2], last = SIZE_MAX;

    while (at <= text.n) {
        int found = split_pcre_match(x, (const uint8_t *)text.p, text.n, at, true, bounds, e);
        if (found <= 0)
            return found;
        if (bounds[0] == bounds[1] && bounds[0] == last) {
            at += char_length(text, at);
            continue;
        }
        if (bounds[0] > done(matches))
            TRY(add(matches, bounds[0], false));
        TRY(add(matches, bounds[1], true));
        at = last = bounds[1];
    }
    return 0;
}

static int find_regex(const struct split *x, struct span text, struct buf *matches, struct err *e)
{
    struct split_state st;
    uint32_t ends[SPLIT_MIN_ENDS * 2];
    int64_t n = 0;
    int rc = 0;

    if (x->kind == SPLIT_PCRE)
        return text.n ? find_pcre(x->pcre, text, matches, e) : 0;
    split_begin(&st, text.p, text.n);
    while (rc == 0 && (n = split_next(x, &st, ends, SPLIT_MIN_ENDS * 2, e)) > 0)
        for (int64_t i = 0; i < n && rc == 0; i++)
            rc = add(matches, ends[i], true);
    return n < 0 ? (int)n : rc;
}

/* Nothing is found at each character, and at the end. */
static int find_nothing(struct span text, struct buf *matches)
{
    for (size_t at = 0; at < text.n;) {
        TRY(add(matches, at, true));
        at += char_length(text, at);
        TRY(add(matches, at, false));
    }
    return text.n ? add(matches, text.n, true) : 0;
}

static int find_text(struct span what, struct span text, struct buf *matches)
{
    size_t at = 0;

    if (!what.n)
        return find_nothing(text, matches);
    while (at < text.n) {
        const char *hit = memmem(text.p + at, text.n - at, what.p, what.n);
        if (!hit)
            break;
        if (hit > text.p + at)
            TRY(add(matches, (size_t)(hit - text.p), false));
        at = (size_t)(hit - text.p) + what.n;
        TRY(add(matches, at, true));
    }
    return 0;
}

/* What kind of character this is to a step: 0: not looked for; parts with the same number of
 * more than 1 stay together. */
static int kind_of(const struct step *s, uint32_t cp)
{
    bool space = ucd_class(cp) & UCD_SPACE;

    switch (s->kind) {
    case STEP_DIGITS:
        return (hf_class(cp) & HF_NUMBER) != 0;
    case STEP_PUNCTUATION:
        return (hf_class(cp) & HF_PUNCT) != 0;
    case STEP_WHITESPACE_SPLIT:
        return space;
    case STEP_WHITESPACE:
        return space ? 0 : hf_class(cp) & HF_WORD ? 2 : 3;
    default:
        return space ? 0 : hf_class(cp) & HF_PUNCT ? 1 : 2; /* BERT_SPLIT */
    }
}

static int find_chars(const struct step *s, struct span text, struct buf *matches)
{
    const char *p = text.p, *end = text.p + text.n, *begin = p;
    int last = -1;

    while (p < end) {
        uint32_t cp;
        int n = utf8_next(p, end, &cp), kind = kind_of(s, cp);
        if (p > text.p && (kind != last || kind == 1))
            TRY(add(matches, (size_t)(p - begin), last != 0));
        last = kind;
        p += n;
    }
    return text.n ? add(matches, text.n, last != 0) : 0;
}

static int find_lengths(const struct step *s, struct span text, struct buf *matches)
{
    size_t chars = 0;

    for (size_t i = 0; i < text.n; i++) {
        if (((unsigned char)text.p[i] & 0xC0) == 0x80 || chars++ < s->start)
            continue;
        TRY(add(matches, i, true));
        chars = 1;
    }
    return text.n ? add(matches, text.n, true) : 0;
}

int steps_find(const struct step *s, struct span text, struct buf *matches, struct err *e)
{
    int rc;

    buf_clear(matches);
    if (s->kind == STEP_FIXED_LENGTH)
        rc = find_lengths(s, text, matches);
    else if (s->kind == STEP_SPLIT || s->kind == STEP_REPLACE || s->kind == STEP_BYTE_LEVEL)
        rc = s->is_regex ? find_regex(&s->split, text, matches, e) : find_text(s->text, text, matches);
    else
        rc = find_chars(s, text, matches);
    if (rc == 0 && done(matches) < text.n)
        rc = add(matches, text.n, false);
    return rc == ERR_NOMEM ? err_set(e, rc, "out of memory for a text") : rc;
}

/* A byte by a few others, as SentencePiece's files do with spaces. */
static int replace_byte(char what, struct span with, struct span text, size_t most, struct buf *out, struct err *e)
{
    size_t n = ISA_PICK(bytes_count)(what, text), size = text.n + n * with.n - n;

    if (n && size > most)
        return err_set(e, ERR_LIMIT, "a Replace makes a text of %zu bytes of %zu", size, text.n);
    if (buf_reserve(out, size + REPLACE_SLACK) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a text");
    ISA_PICK(bytes_replace)(what, with, text, out->p + out->n);
    out->n += size;
    return 0;
}

int steps_replace(const struct step *s, struct step_scratch *w, struct span text, size_t most, struct buf *out, struct err *e)
{
    const struct step_match *m;
    size_t begin = 0, n, size = 0;
    int rc;

    if (!s->is_regex && s->text.n == 1 && s->content.n <= REPLACE_WITH)
        return replace_byte(*s->text.p, s->content, text, most, out, e);
    rc = steps_find(s, text, &w->matches, e);
    m = (const struct step_match *)(const void *)w->matches.p;
    n = w->matches.n / sizeof *m;
    for (size_t i = 0; i < n && rc == 0; begin = m[i++].end)
        size += m[i].match ? s->content.n : m[i].end - begin;
    if (rc == 0 && size > most)
        return err_set(e, ERR_LIMIT, "a Replace makes a text of %zu bytes of %zu", size, text.n);
    begin = 0;
    for (size_t i = 0; i < n && rc == 0; begin = m[i++].end)
        rc = m[i].match ? buf_put_span(out, s->content) : buf_put(out, text.p + begin, m[i].end - begin);
    return rc == ERR_NOMEM ? err_set(e, rc, "out of memory for a text") : rc;
}
