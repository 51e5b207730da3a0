#include "curate/dedup/dedup_anchors.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "curate/dedup/dedup_roll.h"

void anchors_free(struct anchors *as)
{
    free(as->a);
    free(as->ring);
    *as = (struct anchors){0};
}

/* The smallest of the window that ends at `last`; the first of equal ones. */
struct least {
    uint64_t hash;
    size_t at;
    bool twice; /* there was another like it */
};

static struct least least_of(const uint64_t *ring, size_t mask, size_t first, size_t last)
{
    struct least m = {ring[first & mask], first, false};

    for (size_t i = first + 1; i <= last; i++) {
        uint64_t h = ring[i & mask];
        if (h < m.hash)
            m = (struct least){h, i, false};
        else if (h == m.hash)
            m.twice = true;
    }
    return m;
}

static int put(struct anchors *as, const struct least *m, size_t starts)
{
    TRY(mem_grow(&as->a, &as->cap, as->n + 2, sizeof *as->a));
    as->a[as->n++] = (struct anchor){m->hash, starts};
    if (m->twice)
        as->a[as->n++] = (struct anchor){m->hash, 0};
    return 0;
}

/* Hashes of k elements roll along; the window has w of them. */
static inline int roll(struct anchors *as, const void *p, size_t n, int width, size_t k, size_t w, size_t mask)
{
    struct roll r;
    struct least m = {0};
    uint64_t h = 0;
    size_t from = 0;

    roll_init(&r, width, k);
    for (size_t i = 0; i < k - 1; i++)
        h = roll_in(&r, h, p, i);
    for (size_t i = 0; i + k <= n; i++) {
        size_t start = i - w + 1; /* of the passage whose last hash this is */
        h = roll_in(&r, h, p, i + k - 1);
        if (i)
            h = roll_out(&r, h, p, i - 1);
        as->ring[i & mask] = h;
        if (i + 1 < w)
            continue;
        if (i + 1 == w) {
            m = least_of(as->ring, mask, 0, i);
        } else if (h < m.hash || m.at < start) {
            struct least next = {h, i, false};
            if (h >= m.hash)
                next = least_of(as->ring, mask, start, i);
            if (next.hash != m.hash) {
                TRY(put(as, &m, start - from));
                from = start;
                m = next;
            } else {
                m.at = next.at;
                m.twice = true;
            }
        } else if (h == m.hash) {
            m.twice = true;
        }
    }
    return put(as, &m, n - k - w + 2 - from);
}

int anchors_find(struct anchors *as, const void *p, size_t n, int width, size_t length)
{
    size_t k = (length + 1) / 2, w = length - k + 1, cap = 64;

    as->n = 0;
    if (n < length)
        return 0;
    while (cap < w)
        cap *= 2;
    if (cap > as->ring_cap) {
        free(as->ring);
        as->ring_cap = 0;
        as->ring = malloc(cap * sizeof *as->ring);
        if (!as->ring)
            return ERR_NOMEM;
        as->ring_cap = cap;
    }
    return width == 1 ? roll(as, p, n, 1, k, w, as->ring_cap - 1) : roll(as, p, n, 4, k, w, as->ring_cap - 1);
}
