/* curate/text/word_trie.h -- finds which of many strings stand at a place of a text. */
#ifndef CURATE_WORD_TRIE_H
#define CURATE_WORD_TRIE_H

#include "curate/text/word_set.h"

struct word_trie {
    uint64_t *edge; /* open addressing: (node << 8 | byte) << 32 | node it leads to; 0: free */
    uint32_t mask, nodes;
    uint8_t *ends;        /* of each node: a string ends there */
    uint64_t pairs[1024]; /* which first two bytes occur, as bits; of a string of one, all */
};

/* Takes all entries of s.  ERR_NOMEM, ERR_LIMIT (2^24 nodes).  Start with zeroes. */
int word_trie_build(struct word_trie *t, const struct word_set *s, struct err *e);
void word_trie_free(struct word_trie *t);

/* The node that c leads to from node (0 is the root), 0 if there is none. */
static inline uint32_t word_trie_next(const struct word_trie *t, uint32_t node, unsigned char c)
{
    uint64_t key = (uint64_t)node << 8 | c;

    for (uint32_t i = (uint32_t)(key * 0x9E3779B97F4A7C15ULL >> 32) & t->mask;; i = (i + 1) & t->mask) {
        if (!t->edge[i])
            return 0;
        if (t->edge[i] >> 32 == key)
            return (uint32_t)t->edge[i];
    }
}

/* May a string stand at p?  A quick no. */
static inline bool word_trie_may(const struct word_trie *t, const char *p, const char *end)
{
    unsigned x = (unsigned)(unsigned char)p[0] << 8 | (unsigned char)(p + 1 < end ? p[1] : 0);

    return t->nodes && t->pairs[x >> 6] >> (x & 63) & 1;
}
#endif
