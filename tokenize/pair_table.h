/* tokenize/pair_table.h -- the pairs of tokens that BPE training looks after: a hash table, and a heap of which is the
 * most frequent.
 */
#ifndef TOKENIZE_PAIR_TABLE_H
#define TOKENIZE_PAIR_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct pair {
    uint64_t key; /* left << 32 | right; PAIR_FREE */
    int64_t count;
    uint64_t list; /* its places, ascending; some are none any more */
    uint32_t n;
};
#define PAIR_FREE UINT64_MAX

/* Zero-initialise, then pairs_clear. */
struct pair_table {
    struct pair *slots;
    uint64_t mask, n;
};

static inline uint64_t pair_hash(uint64_t key)
{
    key *= 0x9E3779B97F4A7C15ULL;
    return (key ^ key >> 32) * 0xD6E8FEB86659FD93ULL;
}

static inline struct pair *pair_slot(struct pair *slots, uint64_t mask, uint64_t key)
{
    uint64_t i = pair_hash(key) & mask;

    while (slots[i].key != PAIR_FREE && slots[i].key != key)
        i = (i + 1) & mask;
    return &slots[i];
}

/* NULL: it is not there. */
static inline struct pair *pairs_find(const struct pair_table *t, uint64_t key)
{
    struct pair *p = pair_slot(t->slots, t->mask, key);

    return p->key == PAIR_FREE ? NULL : p;
}

/* An empty table.  ERR_NOMEM. */
int pairs_clear(struct pair_table *t);
/* The pair's record, zeros if it is new; it may move the others.  NULL: out of memory. */
struct pair *pairs_add(struct pair_table *t, uint64_t key);
/* Takes out those that keep is false for.  ERR_NOMEM. */
int pairs_keep(struct pair_table *t, bool (*keep)(const void *arg, const struct pair *p), const void *arg);
void pairs_free(struct pair_table *t);

/* An entry of the heap; what it says was true once and can only have become less. */
struct pair_entry {
    int64_t count;
    uint64_t tie; /* the lower the better */
    uint64_t key;
};

/* The heap: zero-initialise; the best is the first.  Entries in order are a heap too. */
static inline struct pair_entry *heap_entries(const struct buf *heap)
{
    return (struct pair_entry *)(void *)heap->p;
}
static inline size_t heap_size(const struct buf *heap)
{
    return heap->n / sizeof(struct pair_entry);
}
int heap_push(struct buf *heap, struct pair_entry x);
/* Puts x in the place of the first, which is gone. */
void heap_replace(struct buf *heap, struct pair_entry x);
void heap_pop(struct buf *heap);
/* Puts the entries in order, the best first, and leaves at most n. */
void heap_sort(struct buf *heap, size_t n);

#endif
