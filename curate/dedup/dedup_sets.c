#include "curate/dedup/dedup_sets.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The elements of one set.  0 marks free slots, and is remembered apart. */
struct table {
    uint64_t *slot;
    size_t cap, mask;
    int shift; /* to the slot: the first bits of a product */
    bool zero;
};

struct dedup_compare {
    const struct set_files *sets;
    struct table a;
    uint64_t at; /* where the set in the table begins; UINT64_MAX: there is none */
    uint64_t *hash; /* of the set that was read last */
    size_t hash_cap;
};

int set_files_read(const struct set_files *f, struct set_ref set, uint64_t *hash, struct err *e)
{
    uint64_t place = set.at & ((UINT64_C(1) << SET_FILE_SHIFT) - 1);

    return set.size ? spill_read(f->file[set.at >> SET_FILE_SHIFT], place * sizeof *hash, hash, set.size * sizeof *hash, e) : 0;
}

int dedup_compare_new(struct dedup_compare **out, const struct set_files *sets, struct err *e)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    (*out)->sets = sets;
    return 0;
}

void dedup_compare_free(struct dedup_compare *c)
{
    if (!c)
        return;
    free(c->a.slot);
    free(c->hash);
    free(c);
}

static size_t slot_of(const struct table *t, uint64_t h)
{
    return h * 0x9E3779B97F4A7C15ull >> t->shift;
}

/* Makes the table of n elements. */
static int load(struct table *t, const uint64_t *hash, size_t n, struct err *e)
{
    size_t cap = 64;

    for (t->shift = 64 - 6; cap < 2 * n; cap *= 2)
        t->shift--;
    if (mem_room(&t->slot, &t->cap, cap, sizeof *t->slot) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the elements of a set");
    memset(t->slot, 0, cap * sizeof *t->slot);
    t->mask = cap - 1;
    t->zero = false;
    for (size_t i = 0; i < n; i++) {
        size_t at = slot_of(t, hash[i]);
        if (hash[i] == 0) {
            t->zero = true;
            continue;
        }
        while (t->slot[at])
            at = (at + 1) & t->mask;
        t->slot[at] = hash[i];
    }
    return 0;
}

/* How many of n elements the table has. */
static uint64_t common(const struct table *t, const uint64_t *hash, size_t n)
{
    uint64_t both = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t h = hash[i];
        size_t at = slot_of(t, h);
        while (t->slot[at] != h && t->slot[at])
            at = (at + 1) & t->mask;
        both += h ? t->slot[at] == h : t->zero;
    }
    return both;
}

static int read_set(struct dedup_compare *c, struct set_ref set, struct err *e)
{
    if (mem_room(&c->hash, &c->hash_cap, set.size, sizeof *c->hash) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for %zu shingles", (size_t)set.size);
    return set_files_read(c->sets, set, c->hash, e);
}

static int compare_two(struct dedup_compare *c, struct set_ref a, struct set_ref b, double *similarity, struct err *e)
{
    uint64_t both;

    if (c->at != a.at) {
        c->at = UINT64_MAX;
        TRY(read_set(c, a, e));
        TRY(load(&c->a, c->hash, a.size, e));
        c->at = a.at;
    }
    TRY(read_set(c, b, e));
    both = common(&c->a, c->hash, b.size);
    *similarity = (double)both / (double)(a.size + b.size - both);
    return 0;
}

int dedup_compare_run(struct dedup_compare *c, const struct set_ref *set, double floor, struct set_pair *pair, size_t n,
                      struct err *e)
{
    c->at = UINT64_MAX; /* the files may have changed */
    for (size_t i = 0; i < n; i++) {
        struct set_ref a = set[pair[i].a], b = set[pair[i].b];
        uint64_t less = a.size < b.size ? a.size : b.size, more = a.size < b.size ? b.size : a.size;

        pair[i].similarity = 0;
        if (less && (double)less / (double)more >= floor)
            TRY(compare_two(c, a, b, &pair[i].similarity, e));
    }
    return 0;
}
