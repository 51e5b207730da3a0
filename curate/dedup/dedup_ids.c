#include "curate/dedup/dedup_ids.h"

#include <stdlib.h>

#include "base/err.h"

int id_list_add(struct id_list *l, struct span id)
{
    TRY(mem_grow(&l->id, &l->cap, l->n + 1, sizeof *l->id));
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
