#include "curate/text/word_trie.h"

#include <stdlib.h>

void word_trie_free(struct word_trie *t)
{
    free(t->edge);
    free(t->ends);
    memset(t, 0, sizeof *t);
}

/* The node that c leads to, made if there is none. */
static uint32_t grow(struct word_trie *t, uint32_t node, unsigned char c)
{
    uint64_t key = (uint64_t)node << 8 | c;
    uint32_t i = (uint32_t)(key * 0x9E3779B97F4A7C15ULL >> 32) & t->mask;

    while (t->edge[i] && t->edge[i] >> 32 != key)
        i = (i + 1) & t->mask;
    if (!t->edge[i])
        t->edge[i] = key << 32 | t->nodes++;
    return (uint32_t)t->edge[i];
}

static void note_pair(struct word_trie *t, struct span w)
{
    unsigned x = (unsigned)(unsigned char)w.p[0] << 8;

    for (unsigned k = 0; k < 256; k++)
        if (w.n == 1 || k == (unsigned char)w.p[1])
            t->pairs[(x | k) >> 6] |= 1ULL << ((x | k) & 63);
}

int word_trie_build(struct word_trie *t, const struct word_set *s, struct err *e)
{
    size_t bytes = 1, size = 64, at = 0;
    struct span w;

    *t = (struct word_trie){0};
    while (word_set_next(s, &at, &w))
        bytes += w.n;
    if (bytes >= 1U << 24) /* a node has 24 bits in an edge's key */
        return err_set(e, ERR_LIMIT, "a list of words of 16 MiB or more");
    while (size < 2 * bytes)
        size *= 2;
    t->mask = (uint32_t)size - 1;
    t->edge = calloc(size, sizeof *t->edge);
    t->ends = calloc(bytes + 1, 1);
    if (!t->edge || !t->ends) {
        word_trie_free(t);
        return err_set(e, ERR_NOMEM, "no memory for a list of words");
    }
    t->nodes = 1;
    for (at = 0; word_set_next(s, &at, &w);) {
        uint32_t node = 0;

        for (size_t i = 0; i < w.n; i++)
            node = grow(t, node, (unsigned char)w.p[i]);
        t->ends[node] = 1;
        note_pair(t, w);
    }
    return 0;
}
