/* Normalisation, step by step. */
#include "base/utf8.h"
#include "tokenize/hf_table.h"
#include "tokenize/model.h"
#include "tokenize/normal.h"
#include "tokenize/steps_find.h"
#include "tokenize/ucd.h"

static int put_char(struct buf *out, uint32_t cp)
{
    char c[4];
    size_t n = (size_t)utf8_put(c, cp);

    return buf_put(out, c, n);
}

static int put_lower(struct buf *out, uint32_t cp)
{
    return cp == 0x130 ? buf_puts(out, "i\xcc\x87") : put_char(out, hf_lower(cp));
}

/* What NeMo's and fairseq's data want: -1 nothing, else the character. */
static int64_t nmt_char(uint32_t cp)
{
    if ((cp >= 1 && cp <= 8) || cp == 11 || (cp >= 14 && cp <= 31) || cp == 127 || cp == 0x8F || cp == 0x9F)
        return -1;
    if (cp == 9 || cp == 10 || cp == 12 || cp == 13 || cp == 0x1680 || (cp >= 0x200B && cp <= 0x200F) || cp == 0x2028 ||
        cp == 0x2029 || cp == 0x2581 || cp == 0xFEFF || cp == 0xFFFD)
        return ' ';
    return cp;
}

/* A character by a step that looks at each by itself. */
static int put_by(const struct step *s, uint32_t cp, struct buf *out)
{
    int64_t nmt;

    if (s->kind == STEP_LOWERCASE)
        return put_lower(out, cp);
    if (s->kind == STEP_STRIP_ACCENTS)
        return hf_class(cp) & HF_ACCENT ? 0 : put_char(out, cp);
    nmt = nmt_char(cp);
    return nmt < 0 ? 0 : put_char(out, (uint32_t)nmt);
}

static int by_chars(const struct step *s, struct span in, struct buf *out)
{
    for (size_t i = 0; i < in.n;) {
        uint32_t cp;
        i += (size_t)utf8_next(in.p + i, in.p + in.n, &cp);
        TRY(put_by(s, cp, out));
    }
    return 0;
}

/* BertNormalizer: control characters and white space; spaces around ideographs; then accents; then capitals. */
static int clean(const struct step *s, struct span in, struct buf *out)
{
    for (size_t i = 0; i < in.n;) {
        uint32_t cp;
        unsigned bits;
        i += (size_t)utf8_next(in.p + i, in.p + in.n, &cp);
        bits = hf_class(cp);
        if (s->clean && bits & HF_BERT_CONTROL)
            continue;
        if (s->clean && ucd_class(cp) & UCD_SPACE)
            cp = ' ';
        if (s->chinese && bits & HF_CHINESE)
            TRY(buf_putc(out, ' '));
        TRY(put_char(out, cp));
        if (s->chinese && bits & HF_CHINESE)
            TRY(buf_putc(out, ' '));
    }
    return 0;
}

static int bert(const struct step *s, struct step_scratch *w, struct span in, struct buf *out, struct err *e)
{
    struct span text;
    int rc;

    buf_clear(&w->work);
    TRY(clean(s, in, &w->work));
    text = buf_span(&w->work);
    if (s->accents) {
        struct buf plain = {0};
        rc = normal_form(NORMAL_NFD, text, &w->matches, &text, e);
        if (rc == 0)
            rc = buf_reserve(&plain, text.n);
        for (size_t i = 0; i < text.n && rc == 0;) {
            uint32_t cp;
            size_t n = (size_t)utf8_next(text.p + i, text.p + text.n, &cp);
            if (!(hf_class(cp) & HF_BERT_ACCENT))
                rc = buf_put(&plain, text.p + i, n);
            i += n;
        }
        buf_free(&w->work);
        w->work = plain;
        if (rc < 0)
            return rc;
        text = buf_span(&w->work);
    }
    return s->lowercase ? by_chars(&(struct step){.kind = STEP_LOWERCASE}, text, out) : buf_put_span(out, text);
}

/* ---- Precompiled: SentencePiece's rules, as Hugging Face applies them ---- */

/* The length of the grapheme at p. */
static size_t grapheme(const char *p, const char *end)
{
    uint32_t cp;
    int n = utf8_next(p, end, &cp);

    if (cp == '\r' && end - p > 1 && p[1] == '\n')
        return 2;
    if (end - p == n || (unsigned char)p[n] < 0x80) /* nothing in ASCII belongs to what is before it */
        return (size_t)n;
    return (size_t)n + normal_extends(cp, p + n, end);
}

/* The length of the ASCII at p that no rule is for, without the last of it if more follows, which may belong to that. */
static size_t plain_length(const struct charsmap *m, const char *p, size_t n)
{
    size_t i = 0;

    while (i < n && (unsigned char)p[i] < 0x80 && m->plain[(unsigned char)p[i]])
        i++;
    return i && i < n ? i - 1 : i;
}

static int precompiled(const struct step *s, struct span in, struct buf *out)
{
    struct span text;
    size_t taken;

    for (size_t i = 0, n; i < in.n; i += n) {
        n = plain_length(&s->map, in.p + i, in.n - i);
        if (n) {
            TRY(buf_put(out, in.p + i, n));
            continue;
        }
        n = grapheme(in.p + i, in.p + in.n);
        if (n < 6 && charsmap_find(&s->map, (struct span){in.p + i, n}, false, &text, &taken)) {
            TRY(buf_put_span(out, text));
            continue;
        }
        for (size_t k = 0, m; k < n; k += m) {
            uint32_t cp;
            m = (size_t)utf8_next(in.p + i + k, in.p + i + n, &cp);
            if (charsmap_find(&s->map, (struct span){in.p + i + k, m}, false, &text, &taken))
                TRY(buf_put_span(out, text));
            else
                TRY(buf_put(out, in.p + i + k, m));
        }
    }
    return 0;
}

static int strip(const struct step *s, struct span in, struct buf *out, bool *head_lost)
{
    size_t had = in.n, left = s->left ? added_skip_space(in, 0) : 0;

    in.n = s->right ? added_skip_space_back(in, had, left) : had;
    *head_lost |= left > 0;
    return buf_put(out, in.p + left, in.n - left);
}

/* One step; a replacement makes `most` bytes at most. */
static int run(const struct step *s, struct step_scratch *w, struct span in, size_t most, struct buf *out, bool *head_lost,
               struct err *e)
{
    struct span text;

    switch (s->kind) {
    case STEP_NFC:
    case STEP_NFD:
    case STEP_NFKC:
    case STEP_NFKD:
        TRY(normal_form((enum normal_form)(s->kind - STEP_NFC), in, &w->work, &text, e));
        return buf_put_span(out, text);
    case STEP_BERT:
        return bert(s, w, in, out, e);
    case STEP_REPLACE:
        return steps_replace(s, w, in, most, out, e);
    case STEP_PREPEND:
        if (in.n)
            TRY(buf_put_span(out, s->content));
        return buf_put_span(out, in);
    case STEP_STRIP:
        return strip(s, in, out, head_lost);
    case STEP_PRECOMPILED:
        return precompiled(s, in, out);
    case STEP_BYTE_LEVEL:
        return format_map_bytes(in, out);
    default:
        return by_chars(s, in, out);
    }
}

int steps_normalize(const struct steps *s, struct step_scratch *w, struct span text, struct buf *out, bool *head_lost,
                    struct err *e)
{
    struct buf *to = &w->other.text, *from = out;
    int rc = 0;

    *head_lost = false;
    buf_clear(from);
    rc = utf8_valid(text) ? buf_put_span(from, text) : utf8_repair(text, from);
    for (size_t i = 0; i < s->n && rc == 0; i++) {
        struct buf swap;
        buf_clear(to);
        rc = run(&s->v[i], w, buf_span(from), steps_most(text.n), to, head_lost, e);
        swap = *from;
        *from = *to;
        *to = swap;
    }
    return rc == ERR_NOMEM ? err_set(e, rc, "out of memory for a text") : rc;
}
