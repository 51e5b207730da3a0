#include "tokenize/tally.h"

#include <stdlib.h>

#include "base/hash.h"

enum { KEY = 15, FIRST = 1 << 16, LONG = 0x80 };

static uint64_t slot_of(const struct tally_entry *x)
{
    return hash_mix64(x->lo ^ x->hi * 0x9E3779B97F4A7C15ULL);
}

static int grow(struct tally *t)
{
    uint64_t size = t->entries ? (t->mask + 1) * 2 : FIRST;
    struct tally_entry *old = t->entries, *fresh = calloc(size, sizeof *fresh);

    if (!fresh)
        return ERR_NOMEM;
    for (uint64_t i = 0; old && i <= t->mask; i++) {
        uint64_t j = slot_of(&old[i]) & (size - 1);
        if (!old[i].count)
            continue;
        while (fresh[j].count)
            j = (j + 1) & (size - 1);
        fresh[j] = old[i];
    }
    free(old);
    t->entries = fresh;
    t->mask = size - 1;
    return 0;
}

struct span tally_word(const struct tally *t, const struct tally_entry *x)
{
    struct span s = {x->bytes, (size_t)(x->hi >> 56)};

    if (s.n == LONG) {
        s.p = t->store.p + x->at;
        s.n = (size_t)(x->hi & UINT32_MAX);
    }
    return s;
}

int tally_add(struct tally *t, const uint8_t *p, size_t n, uint64_t times)
{
    struct span word = {(const char *)p, n};
    struct tally_entry key = {.count = times}, *x;
    uint64_t i;

    if (n <= KEY) {
        memcpy(key.bytes, p, n);
        key.hi |= (uint64_t)n << 56;
    } else {
        key.lo = hash_xxh3_64(word);
        key.hi = (uint64_t)LONG << 56 | (uint32_t)n;
    }
    if ((t->n + 1) * 2 > (t->entries ? t->mask + 1 : 0) && grow(t) < 0)
        return ERR_NOMEM;
    for (i = slot_of(&key) & t->mask; t->entries[i].count; i = (i + 1) & t->mask) {
        x = &t->entries[i];
        if (x->lo == key.lo && x->hi == key.hi && (n <= KEY || span_eq(tally_word(t, x), word))) {
            x->count += times;
            return 0;
        }
    }
    if (n > KEY) {
        key.at = t->store.n;
        TRY(buf_put_span(&t->store, word));
    }
    t->entries[i] = key;
    t->n++;
    return 0;
}

void tally_free(struct tally *t)
{
    free(t->entries);
    buf_free(&t->store);
    memset(t, 0, sizeof *t);
}
