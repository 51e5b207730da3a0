#include "curate/dedup/dedup_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "curate/dedup/dedup_links.h"
#include "curate/dedup/dedup_members.h"
#include "curate/dedup/minhash_preset.h"

/* While groups are looked for, fate.survivor is the root of a document's group and fate.similarity
 * one of these; a document that has been decided has its similarity. */
#define ALONE (-1.0f)
#define ROOT (-2.0f) /* and others are linked with it */

enum { RANGES = 1 << 16, LEAST_BLOCK = 16, LOAD_AT_ONCE = 1 << 10, READ = 1 << 18 };

struct blocks {
    const struct dedup_plan *p;
    struct dedup_fate *fate; /* of all */
    struct dedup_tally *t;
    size_t cap;              /* documents of a block */
    struct members members;
    /* The block: documents, and what becomes of them by their places in it. */
    struct member *doc;
    size_t docs;
    struct dedup_fate *own;
    struct set_ref *set;
    struct order { uint32_t number, place; } *order;
    struct dedup_bands bands;
    /* Of a group that was cut: the piece, and on disk those that later ones must be held against. */
    struct member *piece;
    struct spill before;
    uint64_t n_before;
};

/* ---- a block ---- */

static bool stays(const struct blocks *b, const struct member *m)
{
    return b->fate[m->number].survivor == m->number;
}

static int by_number(const void *x, const void *y)
{
    const struct order *a = x, *b = y;

    return a->number < b->number ? -1 : a->number > b->number;
}

struct loading {
    struct blocks *b;
    size_t next; /* of the order */
};

static int load_one(struct blocks *b, struct order at, struct err *e)
{
    struct band_record r = dedup_bands_at(&b->bands, at.place);
    struct store_doc d;

    TRY(dedup_store_record(b->p->store, at.number, &r, e));
    TRY(dedup_store_doc(b->p->store, at.number, &d, e));
    b->set[at.place] = d.set;
    return 0;
}

static int load_some(void *arg, int thread, struct err *e)
{
    struct loading *w = arg;
    struct blocks *b = w->b;
    size_t i, end;

    (void)thread;
    while ((i = __atomic_fetch_add(&w->next, LOAD_AT_ONCE, __ATOMIC_RELAXED)) < b->docs)
        for (end = i + LOAD_AT_ONCE < b->docs ? i + LOAD_AT_ONCE : b->docs; i < end; i++)
            TRY(load_one(b, b->order[i], e));
    return 0;
}

/* Reads signatures in the order in which they are on disk. */
static int load(struct blocks *b, struct err *e)
{
    struct loading w = {.b = b};
    size_t pieces = b->docs / LOAD_AT_ONCE + 1;

    TRY(dedup_bands_room(&b->bands, b->docs, e));
    for (size_t i = 0; i < b->docs; i++)
        b->order[i] = (struct order){b->doc[i].number, (uint32_t)i};
    qsort(b->order, b->docs, sizeof *b->order, by_number);
    return pool_share(pieces < (size_t)b->p->jobs ? (int)pieces : b->p->jobs, load_some, &w, e);
}

static int tell_pair(void *arg, uint32_t other, uint32_t doc, float similarity, struct err *e)
{
    const struct blocks *b = arg;
    uint32_t x = b->doc[other].number, y = b->doc[doc].number;
    bool first = x < y || b->doc[other].rank == UINT64_MAX; /* what stays in any case is none of the run's, and comes first */

    return b->p->listener->pair(b->p->listener->arg, first ? x : y, first ? y : x, similarity, e);
}

/* Decides the block; of a document that was dropped before, nothing changes. */
static int run_block(struct blocks *b, size_t fixed, bool fixed_only, struct err *e)
{
    const struct dedup_plan *p = b->p;
    struct dedup_listener listener = {tell_pair, b};
    struct dedup_block k = {.bands = &b->bands, .set = b->set, .sets = &p->store->sets, .fixed = (uint32_t)fixed,
                            .fixed_only = fixed_only, .index_memory = (size_t)p->memory / 4, .laps = p->laps};
    uint64_t t = laps_now();
    int rc;

    TRY(dedup_bands_init(&b->bands, p->bands, p->rows, e));
    rc = load(b, e);
    t = laps_add(p->laps, LAP_LOAD, t);
    for (uint32_t i = 0; i < b->docs; i++)
        b->own[i] = (struct dedup_fate){.survivor = stays(b, &b->doc[i]) ? i : UINT32_MAX, .similarity = 1};
    if (rc == 0)
        rc = dedup_bands_index(&b->bands, p->jobs, e);
    laps_add(p->laps, LAP_BUCKETS, t);
    if (rc == 0)
        rc = dedup_cluster(&k, p->threshold, p->jobs, p->listener ? &listener : NULL, b->own, b->t, e);
    dedup_bands_free(&b->bands);
    for (uint32_t i = 0; i < b->docs && rc == 0; i++)
        if (b->own[i].survivor != i && b->own[i].survivor != UINT32_MAX)
            b->fate[b->doc[i].number] = (struct dedup_fate){.survivor = b->doc[b->own[i].survivor].number,
                                                            .similarity = b->own[i].similarity};
    return rc;
}

/* ---- groups ---- */

/* Whole groups at once, which are in b->doc: first those that stay in any case. */
static int whole_groups(struct blocks *b, size_t n, struct err *e)
{
    size_t fixed = 0, others = 0;

    for (size_t i = 0; i < n; i++)
        if (b->doc[i].rank == UINT64_MAX)
            fixed++;
    for (size_t i = 0, at = 0; i < n && fixed; i++) { /* each group begins with its own */
        if (b->doc[i].rank == UINT64_MAX)
            b->piece[at++] = b->doc[i];
        else
            b->doc[others++] = b->doc[i];
    }
    if (fixed) {
        memmove(b->doc + fixed, b->doc, others * sizeof *b->doc);
        memcpy(b->doc, b->piece, fixed * sizeof *b->doc);
    }
    b->docs = n;
    return run_block(b, fixed, false, e);
}

/* The block becomes `fixed` of those before and what is left of the piece of n. */
static int fill(struct blocks *b, uint64_t from, size_t fixed, size_t n, struct err *e)
{
    if (fixed)
        TRY(spill_read(&b->before, from * sizeof *b->doc, b->doc, fixed * sizeof *b->doc, e));
    b->docs = fixed;
    for (size_t i = 0; i < n; i++)
        if (b->p->listener || stays(b, &b->piece[i]))
            b->doc[b->docs++] = b->piece[i];
    return 0;
}

/* Those of the piece that stay, or all for a listener. */
static int remember(struct blocks *b, size_t n, struct err *e)
{
    size_t keep = 0;

    for (size_t i = 0; i < n; i++)
        if (b->p->listener || stays(b, &b->piece[i]))
            b->piece[keep++] = b->piece[i];
    TRY(spill_write(&b->before, b->n_before * sizeof *b->piece, b->piece, keep * sizeof *b->piece, e));
    b->n_before += keep;
    return 0;
}

/* The n members from `at` on, a piece at a time. */
static int cut_group(struct blocks *b, uint64_t at, uint64_t n, struct err *e)
{
    size_t most = b->cap / 2, piece, fixed;

    b->n_before = 0;
    for (uint64_t end = at + n; at < end; at += piece) {
        piece = end - at < most ? (size_t)(end - at) : most;
        TRY(members_get(&b->members, at, piece, b->piece, e));
        if (b->piece[0].rank == UINT64_MAX) { /* those that stay in any case come first, and are not compared */
            for (fixed = 1; fixed < piece && b->piece[fixed].rank == UINT64_MAX;)
                fixed++;
            piece = fixed;
            TRY(remember(b, piece, e));
            continue;
        }
        for (uint64_t from = 0; from < b->n_before; from += fixed) {
            fixed = b->n_before - from < most ? (size_t)(b->n_before - from) : most;
            TRY(fill(b, from, fixed, piece, e));
            if (b->docs > fixed)
                TRY(run_block(b, fixed, true, e));
        }
        TRY(fill(b, 0, 0, piece, e));
        TRY(run_block(b, 0, false, e));
        TRY(remember(b, piece, e));
    }
    return 0;
}

/* ---- without verification ---- */

enum { AT_ONCE = 512 };

struct measuring {
    struct blocks *b;
    size_t n, next; /* of b->doc */
};

/* The similarity of a member to its survivor, of which one has no shingles here. */
static int estimate(const struct dedup_plan *p, uint32_t number, uint32_t survivor, float *similarity, struct err *e)
{
    struct dedup_bands shape = {.bands = p->bands, .rows = p->rows, .sketch_bytes = p->store->sketch_bytes};
    uint64_t key[MINHASH_MAX_BANDS];
    uint8_t x[MINHASH_MAX], y[MINHASH_MAX];
    struct band_record of_number = {key, x}, of_survivor = {key, y};

    TRY(dedup_store_record(p->store, number, &of_number, e));
    TRY(dedup_store_record(p->store, survivor, &of_survivor, e));
    *similarity = (float)dedup_bands_estimate(&shape, x, y);
    return 0;
}

/* The similarities of n members to their survivors. */
static int measure(struct measuring *w, struct dedup_compare *c, const struct member *m, size_t n, struct err *e)
{
    struct dedup_fate *fate = w->b->fate;
    struct set_ref set[2 * AT_ONCE];
    struct set_pair pair[AT_ONCE];
    struct store_doc d;
    uint32_t of[AT_ONCE], k = 0; /* whose pair it is */

    for (size_t i = 0; i < n; i++) {
        uint32_t number = m[i].number;
        fate[number].similarity = 1;
        if (fate[number].survivor == number)
            continue;
        TRY(dedup_store_doc(w->b->p->store, fate[number].survivor, &d, e));
        set[2 * k] = d.set;
        TRY(dedup_store_doc(w->b->p->store, number, &d, e));
        set[2 * k + 1] = d.set;
        pair[k] = (struct set_pair){.a = 2 * k, .b = 2 * k + 1};
        if (set[2 * k].size && set[2 * k + 1].size)
            of[k++] = number;
        else
            TRY(estimate(w->b->p, number, fate[number].survivor, &fate[number].similarity, e));
    }
    TRY(dedup_compare_run(c, set, 0, pair, k, e));
    for (uint32_t i = 0; i < k; i++)
        fate[of[i]].similarity = (float)pair[i].similarity;
    return 0;
}

static int measure_some(void *arg, int thread, struct err *e)
{
    struct measuring *w = arg;
    const struct dedup_plan *p = w->b->p;
    struct dedup_compare *c;
    size_t i, left;
    int rc = dedup_compare_new(&c, &p->store->sets, e);

    (void)thread;
    while (rc == 0 && (i = __atomic_fetch_add(&w->next, AT_ONCE, __ATOMIC_RELAXED)) < w->n) {
        left = w->n - i;
        rc = measure(w, c, w->b->doc + i, left < AT_ONCE ? left : AT_ONCE, e);
    }
    dedup_compare_free(c);
    return rc;
}

static int measure_all(struct blocks *b, size_t n, struct err *e)
{
    struct measuring w = {.b = b, .n = n};

    return pool_share(b->p->jobs, measure_some, &w, e);
}

/* The first of each group stays, and what stays in any case. */
static int unite_groups(struct blocks *b, struct err *e)
{
    struct member first = {.root = UINT32_MAX};
    size_t n;

    for (uint64_t at = 0; at < b->members.n; at += n) {
        n = b->members.n - at < b->cap ? (size_t)(b->members.n - at) : b->cap;
        TRY(members_get(&b->members, at, n, b->doc, e));
        for (size_t i = 0; i < n; i++) {
            if (b->doc[i].root != first.root)
                first = b->doc[i];
            if (b->doc[i].rank != UINT64_MAX)
                b->fate[b->doc[i].number].survivor = first.number;
        }
        if (!b->p->no_similarity)
            TRY(measure_all(b, n, e));
    }
    return 0;
}

/* ---- all groups ---- */

/* b->doc has n members from `at` on: how many of them are whole groups, given that these are not all there are. */
static size_t whole(const struct blocks *b, size_t n)
{
    size_t end = n - 1;

    while (end > 0 && b->doc[end - 1].root == b->doc[n - 1].root)
        end--;
    return end;
}

/* The size of the group that begins there and is larger than a block. */
static int large_group(struct blocks *b, uint64_t at, uint64_t *n, struct err *e)
{
    uint32_t root = b->doc[0].root;

    for (*n = b->cap; at + *n < b->members.n;) {
        uint64_t left = b->members.n - at - *n;
        size_t more = left < b->cap ? (size_t)left : b->cap, i = 0;

        TRY(members_get(&b->members, at + *n, more, b->doc, e));
        while (i < more && b->doc[i].root == root)
            i++;
        *n += i;
        if (i < more)
            break;
    }
    return 0;
}

static int verify_groups(struct blocks *b, struct err *e)
{
    uint64_t n;

    for (uint64_t at = 0; at < b->members.n; at += n) {
        n = b->members.n - at < b->cap ? b->members.n - at : b->cap;
        TRY(members_get(&b->members, at, (size_t)n, b->doc, e));
        if (at + n < b->members.n)
            n = whole(b, (size_t)n);
        if (n == 0) {
            TRY(large_group(b, at, &n, e));
            TRY(cut_group(b, at, n, e));
        } else {
            TRY(whole_groups(b, (size_t)n, e));
        }
    }
    return 0;
}

static bool in_group(const struct blocks *b, uint32_t d)
{
    return b->fate[d].similarity == ROOT ||
           (b->fate[d].similarity == ALONE && b->fate[d].survivor != d);
}

/* Each its own until decided. */
static int let_stay(struct blocks *b, struct err *e)
{
    size_t n;

    for (uint64_t at = 0; at < b->members.n; at += n) {
        n = b->members.n - at < b->cap ? (size_t)(b->members.n - at) : b->cap;
        TRY(members_get(&b->members, at, n, b->doc, e));
        for (size_t i = 0; i < n; i++)
            b->fate[b->doc[i].number] = (struct dedup_fate){.survivor = b->doc[i].number, .similarity = 1};
    }
    return 0;
}

/* The groups whose roots are in [first, last), n documents in all. */
static int some_groups(struct blocks *b, uint64_t first, uint64_t last, uint64_t n, struct err *e)
{
    const struct spill *docs = &b->p->store->docs;
    struct spill_reader in;
    int rc = spill_reader_open(&in, docs, first * sizeof(struct store_doc), docs->size, READ, e);

    members_clear(&b->members);
    for (uint64_t i = first; i < b->p->store->n && b->members.n < n && rc == 0; i++) {
        uint32_t root = b->fate[i].survivor;
        struct store_doc d;

        rc = spill_next(&in, &d, sizeof d, e);
        if (rc == 0 && root >= first && root < last && in_group(b, (uint32_t)i))
            rc = members_add(&b->members, &(struct member){d.rank, root, (uint32_t)i}, e);
    }
    spill_reader_close(&in);
    TRY(rc);
    TRY(members_sort(&b->members, e));
    TRY(let_stay(b, e));
    return b->p->verify ? verify_groups(b, e) : unite_groups(b, e);
}

/* Ranges of roots with as many documents as there is room for. */
static int all_groups(struct blocks *b, uint64_t *count, struct err *e)
{
    uint64_t docs = b->p->store->n, width = docs / RANGES + 1, n = 0;

    for (uint64_t d = 0; d < docs; d++) {
        b->fate[d].similarity = b->fate[d].similarity == ROOT ? ROOT : ALONE;
        if (b->fate[d].survivor != d)
            b->fate[b->fate[d].survivor].similarity = ROOT;
    }
    for (uint64_t d = 0; d < docs; d++)
        count[b->fate[d].survivor / width] += in_group(b, (uint32_t)d);
    for (uint64_t i = 0, from = 0; i < RANGES; i++) {
        n += count[i];
        if (n && (i + 1 == RANGES || n + count[i + 1] > b->members.room)) {
            TRY(some_groups(b, from * width, (i + 1) * width, n, e));
            n = 0;
        }
        from = n ? from : i + 1;
    }
    for (uint64_t d = 0; d < docs; d++)
        if (b->fate[d].similarity == ALONE)
            b->fate[d].similarity = 1;
    return 0;
}

/* What a document of a block takes. */
static size_t block_bytes(const struct dedup_plan *p, const struct dedup_bands *b)
{
    return dedup_bands_bytes(b) + 40 * (size_t)p->jobs + sizeof(struct order) + sizeof(struct set_ref) +
           sizeof(struct dedup_fate) + 2 * sizeof(struct member);
}

static int open_blocks(struct blocks *b, struct err *e)
{
    const struct dedup_plan *p = b->p;
    size_t fit, room;

    TRY(dedup_bands_init(&b->bands, p->bands, p->rows, e));
    fit = (size_t)(p->memory / 2) / block_bytes(p, &b->bands);
    dedup_bands_free(&b->bands);
    b->cap = fit < LEAST_BLOCK ? LEAST_BLOCK : fit < p->store->n ? fit : (size_t)p->store->n;
    b->doc = malloc((b->cap + 1) * sizeof *b->doc);
    b->piece = malloc((b->cap + 1) * sizeof *b->piece);
    b->own = malloc((b->cap + 1) * sizeof *b->own);
    b->set = malloc((b->cap + 1) * sizeof *b->set);
    b->order = malloc((b->cap + 1) * sizeof *b->order);
    if (!b->doc || !b->piece || !b->own || !b->set || !b->order)
        return err_set(e, ERR_NOMEM, "out of memory for %zu documents at a time", b->cap);
    TRY(spill_open(&b->before, p->dir, 1, e));
    room = (size_t)p->memory / 6 / sizeof(struct member); /* a quarter, with what merging takes */
    return members_open(&b->members, room < p->store->n ? room + 1 : (size_t)p->store->n + 1, p->dir, e);
}

static void close_blocks(struct blocks *b)
{
    members_close(&b->members);
    spill_close(&b->before);
    free(b->doc);
    free(b->piece);
    free(b->own);
    free(b->set);
    free(b->order);
}

int dedup_blocks_decide(const struct dedup_plan *p, struct dedup_fate *fate, struct dedup_tally *t, struct err *e)
{
    struct blocks b = {.p = p, .fate = fate, .t = t, .before = {.fd = -1}};
    uint64_t *count, now = laps_now();
    int rc;

    *t = (struct dedup_tally){0};
    for (uint64_t i = 0; i < p->store->n; i++)
        fate[i].similarity = 0;
    TRY(dedup_links_find(p->store, &fate->survivor, sizeof *fate, p->memory, p->jobs, e));
    laps_add(p->laps, LAP_LINKS, now);
    count = calloc(RANGES, sizeof *count);
    rc = count ? open_blocks(&b, e) : err_set(e, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = all_groups(&b, count, e);
    free(count);
    close_blocks(&b);
    return rc;
}
