#include "curate/dedup/dedup_ids.h"

#include <stdlib.h>

#include "base/err.h"

int id_list_add(struct id_list *l, struct span id)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 1024;
        struct span *p = realloc(l->id, cap * sizeof *p);
        if (!p)
            return ERR_NOMEM;
        l->id = p;
        l->cap = cap;
    }
    l->id[l->n] = arena_dup(&l->bytes, id);
    if (!l->id[l->n].p)
        return ERR_NOMEM;
    l->n++;
    return 0;
}

void id_list_free(struct id_list *l)
{
    free(l->id);
    arena_free(&l->bytes);
    *l = (struct id_list){0};
}
