#include "curate/decontaminate/decontaminate_postings.h"

#include <stdlib.h>

static struct posting_slot *slot_of(const struct postings *p, uint64_t hash)
{
    size_t at = hash_mix64(hash) & p->mask;

    while (p->slot[at].count && p->slot[at].hash != hash)
        at = (at + 1) & p->mask;
    return &p->slot[at];
}

static int grow(struct postings *p)
{
    struct postings old = *p;

    if (old.slot && old.used <= old.mask / 2)
        return 0;
    p->mask = old.slot ? 2 * old.mask + 1 : 1023;
    p->slot = calloc(p->mask + 1, sizeof *p->slot);
    if (!p->slot) {
        *p = old;
        return ERR_NOMEM;
    }
    for (size_t i = 0; old.slot && i <= old.mask; i++)
        if (old.slot[i].count)
            *slot_of(p, old.slot[i].hash) = old.slot[i];
    free(old.slot);
    return 0;
}

int postings_count(struct postings *p, uint32_t item, const uint64_t *word, size_t n, int width)
{
    for (size_t i = 0; i + (size_t)width <= n; i++) {
        uint64_t hash = gram_hash(word + i, width);
        struct posting_slot *s;
        TRY(grow(p));
        s = slot_of(p, hash);
        if (s->count && s->last == item)
            continue;
        p->used += !s->count;
        s->hash = hash;
        s->last = item;
        s->count++;
    }
    return 0;
}

int postings_place(struct postings *p)
{
    uint64_t total = 0;

    for (size_t i = 0; p->slot && i <= p->mask; i++) {
        p->slot[i].first = (uint32_t)total;
        p->slot[i].last = POSTING_NONE;
        total += p->slot[i].count;
    }
    if (total >= POSTING_NONE)
        return ERR_NOMEM;
    p->total = (uint32_t)total;
    p->item = malloc((total + 1) * sizeof *p->item);
    return p->item ? 0 : ERR_NOMEM;
}

struct posting_slot *postings_put(struct postings *p, uint64_t hash, uint32_t item)
{
    struct posting_slot *s = slot_of(p, hash);

    if (s->last == item)
        return NULL;
    s->last = item;
    p->item[s->first + s->filled++] = item;
    return s;
}

const struct posting_slot *postings_lookup(const struct postings *p, uint64_t hash)
{
    const struct posting_slot *s = p->slot ? slot_of(p, hash) : NULL;

    return s && s->count ? s : NULL;
}

uint32_t postings_find(const struct postings *p, const struct posting_slot *s, uint32_t item)
{
    uint32_t lo = s->first, hi = s->first + s->count;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (p->item[mid] < item)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->first + s->count && p->item[lo] == item ? lo : POSTING_NONE;
}

size_t postings_bytes(const struct postings *p)
{
    return (p->slot ? p->mask + 1 : 0) * sizeof *p->slot + (size_t)p->total * sizeof *p->item;
}

void postings_free(struct postings *p)
{
    free(p->slot);
    free(p->item);
    *p = (struct postings){0};
}
