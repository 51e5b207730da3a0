#include "curate/dedup/dedup_units.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/pool.h"
#include "base/spill.h"

enum { PART_BITS = 6, PARTS = 1 << PART_BITS, READ = 1 << 18, BUFFER_MOST = 1 << 16, RECENT = 16 };

/* The first of a document in its part has this bit in `unit`: so records that follow one another are known to be of one
 * document. */
#define OTHER_DOC (UINT64_C(1) << 63)
struct record {
    uint64_t lo, hi, unit;
};

struct dedup_units {
    const char *dir;
    int64_t memory;
    struct spill part[PARTS];
    uint64_t n, read, counted;
    uint64_t doc, doc_in[PARTS]; /* documents so far; that of each part's last record */
    struct hash128 recent[PARTS][RECENT];
    uint64_t again[PARTS]; /* records of keys that are among the recent ones: of blank lines, mostly */
    struct spill_map bits;
    enum dedup_rule rule;
    uint32_t over;
    int jobs, next_part;
    dedup_units_taker *tell; /* NULL: nobody wants to know */
    void *tell_to;
    pthread_mutex_t lock; /* one is told at a time */
};

int dedup_units_open(struct dedup_units **out, const char *dir, int64_t memory, struct err *e)
{
    struct dedup_units *u = calloc(1, sizeof *u);
    size_t cap = (size_t)memory / 4 / PARTS;
    int rc = 0;

    *out = u;
    if (!u)
        return err_set(e, ERR_NOMEM, "out of memory");
    u->dir = dir;
    u->memory = memory;
    pthread_mutex_init(&u->lock, NULL);
    for (int i = 0; i < PARTS; i++)
        u->part[i].fd = -1;
    u->doc = 1;
    cap = cap < 4096 ? 4096 : cap > BUFFER_MOST ? BUFFER_MOST : cap;
    for (int i = 0; i < PARTS && rc == 0; i++)
        rc = spill_open(&u->part[i], dir, cap, e);
    if (rc < 0) {
        dedup_units_close(u);
        *out = NULL;
    }
    return rc;
}

void dedup_units_close(struct dedup_units *u)
{
    if (!u)
        return;
    for (int i = 0; i < PARTS; i++)
        spill_close(&u->part[i]);
    spill_map_close(&u->bits);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

int dedup_units_add(struct dedup_units *u, struct hash128 key, struct err *e)
{
    size_t part = key.hi >> (64 - PART_BITS);
    struct record r = {key.lo, key.hi, u->n++ | (u->doc_in[part] != u->doc ? OTHER_DOC : 0)};
    struct hash128 *recent = &u->recent[part][key.lo % RECENT];

    u->doc_in[part] = u->doc;
    u->again[part] += recent->lo == key.lo && recent->hi == key.hi;
    *recent = key;
    return spill_put(&u->part[part], &r, sizeof r, e);
}

int dedup_units_add_unmarked(struct dedup_units *u, struct err *e)
{
    (void)e;
    u->n++;
    return 0;
}

void dedup_units_next_doc(struct dedup_units *u)
{
    u->doc++;
}

void dedup_units_tell(struct dedup_units *u, dedup_units_taker *tell, void *to)
{
    u->tell = tell;
    u->tell_to = to;
}

uint64_t dedup_units_count(const struct dedup_units *u)
{
    return u->n;
}

uint64_t dedup_units_counted(const struct dedup_units *u)
{
    return u->counted;
}

/* ---- a part ---- */

/* Keys without their lowest bits: hi's is 1 where a slot is taken, lo's tells "twice", or where keys are counted that its
 * first unit was seen again. */
struct slot {
    uint64_t lo, hi;
};
struct table {
    struct slot *slot;
    uint32_t *count; /* of each slot's key; NULL: twice is enough to know */
    uint64_t *doc;   /* of each slot's key: the last document that had it; NULL: documents make no difference */
    size_t cap, used;
    uint64_t now;    /* the document of the record in hand; those of another scan are others */
    uint64_t counted;
};

/* Empty, of so many slots, of which counts and documents are wanted or not. */
static int table_open(struct table *t, size_t cap, bool counts, bool docs)
{
    *t = (struct table){.cap = cap, .slot = calloc(cap, sizeof *t->slot), .count = counts ? calloc(cap, sizeof *t->count) : NULL,
                        .doc = docs ? calloc(cap, sizeof *t->doc) : NULL};
    return t->slot && (t->count || !counts) && (t->doc || !docs) ? 0 : ERR_NOMEM;
}

static void table_close(struct table *t)
{
    free(t->slot);
    free(t->count);
    free(t->doc);
}

static struct slot *find(const struct table *t, const struct record *r)
{
    size_t at = (size_t)((unsigned __int128)r->lo * t->cap >> 64);

    for (;; at = at + 1 < t->cap ? at + 1 : 0) {
        struct slot *s = &t->slot[at];
        if (!s->hi || (s->hi == (r->hi | 1) && (s->lo | 1) == (r->lo | 1)))
            return s;
    }
}

static void mark(struct dedup_units *u, uint64_t unit)
{
    __atomic_fetch_or(&u->bits.p[unit / 8], (unsigned char)(1u << (unit & 7)), __ATOMIC_RELAXED);
}

/* Keys that are badly spread need more room than was counted on. */
static int grow(struct table *t)
{
    struct table big;

    if (table_open(&big, 2 * t->cap, t->count, t->doc) < 0) {
        table_close(&big);
        return ERR_NOMEM;
    }
    big.used = t->used;
    big.now = t->now;
    big.counted = t->counted;
    for (size_t i = 0; i < t->cap; i++) {
        struct slot *to = t->slot[i].hi ? find(&big, &(struct record){t->slot[i].lo, t->slot[i].hi, 0}) : NULL;

        if (to)
            *to = t->slot[i];
        if (to && t->count)
            big.count[to - big.slot] = t->count[i];
        if (to && t->doc)
            big.doc[to - big.slot] = t->doc[i];
    }
    table_close(t);
    *t = big;
    return 0;
}

/* Whether the document in hand has had the slot's key before; it has now. */
static bool doc_again(struct table *t, const struct slot *s)
{
    uint64_t *doc = t->doc ? &t->doc[s - t->slot] : NULL;
    bool again = doc && *doc == t->now;

    if (doc)
        *doc = t->now;
    return again;
}

/* 1: the key is there already; 0: it was not. */
static int enter(struct table *t, const struct record *r)
{
    struct slot *s;
    bool there;

    if (t->used >= t->cap / 10 * 9)
        TRY(grow(t));
    s = find(t, r);
    there = s->hi != 0;
    if (!there) {
        *s = (struct slot){r->lo & ~1ULL, r->hi | 1};
        t->used++;
    }
    if (doc_again(t, s))
        return 1;
    t->counted++;
    if (there && !t->count)
        s->lo |= 1;
    if (t->count && t->count[s - t->slot] < UINT32_MAX)
        t->count[s - t->slot]++;
    return there;
}

static int tell(struct dedup_units *u, uint64_t unit, uint32_t count, struct err *e)
{
    int rc;

    pthread_mutex_lock(&u->lock);
    rc = u->tell(u->tell_to, unit, count, e);
    pthread_mutex_unlock(&u->lock);
    return rc;
}

/* All have been entered.  1: this unit is to be marked; 0: it is not. */
static int is_over(struct dedup_units *u, struct table *t, const struct record *r, struct err *e)
{
    struct slot *s = find(t, r);
    bool seen = s->lo & 1, again = u->rule == DEDUP_DOCS_ONE && doc_again(t, s);
    uint32_t count;

    if (!t->count)
        return seen || again;
    s->lo |= 1;
    count = t->count[s - t->slot];
    if (count <= u->over)
        return again;
    if (u->tell && !seen)
        TRY(tell(u, r->unit & ~OTHER_DOC, count, e));
    return u->rule != DEDUP_FIRST || seen;
}

/* A record is entered.  1: its unit is to be marked by what is known so far; 0: it is not. */
static int enter_one(const struct dedup_units *u, struct table *t, const struct record *r, struct err *e)
{
    int there = enter(t, r);

    if (there < 0)
        return err_set(e, there, "out of memory for %zu keys", t->used);
    return there && u->rule == DEDUP_FIRST && !t->count;
}

/* Goes through the records of a part that belong to slice k of n: enters them and marks those that were there, or then,
 * once more, marks those of which it takes all to know. */
static int scan(struct dedup_units *u, const struct spill *part, struct table *t, uint64_t k, uint64_t n,
                bool second, struct err *e)
{
    struct spill_reader r;
    struct record x;
    size_t got;
    int rc = spill_reader_open(&r, part, 0, part->size, READ / sizeof x * sizeof x, e);

    while (rc >= 0 && (rc = spill_ahead(&r, sizeof x, &got, e)) == 0 && got) {
        memcpy(&x, r.buf + r.pos, sizeof x);
        r.pos += sizeof x;
        t->now += x.unit & OTHER_DOC ? 1 : 0;
        if ((unsigned __int128)(x.hi << PART_BITS) * n >> 64 != k)
            continue;
        rc = second ? is_over(u, t, &x, e) : enter_one(u, t, &x, e);
        if (rc > 0)
            mark(u, x.unit & ~OTHER_DOC);
    }
    spill_reader_close(&r);
    return rc < 0 ? rc : 0;
}

static int do_part(struct dedup_units *u, int number, struct err *e)
{
    struct spill *part = &u->part[number];
    size_t keys = (size_t)(part->size / sizeof(struct record) - u->again[number]); /* or fewer */
    bool counts = u->over > 1 || u->tell, docs = u->rule >= DEDUP_DOCS_NONE;
    size_t each = sizeof(struct slot) + (counts ? sizeof(uint32_t) : 0) + (docs ? sizeof(uint64_t) : 0);
    size_t room = (size_t)(u->memory * 3 / 4) / (size_t)u->jobs / each * 2 / 3;
    size_t slices, most;

    if (!part->size)
        return 0;
    if (room < 4096)
        room = 4096;
    slices = keys / room + 1;
    most = keys / slices;
    most += most / 8 + 1024; /* slices are not quite equal */
    if (most > keys)
        most = keys;
    for (size_t k = 0; k < slices; k++) {
        struct table t;
        int rc = table_open(&t, most + most / 2 + 1, counts, docs);

        if (rc < 0)
            err_set(e, rc, "out of memory for %zu keys", most);
        else
            rc = scan(u, part, &t, k, slices, false, e);
        if (rc == 0 && (u->rule != DEDUP_FIRST || counts))
            rc = scan(u, part, &t, k, slices, true, e);
        __atomic_fetch_add(&u->counted, t.counted, __ATOMIC_RELAXED);
        table_close(&t);
        TRY(rc);
    }
    if (u->bits.n > (size_t)u->memory / 16)
        spill_map_forget(&u->bits);
    return 0;
}

static int work(void *arg, int thread, struct err *e)
{
    struct dedup_units *u = arg;
    int i, rc = 0;

    (void)thread;
    while (rc == 0 && (i = __atomic_fetch_add(&u->next_part, 1, __ATOMIC_RELAXED)) < PARTS) {
        rc = do_part(u, i, e);
        spill_close(&u->part[i]);
    }
    return rc;
}

int dedup_units_resolve(struct dedup_units *u, enum dedup_rule rule, uint32_t over, int jobs, struct err *e)
{
    u->rule = rule;
    u->over = over;
    u->jobs = jobs > PARTS ? PARTS : jobs;
    for (int i = 0; i < PARTS; i++)
        TRY(spill_flush(&u->part[i], e));
    TRY(spill_map_open(&u->bits, u->dir, (size_t)(u->n / 8 + 1), e));
    return pool_share(u->jobs, work, u, e);
}

void dedup_units_next(struct dedup_units *u, size_t n, uint8_t *mark_of)
{
    for (size_t i = 0; i < n; i++, u->read++)
        mark_of[i] = u->bits.p[u->read / 8] >> (u->read & 7) & 1;
    /* (a forward walk: what lies behind may leave memory) */
    if (u->bits.n > (size_t)u->memory / 16 && (u->read >> 24) != ((u->read - n) >> 24))
        spill_map_forget(&u->bits);
}
