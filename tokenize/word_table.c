#include "tokenize/word_table.h"

#include <sys/mman.h>

#include "base/err.h"
#include "base/hash.h"

enum { STORE_MAX = 16 << 20 };

int word_table_init(struct word_table *w, unsigned log2_entries)
{
    size_t n = ((size_t)1 << log2_entries) + WORDS_WINDOW;
    void *p;

    memset(w, 0, sizeof *w);
    w->mask = ((uint64_t)1 << log2_entries) - 1;
    w->mapped = (n * sizeof *w->entries + (2 << 20) - 1) & ~((size_t)(2 << 20) - 1);
    p = mmap(NULL, w->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return ERR_NOMEM;
    madvise(p, w->mapped, MADV_HUGEPAGE);
    w->entries = p;
    w->store.max = STORE_MAX;
    return 0;
}

void word_table_free(struct word_table *w)
{
    if (w->entries)
        munmap(w->entries, w->mapped);
    buf_free(&w->store);
    memset(w, 0, sizeof *w);
}

/* The key of any piece: what does not fit is hashed and marked. */
static struct word_key key_of(const uint8_t *p, size_t n)
{
    struct span s = {(const char *)p, n};
    uint8_t copy[16] = {0};
    struct word_key k;

    if (n > WORDS_KEY) {
        k.lo = hash_xxh3_64(s);
        k.hi = (uint64_t)0x80 << 56 | n;
        k.hash = k.lo;
        return k;
    }
    memcpy(copy, p, n);
    return word_key_of(copy, n);
}

/* Where an entry's part of the store begins, and how many ids it has. */
static const char *stored_at(const struct word_table *w, const struct word *x, size_t *count)
{
    uint32_t at[2];

    memcpy(at, x->ids, sizeof at);
    *count = at[1];
    return w->store.p + at[0];
}

static bool is_stored(const struct word *x)
{
    return x->n == WORDS_STORED;
}

static size_t padded(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

const struct word *word_table_find(const struct word_table *w, const uint8_t *p, size_t n, const uint32_t **stored,
                              size_t *count)
{
    struct word_key k = key_of(p, n);
    const struct word *x = w->entries + (k.hash & w->mask);

    for (int i = 0; i < WORDS_WINDOW && x[i].hi; i++) {
        const char *at;
        if (x[i].lo != k.lo || x[i].hi != k.hi)
            continue;
        if (!is_stored(&x[i])) {
            *count = x[i].n;
            return &x[i];
        }
        at = stored_at(w, &x[i], count);
        if (n > WORDS_KEY) {
            if (memcmp(at, p, n) != 0)
                continue;
            at += padded(n);
        }
        *stored = (const uint32_t *)(const void *)at;
        return &x[i];
    }
    return NULL;
}

/* Appends what does not fit into an entry; the offset, or -1 when there is no room. */
static int64_t store(struct word_table *w, const uint8_t *p, size_t n, const uint32_t *ids, size_t count)
{
    size_t at = w->store.n, bytes = n > WORDS_KEY ? padded(n) : 0;

    if (buf_reserve(&w->store, bytes + count * sizeof *ids) < 0)
        return -1;
    if (bytes) {
        memcpy(w->store.p + at, p, n);
        memset(w->store.p + at + n, 0, bytes - n);
    }
    memcpy(w->store.p + at + bytes, ids, count * sizeof *ids);
    w->store.n += bytes + count * sizeof *ids;
    return (int64_t)at;
}

void word_table_put(struct word_table *w, const uint8_t *p, size_t n, const uint32_t *ids, size_t count)
{
    struct word_key k = key_of(p, n);
    struct word *x = w->entries + (k.hash & w->mask);
    int i = 0;

    if (n > WORDS_LONGEST || n == 0)
        return;
    while (i < WORDS_WINDOW && x[i].hi)
        i++;
    if (i == WORDS_WINDOW)
        i = (int)(w->turn++ % WORDS_WINDOW);
    if (n > WORDS_KEY || count > WORDS_INLINE) {
        int64_t at = store(w, p, n, ids, count);
        if (at < 0) { /* the store is full: begin again */
            memset(w->entries, 0, (w->mask + 1 + WORDS_WINDOW) * sizeof *w->entries);
            w->store.n = 0;
            return;
        }
        memcpy(x[i].ids, &(uint32_t[2]){(uint32_t)at, (uint32_t)count}, 8);
        x[i].n = WORDS_STORED;
    } else {
        for (size_t j = 0; j < count; j++)
            for (int b = 0; b < 3; b++)
                x[i].ids[3 * j + (size_t)b] = (uint8_t)(ids[j] >> 8 * b);
        x[i].n = (uint8_t)count;
    }
    x[i].lo = k.lo;
    x[i].hi = k.hi;
}
