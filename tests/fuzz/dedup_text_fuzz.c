/* Any text cut into units and tokens, in all ways: parts stay within the text, nothing is lost
 * where nothing is dropped, and striking ends. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "curate/dedup/dedup_normal.h"
#include "curate/dedup/dedup_text.h"
#include "curate/dedup/dedup_tokens.h"
#include "curate/dedup/minhash_repeats.h"
#include "curate/dedup/minhash_text.h"
#include "curate/stream/stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* The keys of a text, of which those of an earlier unit are marked. */
struct keys {
    struct hash128 *key;
    uint8_t *mark;
    size_t n, most;
};

static int take_key(void *to, const struct hash128 *key, struct span form, struct err *e)
{
    struct keys *k = to;

    (void)e;
    check(k->n < k->most && utf8_valid(form));
    for (size_t i = 0; i < k->n && key->hi; i++)
        k->mark[k->n] |= key->hi == k->key[i].hi && key->lo == k->key[i].lo;
    k->key[k->n++] = *key;
    return 0;
}

static void units(struct dedup_text *t, struct span text, enum dedup_unit unit, uint8_t how)
{
    static const struct dedup_left least = {3, 2};
    struct keys got = {0};
    struct dedup_keys keys = {unit, how % 3, unit == DEDUP_SENTENCE && how & 4 ? 3 : 1, how >> 4, how & 8, take_key, &got};
    struct dedup_strike strike = {unit, keys.span, {0}};
    struct text_unit u;
    struct verdict v = {0};
    uint64_t struck;
    size_t before = 0, n;
    struct err e;
    char *out = malloc(2 * text.n + 1);

    check(dedup_text_begin(t, text, unit, &e) == 0);
    for (; dedup_text_next(t, unit, &u); before = u.to, got.most++)
        check(u.gap == before && u.gap <= u.from && u.from <= u.to && u.to <= text.n);
    got.key = calloc(got.most + 1, sizeof *got.key);
    got.mark = calloc(got.most + 1, 1);
    check(out && got.key && got.mark);
    check(dedup_text_keys(t, text, &keys, &e) == 0);
    check(dedup_text_strike(t, text, &strike, out, &n, &struck, &e) == 0 && !struck);
    check(unit == DEDUP_SENTENCE ? n <= text.n : span_eq((struct span){out, n}, text));
    strike.mark = (struct span){(const char *)got.mark, got.n};
    check(dedup_text_strike(t, text, &strike, out, &n, &struck, &e) == 0 && n <= text.n && struck <= got.most);
    check(utf8_valid((struct span){out, n}));
    if (text.n)
        memcpy(out + n, text.p, text.n);
    before = n; /* in its own place it is the same */
    check(dedup_text_strike(t, (struct span){out + before, text.n}, &strike, out + before, &n, &struck, &e) == 0);
    check(n == before && memcmp(out, out + before, n) == 0);
    check(dedup_text_left(t, (struct span){out, n}, &least, &v, &e) == 0);
    free(out);
    free(got.key);
    free(got.mark);
}

/* In pieces it has the same shingles. */
static void pieces(struct shingler *s, struct span text, size_t least, const uint64_t *want, size_t n)
{
    struct repeats r = {0};
    const uint64_t *hash;
    size_t count, next, got = 0;
    struct err e;

    check(repeats_begin(&r, n) == 0);
    for (size_t at = 0; at < text.n; at += next) {
        struct span left = {text.p + at, text.n - at};
        size_t end = shingler_cut(s, left, least, &next);
        check(next && next <= left.n && end <= left.n);
        check(shingler_piece(s, (struct span){left.p, end}, at == 0, next == left.n, &hash, &count, &e) == 0);
        for (size_t i = 0; i < count; i++)
            if (!repeats_next(&r, hash[i])) {
                check(got < n && hash[i] == want[got]);
                got++;
            }
    }
    check(got == n || !text.n);
    repeats_free(&r);
}

/* The shingles of every preset. */
static void shingles(struct span text, size_t least)
{
    static struct shingler *s[16];
    const struct minhash_preset *p;
    const uint64_t *hash;
    uint64_t *want;
    size_t count;
    struct err e;

    for (int i = 0; (p = minhash_preset_at(i)); i++) {
        check(s[i] || shingler_new(&s[i], p, 1, &e) == 0);
        check(shingler_run(s[i], text, &hash, &count, &e) == 0);
        check(p->kind == SHINGLE_CHARS || utf8_valid(shingler_words(s[i])));
        for (size_t k = 1; k < count; k++)
            check(hash[k] != hash[0]);
        want = malloc(count * sizeof *want + 1);
        check(want != NULL);
        memcpy(want, hash, count * sizeof *want);
        pieces(s[i], text, least, want, count);
        free(want);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dedup_text t;
    static struct dedup_tokens tokens;
    static struct buf url;
    struct span text;
    struct err e;
    char *copy;

    if (!size || (!t.simple && dedup_text_open(&t, &e) < 0) || !(copy = malloc(size)))
        return 0;
    memcpy(copy, data + 1, size - 1); /* a text ends where its memory does */
    text = (struct span){copy, size - 1};
    buf_clear(&url);
    check(normal_url(text, &url) == 0 && url.n <= text.n + 4);
    if (utf8_valid(text)) {
        for (enum dedup_unit u = DEDUP_LINE; u <= DEDUP_SENTENCE; u++)
            units(&t, text, u, data[0]);
        shingles(text, 1 + data[0] % 32);
        check(dedup_tokens_cut(&tokens, text, &e) == 0);
        for (size_t i = 0; i < tokens.n; i++)
            check(tokens.place[i].from < tokens.place[i].to && tokens.place[i].to <= text.n &&
                  (!i || tokens.place[i - 1].to <= tokens.place[i].from));
    }
    free(copy);
    return 0;
}
