#include "curate/dedup/minhash_repeats.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

int repeats_begin(struct repeats *r, size_t count)
{
    size_t cap = 64;

    while (cap < 3 * count)
        cap *= 2;
    TRY(mem_room(&r->table, &r->cap, cap, sizeof *r->table));
    memset(r->table, 0, cap * sizeof *r->table);
    r->mask = cap - 1;
    r->zero = false;
    return 0;
}

void repeats_free(struct repeats *r)
{
    free(r->table);
    *r = (struct repeats){0};
}
