#include "tokenize/word_share.h"

#include <stdlib.h>
#include <string.h>

#include "tokenize/word_hash.h"

enum { SETS_LOG2 = 17, WINDOW = 8 };

/* As a struct known_word: the key in lo and hi, ids and their number in ids.  Whoever changes ids[1] from 0 has the entry; the
 * others see it when hi is 0 no more. */
struct entry {
    uint64_t lo, hi, ids[2];
};

struct word_share {
    struct entry *entries;
    struct pages pages;
};

struct word_share *word_share_new(void)
{
    struct word_share *s = calloc(1, sizeof *s);

    if (s)
        s->entries = pages_new(&s->pages, (((size_t)2 << SETS_LOG2) + WINDOW) * sizeof *s->entries);
    if (s && !s->entries) {
        free(s);
        return NULL;
    }
    return s;
}

void word_share_free(struct word_share *s)
{
    if (s)
        pages_free(&s->pages);
    free(s);
}

static struct entry *set_of(const struct word_share *s, const struct word_key *key)
{
    uint64_t at = word_set(word_hash_key(key->lo, key->hi), (((uint64_t)1 << SETS_LOG2) - 1) << WORD_SET_SHIFT);

    return (struct entry *)(void *)((char *)s->entries + at);
}

void word_share_ask(const struct word_share *s, const uint8_t *p, size_t n)
{
    struct word_key key;

    if (!s || n > WORDS_SHORT)
        return;
    key = word_key_of(p, n);
    __builtin_prefetch(set_of(s, &key));
}

size_t word_share_find(const struct word_share *s, const uint8_t *p, size_t n, uint32_t *ids)
{
    struct word_key key;
    const struct entry *x;
    uint64_t hi, packed[2];
    uint8_t bytes[sizeof packed];
    size_t count;

    if (!s || n > WORDS_SHORT)
        return 0;
    key = word_key_of(p, n);
    x = set_of(s, &key);
    for (int i = 0; i < WINDOW && (hi = __atomic_load_n(&x[i].hi, __ATOMIC_ACQUIRE)) != 0; i++) {
        if (hi != key.hi || __atomic_load_n(&x[i].lo, __ATOMIC_RELAXED) != key.lo)
            continue;
        packed[0] = __atomic_load_n(&x[i].ids[0], __ATOMIC_RELAXED);
        packed[1] = __atomic_load_n(&x[i].ids[1], __ATOMIC_RELAXED);
        memcpy(bytes, packed, sizeof bytes);
        count = packed[1] >> 56;
        for (size_t k = 0; k < count && k < WORDS_INLINE; k++)
            ids[k] = word_id(bytes, k);
        return count;
    }
    return 0;
}

void word_share_put(struct word_share *s, const uint8_t *p, size_t n, const uint32_t *ids, size_t count)
{
    uint64_t packed[2] = {0, 0};
    struct word_key key;
    struct entry *x;

    if (!s || n > WORDS_SHORT || count > WORDS_INLINE || count == 0)
        return;
    key = word_key_of(p, n);
    word_pack((uint8_t *)packed, ids, count);
    packed[1] |= (uint64_t)count << 56;
    x = set_of(s, &key);
    for (int i = 0; i < WINDOW; i++) {
        uint64_t free = 0;
        if (!__atomic_compare_exchange_n(&x[i].ids[1], &free, packed[1], false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        __atomic_store_n(&x[i].lo, key.lo, __ATOMIC_RELAXED);
        __atomic_store_n(&x[i].ids[0], packed[0], __ATOMIC_RELAXED);
        __atomic_store_n(&x[i].hi, key.hi, __ATOMIC_RELEASE);
        return;
    }
}
