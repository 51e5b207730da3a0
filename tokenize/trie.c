#include "tokenize/trie.h"

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
}

static int grow(struct trie *t, struct err *e)
{
    struct pages pages, old_pages = t->pages;
    uint64_t *old = t->edges;
    uint32_t old_size = old ? t->mask + 1 : 0, size = old ? old_size * 2 : 1024;

    t->edges = pages_new(&pages, size * sizeof *t->edges);
    if (!t->edges) {
        t->edges = old;
        return no_memory(e);
    }
    t->pages = pages;
    t->mask = size - 1;
    for (uint32_t k = 0; k < old_size; k++)
        if (old[k]) {
            uint32_t i = (uint32_t)((old[k] >> 24) * 0x9E3779B97F4A7C15ULL >> 32) & t->mask;
            while (t->edges[i])
                i = (i + 1) & t->mask;
            t->edges[i] = old[k];
        }
    pages_free(&old_pages);
    return 0;
}

static struct trie_node *node_at(const struct trie *t, uint32_t node)
{
    return (struct trie_node *)(void *)t->nodes.p + node;
}

static int add_node(struct trie *t, struct err *e)
{
    struct trie_node none = {.value = TRIE_NONE};

    return buf_put(&t->nodes, &none, sizeof none) < 0 ? no_memory(e) : 0;
}

static int hash_edge(struct trie *t, uint32_t node, uint8_t byte, uint32_t child, struct err *e)
{
    uint64_t key = (uint64_t)node << 8 | byte;
    uint32_t i;

    if (!t->edges || (t->used + 1) * 2 > t->mask + 1)
        TRY(grow(t, e));
    i = (uint32_t)(key * 0x9E3779B97F4A7C15ULL >> 32) & t->mask;
    while (t->edges[i])
        i = (i + 1) & t->mask;
    t->edges[i] = key << 24 | child;
    t->used++;
    node_at(t, node)->more = true;
    return 0;
}

/* The node behind an edge that there was not. */
static int add_edge(struct trie *t, uint32_t node, uint8_t byte, uint32_t *child, struct err *e)
{
    struct trie_node *from;

    *child = (uint32_t)(t->nodes.n / sizeof *from);
    if (*child >= TRIE_NODES_MAX)
        return err_set(e, ERR_LIMIT, "the vocabulary is too large");
    TRY(add_node(t, e));
    from = node_at(t, node);
    if (node == TRIE_ROOT) {
        t->root[byte] = *child;
    } else if (*child == node + 1) {
        from->byte = byte;
        from->next = true;
    } else {
        return hash_edge(t, node, byte, *child, e);
    }
    return 0;
}

int trie_add(struct trie *t, struct span key, int32_t value, struct err *e)
{
    uint32_t node = TRIE_ROOT, child;

    if (trie_is_empty(t))
        TRY(add_node(t, e));
    for (size_t i = 0; i < key.n; i++, node = child) {
        child = trie_step(t, node, (uint8_t)key.p[i]);
        if (!child)
            TRY(add_edge(t, node, (uint8_t)key.p[i], &child, e));
    }
    node_at(t, node)->value = value;
    return 0;
}

int32_t trie_find(const struct trie *t, const char *p, size_t n)
{
    uint32_t node = TRIE_ROOT;

    for (size_t i = 0; i < n; i++)
        if (!(node = trie_step(t, node, (uint8_t)p[i])))
            return TRIE_NONE;
    return trie_is_empty(t) ? TRIE_NONE : trie_value(t, node);
}

int32_t trie_longest(const struct trie *t, const char *p, size_t n, size_t *length)
{
    uint32_t node = TRIE_ROOT;
    int32_t found = TRIE_NONE;

    for (size_t i = 0; i < n && (node = trie_step(t, node, (uint8_t)p[i])); i++)
        if (trie_value(t, node) != TRIE_NONE) {
            found = trie_value(t, node);
            *length = i + 1;
        }
    return found;
}

void trie_free(struct trie *t)
{
    pages_free(&t->pages);
    buf_free(&t->nodes);
    memset(t, 0, sizeof *t);
}
