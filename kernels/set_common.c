#include "kernels/set_common.h"

#include <stdlib.h>

#include "kernels/cpu.h"

/* The elements of one set.  0 marks free slots, and is remembered apart. */
struct table {
    uint64_t *slot;
    size_t cap, mask;
    int shift; /* to the slot: the first bits of a product */
    bool zero;
    int64_t a; /* the set; -1: none */
};

static size_t slot_of(const struct table *t, uint64_t h)
{
    return h * 0x9E3779B97F4A7C15ull >> t->shift;
}

static int load(struct table *t, uint32_t a, const uint64_t *hash, int64_t n)
{
    size_t cap = 64;

    t->a = -1;
    for (t->shift = 64 - 6; cap < 2 * (size_t)n; cap *= 2)
        t->shift--;
    if (cap > t->cap) {
        free(t->slot);
        t->slot = malloc(cap * sizeof *t->slot);
        t->cap = t->slot ? cap : 0;
        if (!t->slot)
            return ERR_NOMEM;
    }
    memset(t->slot, 0, cap * sizeof *t->slot);
    t->mask = cap - 1;
    t->zero = false;
    for (int64_t i = 0; i < n; i++) {
        size_t at = slot_of(t, hash[i]);
        if (hash[i] == 0) {
            t->zero = true;
            continue;
        }
        while (t->slot[at])
            at = (at + 1) & t->mask;
        t->slot[at] = hash[i];
    }
    t->a = a;
    return 0;
}

static uint32_t common(const struct table *t, const uint64_t *hash, int64_t n)
{
    uint32_t both = 0;

    for (int64_t i = 0; i < n; i++) {
        uint64_t h = hash[i];
        size_t at = slot_of(t, h);
        while (t->slot[at] != h && t->slot[at])
            at = (at + 1) & t->mask;
        both += h ? t->slot[at] == h : t->zero;
    }
    return both;
}

int set_common_cpu(struct device *dev, const struct set_common *p, struct err *e)
{
    const int64_t *begin = p->sets.begin, *end = p->sets.end;
    int failed = 0;

#pragma omp parallel num_threads(cpu_team(dev, p->pairs * 64))
    {
        struct table t = {.a = -1};
#pragma omp for schedule(dynamic, 64)
        for (int64_t i = 0; i < p->pairs; i++) {
            uint32_t a = p->a[i], b = p->b[i];
            if (t.a != a && load(&t, a, p->hash + begin[a], end[a] - begin[a]) < 0)
                __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
            else
                p->common[i] = common(&t, p->hash + begin[b], end[b] - begin[b]);
        }
        free(t.slot);
    }
    return failed ? err_set(e, ERR_NOMEM, "out of memory for the elements of a set") : 0;
}
