#include "curate/dedup/dedup_best.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/pool.h"
#include "base/spill.h"

enum { PART_BITS = 6, PARTS = 1 << PART_BITS, READ = 1 << 18, MAX_RANGES = 256 };
enum { OTHERS = 28 << 20 }; /* what the rest of the program takes: threads' blocks, libraries */

struct record {
    uint64_t hi, lo, rank, number;
};

/* A document that goes, and for which; or one that stays, and STAYS and of how many. */
struct fate {
    uint64_t number, survivor;
};
#define STAYS (UINT64_C(1) << 63)

struct doc_record {
    struct hash128 key;
    uint64_t end; /* of its id in ids */
};

struct dedup_best {
    const char *dir;
    int64_t memory;
    struct spill part[PARTS];
    struct spill ids, docs; /* docs: of each, a struct doc_record */
    uint64_t n;
    /* Fates go to disk by ranges of numbers; that of one range is in memory. */
    struct spill fate[MAX_RANGES];
    int ranges, loaded;
    uint64_t range;     /* documents in each */
    uint64_t *survivor; /* of the range that is loaded: as a fate has it, and 1; 0: there is none */
    bool none;
    int jobs, next_part;
    pthread_mutex_t lock; /* fate */
};

int dedup_best_open(struct dedup_best **out, const char *dir, int64_t memory, struct err *e)
{
    struct dedup_best *b = calloc(1, sizeof *b);
    size_t cap = (size_t)memory / 8 / (PARTS + 2);
    int rc;

    *out = b;
    if (!b)
        return err_set(e, ERR_NOMEM, "out of memory");
    b->dir = dir;
    b->memory = memory;
    b->ids.fd = b->docs.fd = -1;
    for (int i = 0; i < PARTS; i++)
        b->part[i].fd = -1;
    for (int i = 0; i < MAX_RANGES; i++)
        b->fate[i].fd = -1;
    pthread_mutex_init(&b->lock, NULL);
    cap = cap < 4096 ? 4096 : cap > READ ? READ : cap;
    rc = spill_open(&b->ids, dir, cap, e);
    if (rc == 0)
        rc = spill_open(&b->docs, dir, cap, e);
    for (int i = 0; i < PARTS && rc == 0; i++)
        rc = spill_open(&b->part[i], dir, cap, e);
    if (rc < 0) {
        dedup_best_close(b);
        *out = NULL;
    }
    return rc;
}

void dedup_best_close(struct dedup_best *b)
{
    if (!b)
        return;
    for (int i = 0; i < PARTS; i++)
        spill_close(&b->part[i]);
    spill_close(&b->ids);
    spill_close(&b->docs);
    for (int i = 0; i < MAX_RANGES; i++)
        spill_close(&b->fate[i]);
    free(b->survivor);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

int dedup_best_add(struct dedup_best *b, struct hash128 key, uint64_t rank, struct span id, struct err *e)
{
    struct record r = {key.hi, key.lo, rank, b->n++};
    struct doc_record d = {key, 0};

    TRY(spill_put(&b->ids, id.p, id.n, e));
    d.end = b->ids.size;
    TRY(spill_put(&b->docs, &d, sizeof d, e));
    return spill_put(&b->part[key.hi >> (64 - PART_BITS)], &r, sizeof r, e);
}

uint64_t dedup_best_count(const struct dedup_best *b)
{
    return b->n;
}

/* ---- a part ---- */

/* Equal keys together, who stays in front. */
static int by_key(const void *x, const void *y)
{
    const struct record *a = x, *b = y;

    if (a->hi != b->hi)
        return a->hi < b->hi ? -1 : 1;
    if (a->lo != b->lo)
        return a->lo < b->lo ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static bool same_key(const struct record *a, const struct record *b)
{
    return a->hi == b->hi && a->lo == b->lo;
}

static int put_fate(struct dedup_best *b, uint64_t number, uint64_t survivor, struct err *e)
{
    struct fate f = {number, survivor};

    return spill_put(&b->fate[number / b->range], &f, sizeof f, e);
}

/* Of n sorted records, which hold all of every key in them, those that go. */
static int put_fates(struct dedup_best *b, const struct record *r, size_t n, struct err *e)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && same_key(&r[i], &r[end]); end++)
            TRY(put_fate(b, r[end].number, r[i].number, e));
        if (end > i + 1)
            TRY(put_fate(b, r[i].number, b->none && r[i].rank != UINT64_MAX ? r[i + 1].number : STAYS | (end - i), e));
    }
    return 0;
}

static int decide(struct dedup_best *b, struct record *r, size_t n, struct err *e)
{
    int rc;

    qsort(r, n, sizeof *r, by_key);
    pthread_mutex_lock(&b->lock);
    rc = put_fates(b, r, n, e);
    pthread_mutex_unlock(&b->lock);
    return rc;
}

/* The part's records in `rounds` rounds by the bits behind the part's own. */
static int one_round(struct dedup_best *b, const struct spill *s, uint64_t round, uint64_t rounds, struct record *r,
                     size_t cap, struct err *e)
{
    struct spill_reader in;
    struct record next;
    size_t n = 0;
    int rc = spill_reader_open(&in, s, 0, s->size, READ, e);

    for (uint64_t i = 0; i < s->size / sizeof next && rc == 0; i++) {
        rc = spill_next(&in, &next, sizeof next, e);
        if (rc == 0 && (uint64_t)((unsigned __int128)(next.hi << PART_BITS) * rounds >> 64) == round) {
            if (n == cap)
                rc = err_set(e, ERR_LIMIT, "one key has too many documents for the memory");
            else
                r[n++] = next;
        }
    }
    spill_reader_close(&in);
    if (rc < 0)
        return rc;
    return decide(b, r, n, e);
}

/* Sorting takes as much again.  Rounds are cut so that one fills half the room if keys are spread evenly; if very many documents
 * have one key, the room grows. */
static int one_part(struct dedup_best *b, const struct spill *s, struct err *e)
{
    size_t room = (size_t)((b->memory / 8 * 7 - OTHERS) / 2 / b->jobs) / sizeof(struct record);
    uint64_t all = s->size / sizeof(struct record), rounds;
    struct record *r;
    size_t cap;
    int rc = 0;

    room = room < 1024 ? 1024 : room;
    rounds = all <= room ? 1 : all / (room / 2) + 1;
    cap = all <= room ? (size_t)all : room;
    r = malloc((cap ? cap : 1) * sizeof *r);
    if (!r)
        return err_set(e, ERR_NOMEM, "out of memory to compare documents");
    for (uint64_t i = 0; i < rounds && rc == 0; i++) {
        rc = one_round(b, s, i, rounds, r, cap, e);
        while (rc == ERR_LIMIT) {
            struct record *more = cap < all ? realloc(r, 2 * cap * sizeof *r) : NULL;
            if (!more) {
                free(r);
                return err_set(e, ERR_NOMEM, "out of memory: %zu documents are alike", cap);
            }
            r = more;
            cap *= 2;
            rc = one_round(b, s, i, rounds, r, cap, e);
        }
    }
    free(r);
    return rc;
}

static int work(void *arg, int thread, struct err *e)
{
    struct dedup_best *b = arg;
    int i;

    (void)thread;
    while ((i = __atomic_fetch_add(&b->next_part, 1, __ATOMIC_RELAXED)) < PARTS)
        TRY(one_part(b, &b->part[i], e));
    return 0;
}

int dedup_best_resolve(struct dedup_best *b, bool none, int jobs, struct err *e)
{
    uint64_t room = (uint64_t)b->memory / 8 / sizeof *b->survivor;

    for (int i = 0; i < PARTS; i++)
        TRY(spill_flush(&b->part[i], e));
    TRY(spill_flush(&b->ids, e));
    TRY(spill_flush(&b->docs, e));
    b->ranges = b->n / room + 1 < MAX_RANGES ? (int)(b->n / room + 1) : MAX_RANGES;
    b->range = b->n / (uint64_t)b->ranges + 1;
    for (int i = 0; i < b->ranges; i++)
        TRY(spill_open(&b->fate[i], b->dir, READ / (b->ranges < 16 ? 1 : 16), e));
    b->none = none;
    b->jobs = jobs;
    TRY(pool_share(jobs, work, b, e));
    for (int i = 0; i < PARTS; i++)
        spill_close(&b->part[i]);
    for (int i = 0; i < b->ranges; i++)
        TRY(spill_flush(&b->fate[i], e));
    b->loaded = -1;
    b->survivor = malloc((size_t)b->range * sizeof *b->survivor);
    return b->survivor ? 0 : err_set(e, ERR_NOMEM, "out of memory for %" PRIu64 " documents", b->range);
}

static int load_range(struct dedup_best *b, int i, struct err *e)
{
    struct spill_reader in;
    struct fate f;
    int rc = spill_reader_open(&in, &b->fate[i], 0, b->fate[i].size, READ, e);

    b->loaded = -1;
    memset(b->survivor, 0, (size_t)b->range * sizeof *b->survivor);
    for (uint64_t k = 0; k < b->fate[i].size / sizeof f && rc == 0; k++) {
        rc = spill_next(&in, &f, sizeof f, e);
        if (rc == 0)
            b->survivor[f.number % b->range] = 1 + f.survivor;
    }
    spill_reader_close(&in);
    if (rc == 0)
        b->loaded = i;
    return rc;
}

int dedup_best_survivor(struct dedup_best *b, uint64_t n, uint64_t *survivor, struct err *e)
{
    int i = (int)(n / b->range);

    if (i != b->loaded)
        TRY(load_range(b, i, e));
    *survivor = b->survivor[n % b->range] - 1; /* of none all bits */
    *survivor = *survivor & STAYS ? n : *survivor;
    return 0;
}

uint64_t dedup_best_size(const struct dedup_best *b, uint64_t n)
{
    uint64_t fate = b->survivor[n % b->range];

    return fate ? (fate - 1) & ~STAYS : 1;
}

int dedup_best_key(struct dedup_best *b, uint64_t n, struct hash128 *key, struct err *e)
{
    struct doc_record d;

    TRY(spill_read(&b->docs, n * sizeof d, &d, sizeof d, e));
    *key = d.key;
    return 0;
}

int dedup_best_id(struct dedup_best *b, uint64_t n, struct arena *a, struct span *id, struct err *e)
{
    struct doc_record d[2] = {0};
    char *p;

    if (n)
        TRY(spill_read(&b->docs, (n - 1) * sizeof *d, d, sizeof d, e));
    else
        TRY(spill_read(&b->docs, 0, &d[1], sizeof *d, e));
    id->n = d[1].end - d[0].end;
    id->p = p = arena_alloc(a, id->n + 1);
    if (!p)
        return err_set(e, ERR_NOMEM, "out of memory for an id");
    return id->n ? spill_read(&b->ids, d[0].end, p, id->n, e) : 0;
}
