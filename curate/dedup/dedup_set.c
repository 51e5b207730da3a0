#include "curate/dedup/dedup_set.h"

#include <stdlib.h>
#include <string.h>

struct hash_slot {
    uint64_t lo, hi, value; /* value NO_VALUE: free */
};
struct hash_set {
    struct hash_slot *slot;
    size_t cap, count; /* cap is a power of two; at most three quarters are used */
};
#define NO_VALUE UINT64_MAX /* all bits set */
enum { FIRST_CAP = 1024 };

static struct hash_slot *slots_new(size_t cap)
{
    struct hash_slot *s = malloc(cap * sizeof *s);

    if (s)
        memset(s, 0xFF, cap * sizeof *s);
    return s;
}

struct hash_set *hash_set_new(void)
{
    struct hash_set *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->cap = FIRST_CAP;
    s->slot = slots_new(s->cap);
    if (!s->slot) {
        free(s);
        return NULL;
    }
    return s;
}

void hash_set_free(struct hash_set *s)
{
    if (s)
        free(s->slot);
    free(s);
}

/* The slot of the key, or the free one where it belongs. */
static struct hash_slot *slot_of(struct hash_slot *slot, size_t cap, uint64_t lo, uint64_t hi)
{
    size_t at = lo & (cap - 1);

    while (slot[at].value != NO_VALUE && (slot[at].lo != lo || slot[at].hi != hi))
        at = (at + 1) & (cap - 1);
    return &slot[at];
}

static int set_grow(struct hash_set *s)
{
    struct hash_slot *slot = s->cap <= SIZE_MAX / 2 / sizeof *slot ? slots_new(2 * s->cap) : NULL;

    if (!slot)
        return ERR_NOMEM;
    for (size_t i = 0; i < s->cap; i++)
        if (s->slot[i].value != NO_VALUE)
            *slot_of(slot, 2 * s->cap, s->slot[i].lo, s->slot[i].hi) = s->slot[i];
    free(s->slot);
    s->slot = slot;
    s->cap *= 2;
    return 0;
}

int hash_set_add(struct hash_set *s, uint64_t lo, uint64_t hi, uint64_t *value)
{
    struct hash_slot *at = slot_of(s->slot, s->cap, lo, hi);

    if (at->value != NO_VALUE) {
        *value = at->value;
        return 0;
    }
    if (s->count >= s->cap / 4 * 3) {
        TRY(set_grow(s));
        at = slot_of(s->slot, s->cap, lo, hi);
    }
    *at = (struct hash_slot){lo, hi, *value};
    s->count++;
    return 1;
}
