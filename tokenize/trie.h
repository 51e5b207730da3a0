/* tokenize/trie.h -- byte strings to numbers, found by walking through a text.
 *
 * A node's child that was made right after it is the node behind it, so the ends of keys, which few share, lie in a row.  All
 * other edges lie in one hash table.  A step costs one look, or two, and building is linear.
 */
#ifndef TOKENIZE_TRIE_H
#define TOKENIZE_TRIE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "tokenize/pages.h"

enum { TRIE_ROOT = 0, TRIE_NONE = -1, TRIE_NODES_MAX = 1 << 24 /* keys with fewer bytes in all do not need as many */ };

struct trie_node {
    int32_t value;  /* of the key that ends here, or TRIE_NONE */
    uint8_t byte;   /* to the node behind this one */
    bool next, more; /* there is such an edge; there are others */
};

/* Zero-initialise. */
struct trie {
    uint64_t *edges;  /* parent << 32 | byte << 24 | child; 0 is free */
    struct pages pages; /* where they are */
    uint32_t mask, used;
    struct buf nodes; /* struct trie_node, the root first */
    uint32_t root[256]; /* its edges */
};

/* value >= 0.  A key given again has the later value.  ERR_NOMEM, ERR_LIMIT (TRIE_NODES_MAX). */
int trie_add(struct trie *t, struct span key, int32_t value, struct err *e);
void trie_free(struct trie *t);
static inline bool trie_is_empty(const struct trie *t)
{
    return t->nodes.n == 0;
}

static inline const struct trie_node *trie_node(const struct trie *t, uint32_t node)
{
    return (const struct trie_node *)(const void *)t->nodes.p + node;
}

/* The node behind `byte` from a node, 0 if there is none. */
static inline uint32_t trie_step(const struct trie *t, uint32_t node, uint8_t byte)
{
    uint64_t key = (uint64_t)node << 8 | byte, x;
    const struct trie_node *from;
    uint32_t i;

    if (node == TRIE_ROOT)
        return t->root[byte];
    from = trie_node(t, node);
    if (from->next && from->byte == byte)
        return node + 1;
    if (!from->more)
        return 0;
    i = (uint32_t)(key * 0x9E3779B97F4A7C15ULL >> 32) & t->mask;
    while ((x = t->edges[i]) && x >> 24 != key)
        i = (i + 1) & t->mask;
    return (uint32_t)x & 0xFFFFFF;
}

/* The value of the key that ends at a node, or TRIE_NONE. */
static inline int32_t trie_value(const struct trie *t, uint32_t node)
{
    return trie_node(t, node)->value;
}

/* The value of exactly this key, or TRIE_NONE. */
int32_t trie_find(const struct trie *t, const char *p, size_t n);
/* The longest key that p[0..n-1] begins with: its value, and its length; or TRIE_NONE. */
int32_t trie_longest(const struct trie *t, const char *p, size_t n, size_t *length);

#endif
