#include "tokenize/rules.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "tokenize/model.h"

void rules_free(struct rules *r)
{
    if (!r)
        return;
    chars_free(&r->chars);
    unigram_free(&r->unigram);
    spm_normal_free(&r->spm);
    spm_normal_free(&r->denormal);
    free(r->types);
    free(r->unknown_surface);
    free(r);
}

void rules_scratch_free(struct rules_scratch *s)
{
    unigram_scratch_free(&s->unigram);
}

int rules_normalize(const struct rules *r, struct span text, bool first, struct buf *b, struct span *out, struct err *e)
{
    (void)first;
    buf_clear(b);
    TRY(spm_normalize(&r->spm, text, b, e));
    *out = buf_span(b);
    return 0;
}

int64_t rules_cut(const struct rules *r, struct split_state *st, uint32_t *ends, size_t max)
{
    size_t n = 0;

    while (st->at < st->n && n < max) {
        st->at += marks_word(&r->marks, st->text + st->at, st->n - st->at);
        ends[n++] = (uint32_t)st->at;
    }
    return (int64_t)n;
}

/* ---- models ---- */

int64_t rules_encode(const struct tokenizer *t, struct rules_scratch *s, struct bpe_scratch *merging, const uint8_t *p,
                     size_t n, uint32_t *ids)
{
    const struct rules *r = t->rules;

    if (r->model == MODEL_UNIGRAM)
        return unigram_encode(&r->unigram, &s->unigram, p, n, ids);
    return chars_encode(&r->chars, &t->bpe, &t->vocab, merging, p, n, ids);
}

/* ---- decoding ---- */

enum { UNKNOWN = 2, CONTROL = 3, BYTE = 6 };

/* Appends bytes of byte pieces as text: each that is no part of a character is U+FFFD. */
static int put_bytes(struct buf *bytes, struct buf *out)
{
    const char *p = bytes->p, *end = bytes->p + bytes->n;

    while (p < end) {
        uint32_t cp;
        int n = utf8_next(p, end, &cp), rc;
        bool bad = cp == 0xFFFD && !(n == 3 && memcmp(p, "\xef\xbf\xbd", 3) == 0);
        rc = bad ? buf_puts(out, "\xef\xbf\xbd") : buf_put(out, p, (size_t)n);
        if (rc < 0)
            return rc;
        p += bad ? 1 : n;
    }
    buf_clear(bytes);
    return 0;
}

static int put_piece(const struct rules *r, struct span s, bool at_begin, bool *swallowed, struct buf *out)
{
    *swallowed = false;
    if (at_begin && (r->spm.dummy_prefix || r->spm.remove_extra) && s.n >= 3 && memcmp(s.p, SPACE_MARK, 3) == 0) {
        s.p += 3;
        s.n -= 3;
        *swallowed = !r->spm.remove_extra;
    }
    for (size_t i = 0; i < s.n;) {
        bool mark = i + 3 <= s.n && memcmp(s.p + i, SPACE_MARK, 3) == 0;
        TRY(buf_putc(out, mark ? ' ' : s.p[i]));
        i += mark ? 3 : 1;
    }
    return 0;
}

static int decode_pieces(const struct tokenizer *t, const uint32_t *ids, size_t n, struct buf *out, struct err *e)
{
    const struct rules *r = t->rules;
    struct buf bytes = {0}, text = {0};
    bool at_begin = true, swallowed = false;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        struct span s = vocab_get(&t->vocab, ids[i]);
        if (!s.p) {
            rc = err_set(e, ERR_FORMAT, "id %u is not in the vocabulary (number %zu)", ids[i], i + 1);
            break;
        }
        if (r->types[ids[i]] == BYTE) {
            rc = buf_putc(&bytes, (char)strtol(s.p + 3, NULL, 16));
            continue;
        }
        rc = put_bytes(&bytes, &text);
        if (swallowed || text.n)
            at_begin = false;
        swallowed = false;
        if (rc == 0 && r->types[ids[i]] == UNKNOWN)
            rc = buf_puts(&text, r->unknown_surface);
        else if (rc == 0 && r->types[ids[i]] != CONTROL)
            rc = put_piece(r, s, at_begin, &swallowed, &text);
    }
    if (rc == 0)
        rc = put_bytes(&bytes, &text);
    if (rc == 0)
        rc = r->denormalizes ? spm_normalize(&r->denormal, buf_span(&text), out, e) : buf_put_span(out, buf_span(&text));
    buf_free(&bytes);
    buf_free(&text);
    return rc == ERR_NOMEM || rc == ERR_LIMIT ? err_set(e, rc, "out of memory for a text") : rc;
}

int rules_decode(const struct tokenizer *t, const uint32_t *ids, size_t n, struct buf *out, struct err *e)
{
    return decode_pieces(t, ids, n, out, e);
}
