#include "curate/dedup_exact.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/json.h"
#include "curate/dedup_ids.h"

/* ---- set ---- */

struct hash_slot {
    uint64_t lo, hi, value; /* value NO_VALUE: free */
};
struct hash_set {
    struct hash_slot *slot;
    size_t cap, count; /* cap is a power of two; at most three quarters are used */
};
#define NO_VALUE UINT64_MAX
enum { FIRST_CAP = 1024 };

static struct hash_slot *slots_new(size_t cap)
{
    struct hash_slot *s = malloc(cap * sizeof *s);

    for (size_t i = 0; s && i < cap; i++)
        s[i].value = NO_VALUE;
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

size_t hash_set_count(const struct hash_set *s)
{
    return s->count;
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

/* ---- stage ---- */

struct exact {
    struct hash_set *set; /* text -> number of the document that stays */
    struct id_list ids;   /* of those that stay */
};

/* The note: the hash of the text, then the id. */
static int exact_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note,
                      struct err *e)
{
    struct hash128 *h = arena_alloc(d->arena, sizeof *h + d->id.n);

    (void)stage;
    (void)thread;
    (void)v;
    if (!h)
        return err_set(e, ERR_NOMEM, "out of memory for a hash");
    *h = hash_xxh3_128(d->text);
    memcpy(h + 1, d->id.p, d->id.n);
    *note = (struct span){(char *)h, sizeof *h + d->id.n};
    return 0;
}

static int exact_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                        struct err *e)
{
    struct exact *x = stage;
    const struct hash128 *h = (const void *)note.p;
    struct span id = {note.p + sizeof *h, note.n - sizeof *h};
    uint64_t number = x->ids.n;
    int rc;

    (void)reply, (void)a;
    rc = hash_set_add(x->set, h->lo, h->hi, &number);

    if (rc == 1) {
        rc = id_list_add(&x->ids, id);
    } else if (rc == 0) {
        verdict_drop(v, "duplicate", 1, NAN);
        v->survivor = x->ids.id[number];
    }
    return rc < 0 ? err_set(e, rc, "out of memory: %zu different texts so far", x->ids.n) : 0;
}

static int exact_stats(void *stage, struct buf *json)
{
    struct exact *x = stage;

    TRY(json_put_key(json, "distinct"));
    return json_put_int(json, (int64_t)x->ids.n);
}

static void exact_close(void *stage)
{
    struct exact *x = stage;

    if (!x)
        return;
    hash_set_free(x->set);
    id_list_free(&x->ids);
    free(x);
}

static const struct stage_ops exact_ops = {
    .name = "dedup exact",
    .work = exact_work,
    .commit = exact_commit,
    .stats = exact_stats,
    .close = exact_close,
};

int dedup_exact_stage_open(struct stage *st, struct err *e)
{
    struct exact *x = calloc(1, sizeof *x);

    if (x)
        x->set = hash_set_new();
    if (!x || !x->set) {
        exact_close(x);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    *st = (struct stage){&exact_ops, x};
    return 0;
}
