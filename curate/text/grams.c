#include "curate/text/grams.h"

#include <stdlib.h>

#include "base/hash.h"

enum {
    MOST = 10, /* words in an n-gram */
    PAD = 32   /* readable bytes behind the joined words */
};

void grams_free(struct grams *g)
{
    free(g->type);
    free(g->id);
    free(g->slot);
    free(g->gram);
    free(g->here);
    free(g->place);
    free(g->seen);
    free(g->hash);
    free(g->joined);
    free(g->start);
    memset(g, 0, sizeof *g);
}

/* A cleared table for n keys that is at most two thirds full; *mask is its size - 1. */
static int clear_slots(struct grams *g, size_t n, uint32_t *mask)
{
    size_t size = 64;

    while (size < n + n / 2)
        size *= 2;
    TRY(mem_room(&g->slot, &g->cap_slot, size, sizeof *g->slot));
    memset(g->slot, 0, size * sizeof *g->slot);
    *mask = (uint32_t)size - 1;
    return 0;
}

/* ---- words to numbers ---- */

static inline uint64_t word_key(const char *p, size_t n, const char *end)
{
    uint64_t k = 0;

    if (n > 8) {
        struct span s = {p, n};
        return hash_xxh3_64(s);
    }
    if (end - p < 8) {
        memcpy(&k, p, n);
        return k;
    }
    memcpy(&k, p, 8);
    return k & ~0ULL >> (64 - 8 * n);
}

int grams_number_words(struct grams *g, const struct words *ws, struct span text, bool ascii)
{
    const char *end = text.n ? text.p + text.n : text.p;
    uint32_t mask;

    g->n_types = 0;
    TRY(clear_slots(g, ws->n, &mask));
    TRY(mem_room(&g->id, &g->cap_id, ws->n + 1, sizeof *g->id));
    TRY(mem_room(&g->type, &g->cap_types, ws->n + 1, sizeof *g->type));
    for (size_t i = 0; i < ws->n; i++) {
        struct word w = ws->w[i];
        uint64_t key = word_key(text.p + w.off, w.len, end);
        uint32_t h = (uint32_t)((key * 0x9E3779B97F4A7C15ULL) >> 32) + w.len;
        uint32_t *slot = &g->slot[h & mask];
        struct word_type *t;

        for (; *slot; slot = &g->slot[++h & mask]) {
            t = &g->type[*slot - 1];
            if (t->key == key && t->len == w.len &&
                (w.len <= 8 || !memcmp(text.p + t->off, text.p + w.off, w.len)))
                break;
        }
        if (!*slot) {
            t = &g->type[g->n_types++];
            t->key = key;
            t->off = w.off;
            t->len = w.len;
            t->count = 0;
            *slot = (uint32_t)g->n_types;
        }
        g->id[i] = *slot - 1;
        g->type[*slot - 1].count++;
    }
    for (size_t i = 0; i < g->n_types; i++) {
        struct span s = {text.p + g->type[i].off, g->type[i].len};
        g->type[i].chars = ascii ? g->type[i].len : (uint32_t)chars_count(s);
    }
    return 0;
}

/* ---- n-grams that occur more than once ---- */

/* The number of the pair of `left` and `right`, seen at place i. */
static inline uint32_t number_pair(struct grams *g, uint32_t left, uint32_t right, size_t i, uint32_t mask)
{
    uint64_t key = (uint64_t)left << 32 | right;
    uint32_t h = (uint32_t)((key * 0x9E3779B97F4A7C15ULL ^ key >> 29) >> 31);

    while (g->slot[h & mask] && g->gram[g->slot[h & mask] - 1].key != key)
        h++;
    if (!g->slot[h & mask]) {
        g->gram[g->n_grams++] = (struct gram){key, 0, (uint32_t)i};
        g->slot[h & mask] = (uint32_t)g->n_grams;
    }
    g->gram[g->slot[h & mask] - 1].count++;
    return g->slot[h & mask] - 1;
}

/* Keeps the places whose n-gram occurs twice. */
static void keep_repeated(struct grams *g, size_t n_places)
{
    size_t k = 0;

    for (size_t i = 0; i < n_places; i++) {
        uint32_t at = g->place[i];

        g->place[k] = at;
        k += g->gram[g->here[at]].count > 1;
    }
    g->n_places = k;
}

/* Pairs of words that both occur twice: a pair that occurs twice has only such. */
static int first_step(struct grams *g, size_t n_words)
{
    size_t k = 0;
    uint32_t mask;

    TRY(mem_room(&g->gram, &g->cap_gram, n_words + 1, sizeof *g->gram));
    TRY(mem_room(&g->here, &g->cap_here, n_words + 1, sizeof *g->here));
    TRY(mem_room(&g->place, &g->cap_place, n_words + 1, sizeof *g->place));
    TRY(clear_slots(g, n_words, &mask));
    for (size_t i = 0; i + 1 < n_words; i++) {
        if (g->type[g->id[i]].count < 2 || g->type[g->id[i + 1]].count < 2)
            continue;
        g->here[i] = number_pair(g, g->id[i], g->id[i + 1], i, mask);
        g->place[k++] = (uint32_t)i;
    }
    keep_repeated(g, k);
    return 0;
}

/* An n-gram is a pair of (n-1)-grams one word apart, which both occur twice if it does. */
int grams_step(struct grams *g, size_t n_words, size_t n)
{
    size_t k = 0;
    uint32_t mask;

    g->n_grams = 0;
    if (n == 2)
        return first_step(g, n_words);
    TRY(clear_slots(g, g->n_places, &mask));
    for (size_t i = 0; i + 1 < g->n_places; i++) {
        uint32_t at = g->place[i];

        if (g->place[i + 1] != at + 1)
            continue;
        g->here[at] = number_pair(g, g->here[at], g->here[at + 1], at, mask);
        g->place[k++] = at;
    }
    keep_repeated(g, k);
    return 0;
}

struct gram_top grams_top(const struct grams *g, size_t n_words, size_t n)
{
    struct gram_top top = {0, n_words >= n};

    for (size_t i = 0; i < g->n_grams; i++)
        if (g->gram[i].count > top.count)
            top = (struct gram_top){g->gram[i].first, g->gram[i].count};
    return top;
}

size_t grams_chars(const struct grams *g, size_t first, size_t n)
{
    size_t chars = 0;

    for (size_t i = first; i < first + n; i++)
        chars += g->type[g->id[i]].chars;
    return chars;
}

size_t grams_covered(const struct grams *g, size_t n)
{
    size_t chars = 0, end = 0;

    for (size_t i = 0; i < g->n_places; i++) {
        size_t from = g->place[i] > end ? g->place[i] : end;

        end = g->place[i] + n;
        chars += grams_chars(g, from, end - from);
    }
    return chars;
}

/* ---- n-grams that were there before ---- */

/* Copies the words one behind the other. */
static int join_words(struct grams *g, const struct words *ws, struct span text)
{
    uint32_t at = 0;

    TRY(mem_room(&g->joined, &g->cap_joined, text.n + PAD, 1));
    TRY(mem_room(&g->start, &g->cap_start, ws->n + MOST, sizeof *g->start));
    for (size_t i = 0; i < ws->n; i++) {
        struct word w = ws->w[i];

        g->start[i] = at;
        if (w.len <= 16 && text.n - w.off >= 16)
            memcpy(g->joined + at, text.p + w.off, 16); /* the next one overwrites the rest */
        else
            memcpy(g->joined + at, text.p + w.off, w.len);
        at += w.len;
    }
    for (size_t i = 0; i < MOST; i++)
        g->start[ws->n + i] = at;
    memset(g->joined + at, 0, PAD);
    return 0;
}

/* A hash of the next n bytes from p: 12, 20 or 32. */
static inline uint32_t window_hash(const char *p, size_t n)
{
    uint64_t x, y = 0, z = 0;
    uint32_t w;

    memcpy(&x, p, 8);
    memcpy(&w, p + 8, 4);
    if (n > 12)
        memcpy(&y, p + n - 8, 8);
    if (n > 20)
        memcpy(&z, p + n - 16, 8);
    x ^= (y << 29 | y >> 35) * 0xC4CEB9FE1A85EC53ULL;
    x += (z ^ z >> 31) * 0x9FB21C651E98DF25ULL;
    return (uint32_t)(((x ^ (uint64_t)w << 17) * 0x9E3779B97F4A7C15ULL + w) * 0xD6E8FEB86659FD93ULL >> 33);
}

/* Of the places (words) in g->place[0..*n), keeps a superset of those at which an n-gram of
 * `least` words or more begins that occurs twice.  Two such n-grams have the same first
 * `window` bytes, if they have as many; a counter for each hash of these says where that
 * can be. */
static int keep_places(struct grams *g, size_t n_words, size_t least, size_t window, size_t *n)
{
    size_t size = 1024, k = 0;

    while (size < 12 * *n)
        size *= 2;
    TRY(mem_room(&g->seen, &g->cap_seen, size, 1));
    memset(g->seen, 0, size);
    for (size_t i = 0; i < *n; i++) {
        uint32_t h = window_hash(g->joined + g->start[g->place[i]], window) & ((uint32_t)size - 1);

        g->hash[i] = h;
        g->seen[h] = (uint8_t)(g->seen[h] << 1 | 1); /* 1, then more than 1 */
    }
    for (size_t i = 0; i < *n; i++) {
        size_t at = g->place[i];
        bool may = (at + least <= n_words) & /* no jumps */
                   ((g->seen[g->hash[i]] > 1) | (g->start[at + least] - g->start[at] < window));

        g->place[k] = (uint32_t)at;
        k += may;
    }
    *n = k;
    return 0;
}

static size_t duplicates_of(struct grams *g, size_t n_words, size_t n_places, size_t n, uint32_t mask)
{
    size_t chars = 0, next = 0;

    for (size_t k = 0; k < n_places && g->place[k] + n <= n_words; k++) {
        size_t i = g->place[k];
        struct span s = {g->joined + g->start[i], g->start[i + n] - g->start[i]};
        uint32_t h;

        if (i < next)
            continue;
        for (h = (uint32_t)hash_xxh3_64(s); g->slot[h & mask]; h++) {
            size_t j = g->slot[h & mask] - 1;
            struct span t = {g->joined + g->start[j], g->start[j + n] - g->start[j]};
            if (span_eq(s, t))
                break;
        }
        if (g->slot[h & mask]) {
            chars += grams_chars(g, i, n);
            next = i + n;
        } else {
            g->slot[h & mask] = (uint32_t)i + 1;
        }
    }
    return chars;
}

int grams_find_duplicates(struct grams *g, const struct words *ws, struct span text, size_t chars[6])
{
    size_t n_places = ws->n < 5 ? 0 : ws->n - 4;
    uint32_t mask;

    TRY(join_words(g, ws, text));
    TRY(mem_room(&g->hash, &g->cap_hash, n_places + 1, sizeof *g->hash));
    TRY(mem_room(&g->place, &g->cap_place, n_places + 1, sizeof *g->place));
    for (size_t i = 0; i < n_places; i++)
        g->place[i] = (uint32_t)i;
    for (size_t n = 5; n <= 10; n++) {
        if (n == 5 || n == 6 || n == 8)
            TRY(keep_places(g, ws->n, n, n == 5 ? 12 : n == 6 ? 20 : 32, &n_places));
        TRY(clear_slots(g, n_places, &mask));
        chars[n - 5] = duplicates_of(g, ws->n, n_places, n, mask);
    }
    return 0;
}

/* ---- copies ---- */

int grams_count_copies(struct grams *g, const struct span *s, size_t n, struct copies *c)
{
    const uint32_t counted = 1u << 31; /* in a slot: the span is known to have an equal */
    uint32_t mask;

    memset(c, 0, sizeof *c);
    c->spans = n;
    TRY(clear_slots(g, n, &mask));
    for (size_t i = 0; i < n; i++) {
        uint32_t h = (uint32_t)hash_xxh3_64(s[i]), *slot;
        size_t chars;

        while (*(slot = &g->slot[h & mask]) && !span_eq(s[i], s[(*slot & ~counted) - 1]))
            h++;
        if (!*slot) {
            *slot = (uint32_t)i + 1;
            continue;
        }
        chars = chars_count(s[i]);
        c->copies++;
        c->chars += chars;
        c->all += *slot & counted ? 1 : 2;
        c->all_chars += *slot & counted ? chars : 2 * chars;
        *slot |= counted;
    }
    return 0;
}
