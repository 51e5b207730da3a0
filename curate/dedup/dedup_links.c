#include "curate/dedup/dedup_links.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

enum { READ = 1 << 18, LEAST_SLOTS = 1 << 12 };

struct links {
    char *root;
    size_t stride;
};

struct join {
    struct spill *parts;
    dedup_same *same;
    void *arg;
    size_t slots; /* of a thread's table, at most */
    int next;     /* part */
};

/* ---- union-find, by any number of threads (Anderson and Woll 1991) ---- */

static uint32_t *root_at(const struct links *l, uint64_t doc)
{
    void *p = l->root + doc * l->stride;

    return p;
}

static uint32_t root_of(const struct links *l, uint32_t doc)
{
    for (;;) {
        uint32_t up = __atomic_load_n(root_at(l, doc), __ATOMIC_RELAXED);
        uint32_t next = __atomic_load_n(root_at(l, up), __ATOMIC_RELAXED);

        if (up == next)
            return up;
        __atomic_compare_exchange_n(root_at(l, doc), &up, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        doc = next;
    }
}

/* The greater root goes below the smaller one, so that the end is the same in any order. */
static int unite(void *links, int part, uint64_t a, uint64_t b, struct err *e)
{
    const struct links *l = links;

    (void)part, (void)e;
    for (;;) {
        uint32_t x = root_of(l, (uint32_t)a), y = root_of(l, (uint32_t)b), less = x < y ? x : y,
                 more = x < y ? y : x;

        if (x == y || __atomic_compare_exchange_n(root_at(l, more), &more, less, false, __ATOMIC_RELAXED,
                                                  __ATOMIC_RELAXED))
            return 0;
    }
}

/* ---- a part ---- */

/* Keys of which the low half % rounds == round.  (All of a part have the same first bits.) */
static int one_round(const struct join *l, int number, uint64_t round, uint64_t rounds, struct store_key *table, size_t slots,
                     struct err *e)
{
    const struct spill *part = &l->parts[number];
    struct spill_reader in;
    struct store_key r;
    int rc = spill_reader_open(&in, part, 0, part->size, READ, e);

    memset(table, 0xff, slots * sizeof *table); /* no doc has UINT64_MAX */
    for (uint64_t left = part->size / sizeof r; left-- > 0 && rc == 0;) {
        size_t at;

        rc = spill_next(&in, &r, sizeof r, e);
        if (rc < 0 || (rounds > 1 && (uint32_t)r.key % rounds != round))
            continue;
        at = (size_t)((unsigned __int128)(r.key << STORE_PART_BITS) * slots >> 64);
        while (table[at].doc != UINT64_MAX && table[at].key != r.key)
            at = at + 1 < slots ? at + 1 : 0;
        if (table[at].doc == UINT64_MAX)
            table[at] = r;
        else
            rc = l->same(l->arg, number, table[at].doc, r.doc, e);
    }
    spill_reader_close(&in);
    return rc;
}

/* Tables are at most two thirds full if keys are spread evenly, and never quite full. */
static size_t slots_wanted(const struct spill *part)
{
    uint64_t keys = part->size / sizeof(struct store_key);

    return (size_t)(keys + keys / 2 + LEAST_SLOTS);
}

static int one_part(const struct join *l, int number, struct err *e)
{
    uint64_t rounds;
    size_t want = slots_wanted(&l->parts[number]), slots = want < l->slots ? want : l->slots;
    struct store_key *table = malloc(slots * sizeof *table);
    int rc = table ? 0 : err_set(e, ERR_NOMEM, "out of memory for the bands of documents");

    rounds = slots == want ? 1 : (uint64_t)(want - LEAST_SLOTS) / (slots - slots / 4) + 1;
    for (uint64_t i = 0; i < rounds && rc == 0; i++)
        rc = one_round(l, number, i, rounds, table, slots, e);
    free(table);
    return rc;
}

static int work(void *arg, int thread, struct err *e)
{
    struct join *l = arg;
    int i, rc = 0;

    (void)thread;
    while (rc == 0 && (i = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED)) < STORE_PARTS) {
        rc = one_part(l, i, e);
        spill_close(&l->parts[i]);
    }
    return rc;
}

int dedup_links_join(struct spill *parts, int64_t memory, int jobs, dedup_same *same, void *arg, struct err *e)
{
    struct join l = {.parts = parts, .same = same, .arg = arg, .slots = LEAST_SLOTS};
    size_t most = (size_t)memory / sizeof(struct store_key), threads;

    /* A part is read once if that can be, rather by fewer threads. */
    for (int i = 0; i < STORE_PARTS; i++)
        if (slots_wanted(&parts[i]) > l.slots)
            l.slots = slots_wanted(&parts[i]);
    if (l.slots > most)
        l.slots = most > LEAST_SLOTS ? most : LEAST_SLOTS;
    threads = most / l.slots;
    return pool_share(threads < 1 ? 1 : threads < (size_t)jobs ? (int)threads : jobs, work, &l, e);
}

int dedup_links_find(struct dedup_store *s, uint32_t *root, size_t stride, int64_t memory, int jobs, struct err *e)
{
    struct links l = {.root = (char *)root, .stride = stride};

    for (uint64_t d = 0; d < s->n; d++)
        *root_at(&l, d) = (uint32_t)d;
    TRY(dedup_links_join(s->keys, memory, jobs, unite, &l, e));
    for (uint64_t d = 0; d < s->n; d++)
        *root_at(&l, d) = root_of(&l, (uint32_t)d);
    return 0;
}
