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
    wordlist_free(&r->words);
    steps_free(&r->normal);
    steps_free(&r->cut);
    steps_free(&r->decode);
    spm_normal_free(&r->spm);
    spm_normal_free(&r->denormal);
    free(r->types);
    free(r->unknown_surface);
    free(r->normal_names);
    free(r->cut_names);
    free(r);
}

static int spm_names(const struct spm_normal *s, struct buf *b)
{
    const char *const names[] = {s->map.n_units ? "Precompiled" : NULL, s->remove_extra ? "single spaces" : NULL,
                                 s->dummy_prefix ? "dummy prefix" : NULL, s->suffix ? "dummy suffix" : NULL,
                                 s->escape ? "U+2581 for spaces" : NULL};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i])
            TRY(buf_printf(b, "%s%s", b->n ? ", " : "", names[i]));
    return 0;
}

int rules_name(struct rules *r, struct err *e)
{
    struct buf normal = {0}, cut = {0};
    int rc = steps_names(&r->normal, &normal);

    if (rc == 0)
        rc = steps_names(&r->cut, &cut);
    if (rc == 0 && r->sentencepiece)
        rc = spm_names(&r->spm, &normal);
    if (rc == 0)
        rc = buf_puts(&normal, normal.n ? "" : "none");
    r->normal_names = normal.p;
    r->cut_names = cut.p;
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}

void rules_scratch_free(struct rules_scratch *s)
{
    unigram_scratch_free(&s->unigram);
    step_scratch_free(&s->steps);
    strings_free(&s->pieces);
    buf_free(&s->ends);
}

int rules_normalize(const struct rules *r, struct rules_scratch *s, struct span text, bool first, struct buf *b,
                    struct span *out, struct err *e)
{
    bool lost = false;

    buf_clear(b);
    if (r->sentencepiece)
        TRY(spm_normalize(&r->spm, text, b, e));
    else
        TRY(steps_normalize(&r->normal, &s->steps, text, b, &lost, e));
    *out = buf_span(b);
    s->first = first && !lost ? b->p : NULL;
    return 0;
}

/* ---- cutting ---- */

/* Pieces into words where words are merged by themselves. */
static int cut_words(const struct rules *r, struct rules_scratch *s)
{
    struct buf swap = s->pieces.ends;

    buf_clear(&s->ends);
    for (size_t i = 0; i < strings_n(&s->pieces); i++) {
        struct span piece = strings_get(&s->pieces, i);
        for (size_t at = 0; at < piece.n;) {
            uint32_t ends[256], base = (uint32_t)(piece.p - s->pieces.text.p);
            size_t n = ISA_PICK(word_marks_ends)(&r->marks, (const uint8_t *)piece.p, piece.n, &at, ends, 256);
            for (size_t k = 0; k < n; k++)
                ends[k] += base;
            TRY(buf_put(&s->ends, ends, n * sizeof *ends));
        }
    }
    s->pieces.ends = s->ends;
    s->ends = swap;
    return 0;
}

int rules_pieces(const struct rules *r, struct rules_scratch *s, struct span text, struct err *e)
{
    TRY(steps_cut(&r->cut, &s->steps, text, text.p == s->first, r->model != MODEL_BYTES, &s->pieces, e));
    if (s->pieces.text.n > UINT32_MAX / 2)
        return err_set(e, ERR_LIMIT, "a text is too long once it is normalised");
    if (r->model == MODEL_CHARS && r->marks.cuts && cut_words(r, s) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a text");
    return 0;
}

int64_t rules_cut(const struct rules *r, struct split_state *st, uint32_t *ends, size_t max)
{
    return st->at < st->n ? (int64_t)ISA_PICK(word_marks_ends)(&r->marks, st->text, st->n, &st->at, ends, max) : 0;
}

/* ---- models ---- */

int64_t rules_encode(const struct tokenizer *t, struct rules_scratch *s, struct bpe_scratch *merging, const uint8_t *p,
                     size_t n, uint32_t *ids)
{
    const struct rules *r = t->rules;

    if (r->model == MODEL_UNIGRAM)
        return unigram_encode(&r->unigram, &s->unigram, p, n, ids);
    if (r->model == MODEL_WORDS)
        return wordlist_encode(&r->words, &t->vocab, p, n, ids);
    return chars_encode(&r->chars, &t->bpe, &t->vocab, merging, p, n, ids);
}

/* ---- decoding ---- */

enum { UNKNOWN = 2, CONTROL = 3, BYTE = 6 };

/* Appends bytes of byte pieces as text: each that is no part of a character is U+FFFD. */
static int put_bytes(struct buf *bytes, struct buf *out)
{
    size_t at = 0;

    TRY(buf_reserve(out, bytes->n));
    while (at < bytes->n) {
        const char *p = bytes->p + at;
        uint32_t cp;
        int n = utf8_next(p, bytes->p + bytes->n, &cp), rc;
        bool bad = cp == 0xFFFD && !(n == 3 && memcmp(p, "\xef\xbf\xbd", 3) == 0);
        rc = bad ? buf_puts(out, "\xef\xbf\xbd") : buf_put(out, p, (size_t)n);
        if (rc < 0)
            return rc;
        at += bad ? 1 : (size_t)n;
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

static int decode_tokens(const struct tokenizer *t, const uint32_t *ids, size_t n, struct buf *out, struct err *e)
{
    struct step_scratch w = {0};
    struct strings tokens = {0};
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct added_token *a = trie_is_empty(&t->added.set[true].texts) ? NULL : added_get(&t->added, ids[i]);
        struct span s = a && a->normalized ? a->text : vocab_get(&t->vocab, ids[i]);
        if (!s.p)
            rc = err_set(e, ERR_FORMAT, "id %u is not in the vocabulary (number %zu)", ids[i], i + 1);
        else if (t->rules->model == MODEL_BYTES)
            rc = format_decode_bytes(t, ids[i], s, out);
        else if ((rc = buf_put_span(&tokens.text, s)) == 0)
            rc = strings_end(&tokens);
    }
    if (rc == 0 && t->rules->model != MODEL_BYTES)
        rc = steps_decode(&t->rules->decode, &w, &tokens, out, e);
    strings_free(&tokens);
    step_scratch_free(&w);
    return rc == ERR_NOMEM || rc == ERR_LIMIT ? err_set(e, rc, "out of memory for a text") : rc;
}

int rules_decode(const struct tokenizer *t, const uint32_t *ids, size_t n, struct buf *out, struct err *e)
{
    return t->rules->sentencepiece ? decode_pieces(t, ids, n, out, e) : decode_tokens(t, ids, n, out, e);
}
