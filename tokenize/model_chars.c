#include "tokenize/model_chars.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "tokenize/bpe_pairs.h"

enum {
    FROZEN = CHARS_WHOLE,   /* a user-defined piece: an id that nothing is joined with */
    OTHER = (1 << 30) - 1   /* a character that no piece has */
};

void chars_set_bytes(int64_t byte_id[256], const struct vocab *v)
{
    for (int i = 0; i < 256; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        byte_id[i] = vocab_find(v, span_of(name));
    }
}

bool chars_has_all_bytes(const int64_t byte_id[256], const struct vocab *or_chars)
{
    for (int i = 0; i < 256; i++) {
        char c = (char)i;
        if (byte_id[i] < 0 && (i >= 128 || !or_chars || vocab_find(or_chars, (struct span){&c, 1}) < 0))
            return false;
    }
    return true;
}

/* The length of the character at p by its first byte, as SentencePiece steps. */
static size_t char_length(const uint8_t *p, size_t left)
{
    size_t n = (size_t)"\1\1\1\1\1\1\1\1\1\1\1\1\2\2\3\4"[*p >> 4];
    return n < left ? n : left;
}

/* ---- SentencePiece: what can be joined ---- */

/* Lower for higher scores, of which 0 is above -0. */
static uint32_t rank_of_score(float score)
{
    uint32_t bits;

    memcpy(&bits, &score, sizeof bits);
    return bits >> 31 ? bits : ~bits & INT32_MAX;
}

struct scored {
    uint32_t rank, id;
};

static int by_score(const void *x, const void *y)
{
    const struct scored *a = x, *b = y;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* A symbol for each character of a piece that is no piece. */
static int add_virtual(struct chars *c, struct span piece, uint32_t *next, struct err *e)
{
    for (size_t i = 0, n; i < piece.n; i += n) {
        struct span one = {piece.p + i, n = char_length((const uint8_t *)piece.p + i, piece.n - i)};
        if (trie_find(&c->symbols, one.p, one.n) == TRIE_NONE)
            TRY(trie_add(&c->symbols, one, (int32_t)(*next)++, e));
    }
    return 0;
}

/* Every two symbols that together are the piece. */
static int add_splits(struct chars *c, struct bpe *b, struct span piece, uint32_t rank, uint32_t id, struct err *e)
{
    uint32_t node = TRIE_ROOT;
    size_t at = 0;

    while (at < piece.n) {
        size_t n = char_length((const uint8_t *)piece.p + at, piece.n - at);
        int32_t left, right;
        for (size_t i = 0; i < n; i++) /* the piece is in the trie */
            node = trie_step(&c->symbols, node, (uint8_t)piece.p[at + i]);
        at += n;
        if (at == piece.n || (left = trie_value(&c->symbols, node)) == TRIE_NONE)
            continue;
        right = trie_find(&c->symbols, piece.p + at, piece.n - at);
        if (right != TRIE_NONE)
            TRY(bpe_add_merge(b, (uint32_t)left, (uint32_t)right, rank, id, e));
    }
    return 0;
}

static int add_pairs(struct chars *c, struct bpe *b, const struct vocab *v, struct err *e)
{
    struct scored *order = malloc((c->first_virtual + 1) * sizeof *order);
    uint32_t n = 0, rank = 0, next = c->first_virtual;
    int rc = order ? 0 : err_set(e, ERR_NOMEM, "out of memory for a vocabulary");

    for (uint32_t id = 0; id < c->first_virtual && rc == 0; id++) {
        if (isnan(c->scores[id]))
            continue;
        order[n++] = (struct scored){rank_of_score(c->scores[id]), id};
        rc = add_virtual(c, vocab_get(v, id), &next, e);
    }
    if (rc == 0)
        qsort(order, n, sizeof *order, by_score);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        rank += i && order[i].rank != order[i - 1].rank;
        rc = add_splits(c, b, vocab_get(v, order[i].id), rank, order[i].id, e);
    }
    free(order);
    return rc;
}

int chars_make(struct chars *c, struct bpe *b, const struct vocab *v, bool joins, struct err *e)
{
    for (uint32_t id = 0; id < c->first_virtual; id++)
        if (!isnan(c->scores[id]))
            TRY(trie_add(&c->symbols, vocab_get(v, id), (int32_t)id, e));
    TRY(bpe_begin(b, v->used, e));
    if (joins)
        TRY(add_pairs(c, b, v, e));
    return chars_finish(c, v, e);
}

int chars_finish(struct chars *c, const struct vocab *v, struct err *e)
{
    c->bmp = malloc(65536 * sizeof *c->bmp);
    if (!c->bmp)
        return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
    for (uint32_t cp = 0; cp < 65536; cp++) {
        char s[4];
        bool none = !c->sentencepiece || (cp >= 0xD800 && cp < 0xE000);
        int64_t id = none ? -1 : trie_find(&c->symbols, s, (size_t)utf8_put(s, cp));
        c->bmp[cp] = id < 0 ? OTHER : (uint32_t)id;
    }
    for (uint32_t id = 0; id < v->n && !c->sentencepiece; id++) {
        struct span s = vocab_get(v, id);
        uint32_t cp;
        if (s.n && s.n <= 3 && (size_t)utf8_next(s.p, s.p + s.n, &cp) == s.n && vocab_find(v, s) == (int64_t)id)
            c->bmp[cp] = id;
    }
    return 0;
}

void chars_free(struct chars *c)
{
    free(c->scores);
    trie_free(&c->user);
    trie_free(&c->symbols);
    free(c->bmp);
    free((void *)(uintptr_t)c->prefix);
    free((void *)(uintptr_t)c->suffix);
    memset(c, 0, sizeof *c);
}

/* ---- SentencePiece: encoding ---- */

static uint32_t symbol_of(const struct chars *c, const uint8_t *p, size_t n)
{
    int32_t x;

    if (n == 1 && *p < 0x80)
        return c->bmp[*p];
    if (n == 3 && *p > 0xE0 && (p[1] & 0xC0) == 0x80 && (p[2] & 0xC0) == 0x80)
        return c->bmp[(*p & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u)];
    x = trie_find(&c->symbols, (const char *)p, n);
    return x == TRIE_NONE ? OTHER : (uint32_t)x;
}

/* What a symbol that is no piece leaves behind; the ids' number. */
static size_t put_unknown(const struct chars *c, const uint8_t *p, size_t n, uint32_t *ids, bool *after)
{
    if (c->byte_fallback) {
        for (size_t i = 0; i < n; i++)
            ids[i] = (uint32_t)c->byte_id[p[i]];
        return n;
    }
    if (*after)
        return 0;
    *after = true;
    ids[0] = (uint32_t)c->unknown;
    return 1;
}

/* The user-defined piece that p[0..n-1] begins with, or TRIE_NONE: it is a character.  *len: its bytes. */
static int32_t user_piece(const struct chars *c, const uint8_t *p, size_t n, size_t *len)
{
    int32_t user = trie_is_empty(&c->user) ? TRIE_NONE : trie_longest(&c->user, (const char *)p, n, len);

    if (user == TRIE_NONE)
        *len = char_length(p, n);
    return user;
}

/* The symbols of a piece, to be joined; their number. */
static size_t symbols_of(const struct chars *c, const uint8_t *p, size_t n, uint32_t *sym)
{
    size_t k = 0, len;

    for (size_t at = 0; at < n; at += len) {
        int32_t user = user_piece(c, p + at, n - at, &len);
        sym[k++] = user == TRIE_NONE ? symbol_of(c, p + at, len) : FROZEN | (uint32_t)user;
    }
    return k;
}

/* The ids of the symbols that are left of a piece, in their place; their number. */
static size_t ids_of_symbols(const struct chars *c, const struct vocab *v, const uint8_t *p, size_t n, uint32_t *ids, size_t left)
{
    size_t count = 0, len;
    bool after = false;
    /* Ids are never more than bytes, but they may be more than symbols: those move to the end. */
    uint32_t *sym = ids + (n - left);

    memmove(sym, ids, left * sizeof *sym);
    for (size_t i = 0, at = 0; i < left; i++, at += len) {
        uint32_t x = sym[i] & ~(uint32_t)FROZEN;
        if (x >= c->first_virtual) {
            len = char_length(p + at, n - at);
            count += put_unknown(c, p + at, len, ids + count, &after);
        } else {
            len = vocab_get(v, x).n;
            ids[count++] = x;
            after = false;
        }
    }
    return count;
}

/* A symbol of a word by its first byte and the one after its last. */
enum { PLACE_BITS = 8, PLACE = (1 << PLACE_BITS) - 1 };

void chars_begin_places(const struct chars *c, struct bpe_word *w)
{
    size_t len;

    w->count = 0;
    for (size_t at = 0; at < w->n; at += len) {
        int32_t user = user_piece(c, w->p + at, w->n - at, &len);
        w->ids[w->count++] = user == TRIE_NONE ? (uint32_t)(at << PLACE_BITS | (at + len)) : FROZEN | (uint32_t)user;
    }
}

/* The piece of this text, if text is made of it, or VOCAB_NONE. */
static int64_t piece_of(const struct chars *c, const struct vocab *v, const uint8_t *p, size_t n)
{
    int64_t id = vocab_find_own(v, (struct span){(const char *)p, n});

    return id < 0 || isnan(c->scores[id]) ? VOCAB_NONE : id;
}

uint32_t chars_join_places(const struct chars *c, const struct vocab *v, const struct bpe_word *w, uint32_t left, uint32_t right,
                           uint32_t *both)
{
    uint32_t begin = left >> PLACE_BITS, end = right & PLACE;
    int64_t id = (left | right) & FROZEN ? VOCAB_NONE : piece_of(c, v, w->p + begin, end - begin);

    *both = begin << PLACE_BITS | end;
    return id < 0 ? BPE_NO_RANK : rank_of_score(c->scores[id]);
}

void chars_end_places(const struct chars *c, const struct vocab *v, struct bpe_word *w)
{
    uint32_t sym[BPE_SHORT];
    size_t n = w->count, count = 0;
    bool after = false;

    memcpy(sym, w->ids, n * sizeof *sym);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = w->p + (sym[i] >> PLACE_BITS);
        size_t len = (sym[i] & PLACE) - (sym[i] >> PLACE_BITS);
        int64_t id = sym[i] & FROZEN ? sym[i] & ~(uint32_t)FROZEN : piece_of(c, v, p, len);
        if (id < 0) {
            count += put_unknown(c, p, len, w->ids + count, &after);
        } else {
            w->ids[count++] = (uint32_t)id;
            after = false;
        }
    }
    w->count = (uint32_t)count;
}

/* ---- Hugging Face ---- */

/* The token of a character with its affixes, or -1. */
static int64_t affixed(const struct chars *c, const struct vocab *v, struct span one, bool first, bool last)
{
    struct buf b = {0};
    int64_t id;

    if (c->prefix && !first)
        buf_puts(&b, c->prefix);
    buf_put_span(&b, one);
    if (c->suffix && last)
        buf_puts(&b, c->suffix);
    id = vocab_find_own(v, buf_span(&b));
    buf_free(&b);
    return id;
}

static int64_t token_of(const struct chars *c, const struct vocab *v, const uint8_t *p, size_t n, bool first, bool last)
{
    struct span one = {(const char *)p, n};
    uint32_t x;

    if (c->prefix || c->suffix)
        return affixed(c, v, one, first, last);
    if (n == 4)
        return vocab_find_own(v, one);
    x = c->bmp[n == 1   ? p[0]
               : n == 2 ? (p[0] & 31u) << 6 | (p[1] & 63u)
                        : (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u)];
    return x == OTHER ? -1 : (int64_t)x;
}

/* True if there is a token for each of these bytes. */
static bool falls_back(const struct chars *c, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c->byte_id[p[i]] < 0)
            return false;
    return c->byte_fallback;
}

/* The tokens of a piece's characters, to be joined; their number. */
static size_t tokens_of(const struct chars *c, const struct vocab *v, const uint8_t *p, size_t n, uint32_t *ids)
{
    size_t k = 0, len;
    bool pending = false; /* an unknown token, which comes before the next known one */

    for (size_t at = 0; at < n; at += len) {
        int64_t id;
        len = char_length(p + at, n - at);
        id = token_of(c, v, p + at, len, at == 0, at + len == n);
        if (id >= 0) {
            if (pending)
                ids[k++] = (uint32_t)c->unknown;
            pending = false;
            ids[k++] = (uint32_t)id;
        } else if (falls_back(c, p + at, len)) {
            for (size_t i = 0; i < len; i++)
                ids[k++] = (uint32_t)c->byte_id[p[at + i]];
        } else if (c->unknown >= 0) {
            if (pending && !c->fuse_unknown)
                ids[k++] = (uint32_t)c->unknown;
            pending = true;
        }
    }
    if (pending)
        ids[k++] = (uint32_t)c->unknown;
    return k;
}

/* ---- both ---- */

int64_t chars_encode(const struct chars *c, const struct bpe *b, const struct vocab *v, struct bpe_scratch *s,
                     const uint8_t *p, size_t n, uint32_t *ids)
{
    size_t k = c->sentencepiece ? symbols_of(c, p, n, ids) : tokens_of(c, v, p, n, ids);
    int64_t left = bpe_merge(b, s, ids, k);

    return left < 0 || !c->sentencepiece ? left : (int64_t)ids_of_symbols(c, v, p, n, ids, (size_t)left);
}

void chars_begin_word(const struct chars *c, const struct vocab *v, struct bpe_word *w)
{
    w->count = (uint32_t)tokens_of(c, v, w->p, w->n, w->ids);
}

int chars_encode_words(const struct chars *c, const struct bpe *b, const struct vocab *v, struct bpe_scratch *s,
                       struct bpe_word *words, size_t n)
{
    struct bpe_word *from = words; /* those before are merged */

    for (struct bpe_word *w = words; w < words + n; w++) {
        size_t k = c->sentencepiece ? symbols_of(c, w->p, w->n, w->ids) : tokens_of(c, v, w->p, w->n, w->ids);
        w->count = (uint32_t)k;
        if (k > BPE_SHORT) {
            int64_t left = bpe_merge(b, s, w->ids, k);
            if (left < 0)
                return (int)left;
            bpe_merge_words(b, from, (size_t)(w - from));
            w->count = (uint32_t)left;
            from = w + 1;
        }
    }
    bpe_merge_words(b, from, (size_t)(words + n - from));
    for (struct bpe_word *w = words; w < words + n && c->sentencepiece; w++)
        w->count = (uint32_t)ids_of_symbols(c, v, w->p, w->n, w->ids, w->count);
    return 0;
}
