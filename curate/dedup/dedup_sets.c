#include "curate/dedup/dedup_sets.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct dedup_compare {
    const struct spill *sets;
    uint64_t a; /* where the set begins that the table holds; UINT64_MAX: none */
    uint64_t *table;
    size_t table_cap, mask;
    bool zero; /* a's set has hash 0, which marks free slots */
    uint64_t *other;
    size_t other_cap;
};

int dedup_compare_new(struct dedup_compare **c, const struct spill *sets, struct err *e)
{
    *c = calloc(1, sizeof **c);
    if (!*c)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    (*c)->sets = sets;
    (*c)->a = UINT64_MAX;
    return 0;
}

void dedup_compare_free(struct dedup_compare *c)
{
    if (!c)
        return;
    free(c->table);
    free(c->other);
    free(c);
}

/* Reads the hashes of a set into c->other. */
static int read_set(struct dedup_compare *c, struct set_ref set, struct err *e)
{
    if (set.size > c->other_cap) {
        free(c->other);
        c->other_cap = set.size + set.size / 4;
        c->other = malloc(c->other_cap * sizeof *c->other);
        if (!c->other) {
            c->other_cap = 0;
            return err_set(e, ERR_NOMEM, "out of memory for %zu shingles", (size_t)set.size);
        }
    }
    return spill_read(c->sets, set.at * sizeof *c->other, c->other, set.size * sizeof *c->other, e);
}

static int load(struct dedup_compare *c, struct set_ref a, struct err *e)
{
    size_t n = a.size, cap = 64;

    c->a = UINT64_MAX;
    TRY(read_set(c, a, e));
    while (cap < 2 * n)
        cap *= 2;
    if (cap > c->table_cap) {
        free(c->table);
        c->table = malloc(cap * sizeof *c->table);
        c->table_cap = c->table ? cap : 0;
        if (!c->table)
            return err_set(e, ERR_NOMEM, "out of memory for %zu shingles", n);
    }
    memset(c->table, 0, cap * sizeof *c->table);
    c->mask = cap - 1;
    c->zero = false;
    for (size_t i = 0; i < n; i++) {
        size_t at = hash_mix64(c->other[i]) & c->mask;
        if (c->other[i] == 0) {
            c->zero = true;
            continue;
        }
        while (c->table[at])
            at = (at + 1) & c->mask;
        c->table[at] = c->other[i];
    }
    c->a = a.at;
    return 0;
}

static uint64_t common(const struct dedup_compare *c, size_t n)
{
    uint64_t both = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t h = c->other[i];
        size_t at = hash_mix64(h) & c->mask;
        while (c->table[at] != h && c->table[at])
            at = (at + 1) & c->mask;
        both += h ? c->table[at] == h : c->zero;
    }
    return both;
}

int dedup_jaccard(struct dedup_compare *c, struct set_ref a, struct set_ref b, double floor,
                  double *similarity, struct err *e)
{
    uint64_t both, less = a.size < b.size ? a.size : b.size, more = a.size < b.size ? b.size : a.size;

    *similarity = 0;
    if (less == 0 || (double)less / (double)more < floor)
        return 0;
    if (c->a != a.at)
        TRY(load(c, a, e));
    TRY(read_set(c, b, e));
    both = common(c, b.size);
    *similarity = (double)both / (double)(a.size + b.size - both);
    return 0;
}
