#include "curate/dedup/dedup_sets.h"

#include <stdlib.h>

#include "kernels/mirror.h"

enum { PAIRS = 4096 }; /* at a time */

struct dedup_compare {
    const struct spill *sets;
    struct device *dev;
    bool own; /* dev */
    size_t most;
    struct mirror hash, begin, end, a, b, common;
    struct set_pair *pair[PAIRS]; /* that are in there */
    size_t n_pairs, n_sets, used;
    uint64_t last; /* where the last a begins, and its number */
    uint32_t last_number;
};

void dedup_compare_free(struct dedup_compare *c)
{
    struct mirror *m;

    if (!c)
        return;
    m = c->dev ? &c->hash : NULL;
    for (; m && m <= &c->common; m++)
        mirror_free(c->dev, m);
    if (c->own)
        device_close(c->dev);
    free(c);
}

static int open_parts(struct dedup_compare *c, struct err *e)
{
    c->own = !c->dev;
    if (c->own)
        TRY(device_open_dedup(&c->dev, "cpu", 1, NULL, e));
    TRY(mirror_room(c->dev, &c->begin, 2 * PAIRS * sizeof(int64_t), e));
    TRY(mirror_room(c->dev, &c->end, 2 * PAIRS * sizeof(int64_t), e));
    TRY(mirror_room(c->dev, &c->a, PAIRS * sizeof(uint32_t), e));
    TRY(mirror_room(c->dev, &c->b, PAIRS * sizeof(uint32_t), e));
    return mirror_room(c->dev, &c->common, PAIRS * sizeof(uint32_t), e);
}

int dedup_compare_new(struct dedup_compare **out, const struct spill *sets, struct device *gpu, size_t hashes, struct err *e)
{
    struct dedup_compare *c = calloc(1, sizeof *c);
    int rc;

    *out = NULL;
    if (!c)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    c->sets = sets;
    c->dev = gpu;
    c->most = hashes;
    rc = open_parts(c, e);
    if (rc < 0)
        dedup_compare_free(c);
    else
        *out = c;
    return rc;
}

/* The pairs that have been put in. */
static int run(struct dedup_compare *c, const struct set_ref *set, struct err *e)
{
    struct ragged sets = {(int64_t)c->n_sets, (int64_t)c->used, c->begin.on, c->end.on};
    struct set_common p = {sets, c->hash.on, (int64_t)c->n_pairs, c->a.on, c->b.on, c->common.on};
    const uint32_t *common = c->common.host;
    size_t n = c->n_pairs;

    if (!n)
        return 0;
    TRY(mirror_put(c->dev, &c->hash, c->used * sizeof(uint64_t), e));
    TRY(mirror_put(c->dev, &c->begin, c->n_sets * sizeof(int64_t), e));
    TRY(mirror_put(c->dev, &c->end, c->n_sets * sizeof(int64_t), e));
    TRY(mirror_put(c->dev, &c->a, n * sizeof(uint32_t), e));
    TRY(mirror_put(c->dev, &c->b, n * sizeof(uint32_t), e));
    TRY(c->dev->dedup->set_common(c->dev, &p, e));
    TRY(mirror_get(c->dev, &c->common, n * sizeof(uint32_t), e));
    TRY(device_sync(c->dev, e));
    for (size_t i = 0; i < n; i++) {
        struct set_pair *s = c->pair[i];
        s->similarity = (double)common[i] / (double)(set[s->a].size + set[s->b].size - common[i]);
    }
    c->n_pairs = c->n_sets = c->used = 0;
    c->last = UINT64_MAX;
    return 0;
}

/* Reads a set; there is room.  Its number. */
static int put_set(struct dedup_compare *c, struct set_ref set, uint32_t *number, struct err *e)
{
    int64_t *begin = c->begin.host, *end = c->end.host;
    uint64_t *hash = (uint64_t *)c->hash.host + c->used;

    TRY(spill_read(c->sets, set.at * sizeof *hash, hash, set.size * sizeof *hash, e));
    *number = (uint32_t)c->n_sets;
    begin[c->n_sets] = (int64_t)c->used;
    c->used += set.size;
    end[c->n_sets++] = (int64_t)c->used;
    return 0;
}

static int put_pair(struct dedup_compare *c, const struct set_ref *set, struct set_pair *p, struct err *e)
{
    struct set_ref a = set[p->a], b = set[p->b];
    size_t room = c->hash.bytes / sizeof(uint64_t);

    if (c->n_pairs == PAIRS || c->used + a.size + b.size > room)
        TRY(run(c, set, e));
    if (a.size + b.size > room || !room)
        TRY(mirror_room(c->dev, &c->hash, (a.size + b.size > c->most ? a.size + b.size : c->most) * sizeof(uint64_t), e));
    if (c->n_pairs == 0 || c->last != a.at) {
        TRY(put_set(c, a, &c->last_number, e));
        c->last = a.at;
    }
    ((uint32_t *)c->a.host)[c->n_pairs] = c->last_number;
    TRY(put_set(c, b, &((uint32_t *)c->b.host)[c->n_pairs], e));
    c->pair[c->n_pairs++] = p;
    return 0;
}

int dedup_compare_run(struct dedup_compare *c, const struct set_ref *set, double floor, struct set_pair *pair, size_t n,
                      struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t x = set[pair[i].a].size, y = set[pair[i].b].size, less = x < y ? x : y, more = x < y ? y : x;

        pair[i].similarity = 0;
        if (less && (double)less / (double)more >= floor)
            TRY(put_pair(c, set, &pair[i], e));
    }
    return run(c, set, e);
}
