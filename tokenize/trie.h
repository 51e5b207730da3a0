/* tokenize/trie.h -- byte strings to numbers, found by walking through a text.
 *
 * Edges lie in one hash table, so a step costs one look and building is linear.
 */
#ifndef TOKENIZE_TRIE_H
#define TOKENIZE_TRIE_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum { TRIE_ROOT = 0, TRIE_NONE = -1 };

/* Zero-initialise. */
struct trie {
    uint64_t *edges;  /* parent << 32 | byte << 24 | child; 0 is free */
    uint32_t mask, used;
    struct buf values; /* int32_t a node, the root's first */
    uint32_t root[256]; /* the edges of the root again */
};

/* value >= 0.  A key given again has the later value.  ERR_NOMEM, ERR_LIMIT (2^24 nodes). */
int trie_add(struct trie *t, struct span key, int32_t value, struct err *e);
void trie_free(struct trie *t);

/* The node behind `byte` from a node, 0 if there is none. */
static inline uint32_t trie_step(const struct trie *t, uint32_t node, uint8_t byte)
{
    uint64_t key = (uint64_t)node << 8 | byte, x;
    uint32_t i;

    if (node == TRIE_ROOT)
        return t->root[byte];
    i = (uint32_t)(key * 0x9E3779B97F4A7C15ULL >> 32) & t->mask;
    while ((x = t->edges[i]) && x >> 24 != key)
        i = (i + 1) & t->mask;
    return (uint32_t)x & 0xFFFFFF;
}

/* The value of the key that ends at a node, or TRIE_NONE. */
static inline int32_t trie_value(const struct trie *t, uint32_t node)
{
    return ((const int32_t *)(const void *)t->values.p)[node];
}

/* The value of exactly this key, or TRIE_NONE. */
int32_t trie_find(const struct trie *t, const char *p, size_t n);
/* The longest key that p[0..n-1] begins with: its value, and its length; or TRIE_NONE. */
int32_t trie_longest(const struct trie *t, const char *p, size_t n, size_t *length);

#endif
