#include "base/name_table.h"

#include <stdlib.h>

#include "base/hash.h"

struct name_slot {
    uint32_t tag;   /* of the hash */
    uint32_t entry; /* 1 + the number; 0: empty */
};

/* The slot that holds s, or the empty one where it belongs. */
static struct name_slot *look(const struct name_table *t, struct span s, uint64_t hash)
{
    size_t mask = t->slots - 1;

    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct name_slot *p = &t->slot[i];
        if (!p->entry || (p->tag == hash >> 32 && span_eq(t->name[p->entry - 1], s)))
            return p;
    }
}

static int grow(struct name_table *t)
{
    size_t cap = t->cap ? 2 * t->cap : 64;
    struct span *name = realloc(t->name, cap * sizeof *name);
    struct name_slot *slot = name ? calloc(2 * cap, sizeof *slot) : NULL;

    if (name)
        t->name = name;
    if (!slot)
        return ERR_NOMEM;
    free(t->slot);
    t->slot = slot;
    t->slots = 2 * cap;
    t->cap = cap;
    for (size_t i = 0; i < t->n; i++) {
        uint64_t hash = hash_xxh3_64(name[i]);
        *look(t, name[i], hash) = (struct name_slot){(uint32_t)(hash >> 32), (uint32_t)i + 1};
    }
    return 0;
}

int name_table_add(struct name_table *t, struct span s, size_t *number)
{
    uint64_t hash = hash_xxh3_64(s);
    struct name_slot *p;

    if (t->n == t->cap && !name_table_find(t, s, number))
        TRY(t->n < UINT32_MAX / 4 ? grow(t) : ERR_NOMEM);
    p = look(t, s, hash);
    if (p->entry) {
        *number = p->entry - 1;
        return 0;
    }
    t->name[t->n] = arena_dup(&t->bytes, s);
    if (!t->name[t->n].p)
        return ERR_NOMEM;
    *number = t->n++;
    *p = (struct name_slot){(uint32_t)(hash >> 32), (uint32_t)t->n};
    return 1;
}

bool name_table_find(const struct name_table *t, struct span s, size_t *number)
{
    const struct name_slot *p = t->slots ? look(t, s, hash_xxh3_64(s)) : NULL;

    if (!p || !p->entry)
        return false;
    *number = p->entry - 1;
    return true;
}

void name_table_free(struct name_table *t)
{
    free(t->name);
    free(t->slot);
    arena_free(&t->bytes);
    *t = (struct name_table){0};
}
