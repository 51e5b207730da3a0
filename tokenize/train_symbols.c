#include "tokenize/train_symbols.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "tokenize/merges.h"
#include "tokenize/model.h"
#include "tokenize/train_write.h"

enum { CODE_POINTS = 0x110000 };

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
}

static int add_new(struct train_symbols *s, struct span token, uint32_t *id, struct err *e)
{
    int64_t there = vocab_find(&s->vocab, token);

    *id = there >= 0 ? (uint32_t)there : s->vocab.n;
    return there >= 0 ? 0 : vocab_add(&s->vocab, *id, token, e);
}

uint32_t train_specials(const struct train_options *x)
{
    uint32_t n = 0;

    for (int i = 0; i < x->n_specials; i++)
        n += !train_is_repeated(x, i);
    return n;
}

static int add_specials(struct train_symbols *s, const struct train_options *x, struct err *e)
{
    uint32_t id;

    for (int i = 0; i < x->n_specials; i++) {
        if (!x->specials[i][0])
            return err_set(e, ERR_ARG, "a special token is empty");
        TRY(add_new(s, span_of(x->specials[i]), &id, e));
    }
    return 0;
}

/* The 256 bytes: by value, or in the order of the characters that stand for them. */
static int add_bytes(struct train_symbols *s, bool by_value, struct err *e)
{
    for (int round = 0; round < 2; round++) /* first those that stand for themselves */
        for (int b = 0; b < 256; b++) {
            char c = (char)b;
            bool itself;
            buf_clear(&s->text);
            if (format_map_bytes((struct span){&c, 1}, &s->text) < 0)
                return no_memory(e);
            itself = s->text.n == 1 || (unsigned char)s->text.p[0] < 0xC4;
            if (by_value ? round == 0 : (round == 0) == itself)
                TRY(add_new(s, buf_span(&s->text), &s->byte_id[b], e));
        }
    return 0;
}

/* ---- characters ---- */

static int count_characters(void *arg, struct span word, uint64_t count, struct err *e)
{
    uint64_t *counts = arg;
    uint32_t cp;

    (void)e;
    for (size_t i = 0; i < word.n;) {
        i += (size_t)utf8_next(word.p + i, word.p + word.n, &cp);
        counts[cp] += count;
    }
    return 0;
}

static int by_count(const void *a, const void *b)
{
    const struct train_char *x = a, *y = b;

    return x->count != y->count ? (x->count < y->count ? 1 : -1) : x->cp < y->cp ? -1 : 1;
}

static int by_code_point(const void *a, const void *b)
{
    const struct train_char *x = a, *y = b;

    return (x->cp > y->cp) - (x->cp < y->cp);
}

/* Leaves only those in front that are the wanted share of all. */
static void cut_chars(struct buf *chars, double coverage)
{
    const struct train_char *v = (const struct train_char *)(const void *)chars->p;
    size_t n = chars->n / sizeof *v, k = 0;
    uint64_t total = 0, sum = 0;

    for (size_t i = 0; i < n; i++)
        total += v[i].count;
    while (k < n && (double)sum < coverage * (double)total)
        sum += v[k++].count;
    chars->n = k * sizeof *v;
}

int train_chars_choose(struct word_counts *words, double coverage, uint32_t never, struct buf *chars, struct err *e)
{
    uint64_t *counts = calloc(CODE_POINTS, sizeof *counts);
    int rc = counts ? word_counts_each(words, count_characters, counts, e) : no_memory(e);

    for (uint32_t cp = 1; cp < CODE_POINTS && rc == 0; cp++)
        if (counts[cp] && cp != never && buf_put(chars, &(struct train_char){counts[cp], cp}, sizeof(struct train_char)) < 0)
            rc = no_memory(e);
    free(counts);
    if (rc < 0)
        return rc;
    if (chars->n)
        qsort(chars->p, chars->n / sizeof(struct train_char), sizeof(struct train_char), by_count);
    cut_chars(chars, coverage);
    return 0;
}

/* The tokens of a character. */
static int add_character(struct train_symbols *s, uint32_t cp, struct err *e)
{
    const char *inside = s->kind->inside;
    char c[4];
    struct span one = {c, (size_t)utf8_put(c, cp)};

    TRY(add_new(s, one, &s->first[cp], e));
    s->inside[cp] = s->first[cp];
    if (!inside)
        return 0;
    buf_clear(&s->text);
    if (buf_puts(&s->text, inside) < 0 || buf_put_span(&s->text, one) < 0)
        return no_memory(e);
    return add_new(s, buf_span(&s->text), &s->inside[cp], e);
}

/* Tokens for the characters of the words, in their order. */
static int add_characters(struct train_symbols *s, struct word_counts *words, double coverage, struct err *e)
{
    struct buf chars = {0};
    struct train_char *v;
    uint32_t always;
    size_t n;
    int rc;

    s->first = malloc(CODE_POINTS * sizeof *s->first);
    s->inside = malloc(CODE_POINTS * sizeof *s->inside);
    rc = s->first && s->inside ? train_chars_choose(words, coverage, 0, &chars, e) : no_memory(e);
    for (uint32_t cp = 0; cp < CODE_POINTS && rc == 0; cp++)
        s->first[cp] = s->inside[cp] = MERGES_END;
    v = (struct train_char *)(void *)chars.p;
    n = chars.n / sizeof *v;
    if (rc == 0 && s->kind->always) {
        utf8_next(s->kind->always, s->kind->always + strlen(s->kind->always), &always);
        rc = add_character(s, always, e);
    }
    if (rc == 0 && n)
        qsort(v, n, sizeof *v, by_code_point);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_character(s, v[i].cp, e);
    buf_free(&chars);
    return rc;
}

/* Tokens <0x00> to <0xFF>. */
static int add_fallback(struct train_symbols *s, struct err *e)
{
    char name[8];

    for (unsigned b = 0; b < 256; b++) {
        snprintf(name, sizeof name, "<0x%02X>", b);
        TRY(add_new(s, span_of(name), &s->byte_id[b], e));
    }
    return 0;
}

/* ---- all ---- */

int train_no_room(uint32_t tokens, uint32_t vocab_size, struct err *e)
{
    return err_set(e, ERR_ARG, "special tokens and characters are %u tokens already, more than a vocabulary of %u "
                               "(--character-coverage)", tokens, vocab_size);
}

int train_symbols_make(struct train_symbols *s, struct word_counts *words, const struct train_options *x, struct err *e)
{
    s->kind = &train_kinds[x->model];
    if (x->ties != TRAIN_TIES_TIKTOKEN)
        TRY(add_specials(s, x, e));
    if (!s->kind->characters)
        return add_bytes(s, x->ties == TRAIN_TIES_TIKTOKEN, e);
    if (s->kind->bytes || x->byte_fallback)
        TRY(add_fallback(s, e));
    s->first_joined = s->vocab.n;
    if (s->kind->scored)
        return 0;
    TRY(add_characters(s, words, x->coverage, e));
    if (s->vocab.n > x->vocab_size)
        return train_no_room(s->vocab.n, x->vocab_size, e);
    return 0;
}

int train_symbols_end(struct train_symbols *s, const struct train_options *x, struct err *e)
{
    return x->ties == TRAIN_TIES_TIKTOKEN ? add_specials(s, x, e) : 0;
}

void train_symbols_free(struct train_symbols *s)
{
    vocab_free(&s->vocab);
    buf_free(&s->scores);
    buf_free(&s->text);
    free(s->first);
    free(s->inside);
}

size_t train_symbols_of(const struct train_symbols *s, struct span word, uint32_t *to)
{
    size_t n = 0;
    uint32_t cp;

    if (s->across) {
        memcpy(to, word.p, word.n);
        return word.n / sizeof *to;
    }
    for (size_t i = 0; i < word.n && !s->kind->characters; i++)
        to[n++] = s->byte_id[(unsigned char)word.p[i]];
    for (size_t i = 0; i < word.n && s->kind->characters;) {
        const uint32_t *of = i ? s->inside : s->first;
        i += (size_t)utf8_next(word.p + i, word.p + word.n, &cp);
        to[n++] = of[cp];
    }
    return n;
}

float train_symbols_score(const struct train_symbols *s, uint32_t id)
{
    return id < s->first_joined ? 0 : ((const float *)(const void *)s->scores.p)[id - s->first_joined];
}

bool train_symbols_joins(const struct train_symbols *s, struct span token)
{
    return vocab_find(&s->vocab, token) >= (int64_t)s->first_joined;
}

int train_symbols_join(void *state, uint32_t left, uint32_t right, uint32_t *id, struct err *e)
{
    struct train_symbols *s = state;
    struct span end = vocab_get(&s->vocab, right);
    size_t skip = s->kind->inside ? strlen(s->kind->inside) : 0; /* right does not begin its word */

    buf_clear(&s->text);
    if (buf_put_span(&s->text, vocab_get(&s->vocab, left)) < 0 || buf_put(&s->text, end.p + skip, end.n - skip) < 0)
        return no_memory(e);
    return add_new(s, buf_span(&s->text), id, e);
}

int train_symbols_join_new(void *state, uint32_t left, uint32_t right, uint32_t *id, struct err *e)
{
    struct train_symbols *s = state;
    uint32_t n = s->vocab.n;

    TRY(train_symbols_join(state, left, right, id, e));
    if (s->vocab.n == n)
        *id = MERGES_END;
    return 0;
}
