/* Decoding, step by step: each takes the list of tokens and gives another. */
#include "base/ascii.h"
#include "base/utf8.h"
#include "tokenize/model.h"
#include "tokenize/steps_find.h"

/* Appends s with every `what` replaced. */
static int put_replaced(struct span s, const char *what, const char *by, struct buf *out)
{
    size_t n = strlen(what);

    for (size_t i = 0; i <= s.n && !n && *by; i++) { /* nothing is at each character, and at the end */
        if (i == s.n || ((unsigned char)s.p[i] & 0xC0) != 0x80)
            TRY(buf_puts(out, by));
        if (i < s.n)
            TRY(buf_putc(out, s.p[i]));
    }
    if (!n && *by)
        return 0;
    for (size_t i = 0; i < s.n;) {
        const char *hit = n ? memmem(s.p + i, s.n - i, what, n) : NULL;
        size_t to = hit ? (size_t)(hit - s.p) : s.n;
        TRY(buf_put(out, s.p + i, to - i));
        if (hit)
            TRY(buf_puts(out, by));
        i = hit ? to + n : s.n;
    }
    return 0;
}

/* The blanks that WordPiece's clean-up takes away from what begins at `from` in b. */
static int clean_up(struct buf *b, size_t from)
{
    static const char *const pairs[][2] = {{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"},
        {" n't", "n't"}, {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct buf copy = {0};
        int rc = put_replaced((struct span){b->p + from, b->n - from}, pairs[i][0], pairs[i][1], &copy);
        b->n = from;
        if (rc == 0)
            rc = buf_put_span(b, buf_span(&copy));
        buf_free(&copy);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int byte_level(const struct strings *in, struct strings *out)
{
    for (size_t i = 0; i < strings_n(in); i++) {
        int rc = format_unmap_bytes(strings_get(in, i), &out->text);
        if (rc < 0)
            return rc;
    }
    return strings_end(out);
}

/* The byte that a token stands for, or -1. */
static int byte_of(struct span s)
{
    int v = 0;

    if (s.n != 6 || memcmp(s.p, "<0x", 3) != 0 || s.p[5] != '>')
        return -1;
    for (int i = 3; i < 5; i++) {
        int d = ascii_hex(s.p[i]);

        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

/* Bytes that are no text are U+FFFD each, all of a run, and each a token of its own. */
static int end_bytes(struct buf *bytes, struct strings *out)
{
    size_t n = bytes->n;

    if (!n)
        return 0;
    if (utf8_valid(buf_span(bytes))) {
        TRY(buf_put_span(&out->text, buf_span(bytes)));
        TRY(strings_end(out));
    } else {
        for (size_t i = 0; i < n; i++) {
            TRY(buf_puts(&out->text, "\xef\xbf\xbd"));
            TRY(strings_end(out));
        }
    }
    buf_clear(bytes);
    return 0;
}

static int byte_fallback(const struct strings *in, struct buf *bytes, struct strings *out)
{
    buf_clear(bytes);
    for (size_t i = 0; i < strings_n(in); i++) {
        struct span s = strings_get(in, i);
        int b = byte_of(s);
        if (b >= 0) {
            TRY(buf_putc(bytes, (char)b));
            continue;
        }
        TRY(end_bytes(bytes, out));
        TRY(buf_put_span(&out->text, s));
        TRY(strings_end(out));
    }
    return end_bytes(bytes, out);
}

/* A token by itself, the i-th of n. */
static int put_token(const struct step *s, struct step_scratch *w, struct span t, size_t i, size_t n, struct buf *out,
                     struct err *e)
{
    size_t from = out->n, c = s->content.n;

    switch (s->kind) {
    case STEP_METASPACE:
        for (size_t k = 0; k < t.n;) {
            bool mark = t.n - k >= s->text.n && memcmp(t.p + k, s->text.p, s->text.n) == 0;
            if (!mark)
                TRY(buf_putc(out, t.p[k]));
            else if (i || s->scheme == SCHEME_NEVER)
                TRY(buf_putc(out, ' '));
            k += mark ? s->text.n : 1;
        }
        return 0;
    case STEP_REPLACE:
        return steps_replace(s, w, t, steps_most(t.n), out, e);
    case STEP_STRIP:
        for (size_t k = 0; k < s->start && t.n >= c && memcmp(t.p, s->content.p, c) == 0; k++) {
            t.p += c;
            t.n -= c;
        }
        for (size_t k = 0; k < s->stop && t.n >= c && memcmp(t.p + t.n - c, s->content.p, c) == 0; k++)
            t.n -= c;
        return buf_put_span(out, t);
    case STEP_WORDPIECE:
        if (i && t.n >= s->text.n && memcmp(t.p, s->text.p, s->text.n) == 0) {
            t.p += s->text.n;
            t.n -= s->text.n;
        } else if (i) {
            TRY(buf_putc(out, ' '));
        }
        TRY(buf_put_span(out, t));
        return s->clean ? clean_up(out, from) : 0;
    case STEP_BPE:
        return put_replaced(t, s->text.p, i + 1 == n ? "" : " ", out);
    default: { /* CTC */
        struct buf copy = {0};
        int rc = put_replaced(t, s->text.p, "", &copy);
        if (rc == 0 && s->clean && (rc = clean_up(&copy, 0)) == 0)
            rc = put_replaced(buf_span(&copy), s->content.p, " ", out);
        else if (rc == 0)
            rc = buf_put_span(out, buf_span(&copy));
        buf_free(&copy);
        return rc;
    }
    }
}

static int each(const struct step *s, struct step_scratch *w, const struct strings *in, struct strings *out,
                struct err *e)
{
    size_t n = strings_n(in);

    for (size_t i = 0; i < n; i++) {
        size_t from = out->text.n;
        if (s->kind == STEP_CTC && i && span_eq(strings_get(in, i), strings_get(in, i - 1)))
            continue;
        TRY(put_token(s, w, strings_get(in, i), i, n, &out->text, e));
        if (s->kind != STEP_CTC || out->text.n > from)
            TRY(strings_end(out));
    }
    return 0;
}

int steps_decode(const struct steps *s, struct step_scratch *w, struct strings *tokens, struct buf *out, struct err *e)
{
    int rc = 0;

    for (size_t k = 0; k < s->n && rc == 0; k++) {
        const struct step *x = &s->v[k];
        struct strings *to = &w->other, swap;
        strings_clear(to);
        if (x->kind == STEP_BYTE_LEVEL)
            rc = byte_level(tokens, to);
        else if (x->kind == STEP_BYTE_FALLBACK)
            rc = byte_fallback(tokens, &w->work, to);
        else if (x->kind == STEP_FUSE)
            rc = (rc = buf_put_span(&to->text, buf_span(&tokens->text))) < 0 ? rc : strings_end(to);
        else
            rc = each(x, w, tokens, to, e);
        swap = *tokens;
        *tokens = *to;
        *to = swap;
    }
    for (size_t i = 0; i < strings_n(tokens) && rc == 0; i++) {
        if (i && !s->n)
            rc = buf_putc(out, ' ');
        if (rc == 0)
            rc = buf_put_span(out, strings_get(tokens, i));
    }
    return rc == ERR_NOMEM || rc == ERR_LIMIT ? err_set(e, rc, "out of memory for a text") : rc;
}
