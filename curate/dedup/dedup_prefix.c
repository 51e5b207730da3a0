#include "curate/dedup/dedup_prefix.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Postings of a list that are not yet in order; the most that a counter counts to. */
enum { TAIL = 64, COUNT_MOST = UINT16_MAX, LEAST_SLOTS = 1 << 10, LEAST_COUNTERS = 1 << 12 };

/* A document that has a shingle in its prefix, and the room of the place where it stands. */
struct posting {
    uint32_t doc, room;
};

/* The documents that have a shingle: one, or `many` with room for a power of two.  These are runs by falling room, as
 * long as the powers of two that n is the sum of, the longest first; less than TAIL at the end are in no order. */
struct list {
    uint32_t tag; /* of the shingle's key; shingles of one tag share a list */
    uint32_t n;   /* 0: free */
    union {
        struct posting one, *many;
    };
};

struct prefix_index {
    const struct set_ref *set;
    const struct spill *sets;
    double t;          /* the threshold, so much less that no rounding loses a pair */
    uint16_t *count;   /* of the shingles of each hash */
    int count_shift;   /* to the counter: the first bits */
    uint64_t step, asked; /* every so manieth document is counted */
    struct list *list; /* by open addressing */
    size_t lists, slots;
    int slot_shift;
    size_t postings;   /* bytes of lists of many */
    size_t memory;
    struct posting *spare; /* for merging */
    size_t spare_cap;
    uint64_t *hash; /* of the set that is being counted */
    size_t hash_cap;
};

void prefix_free(struct prefix *x)
{
    free(x->key);
    *x = (struct prefix){0};
}

int prefix_index_new(struct prefix_index **out, const struct set_ref *set, const struct spill *sets, double threshold,
                     uint64_t hashes, size_t memory, struct err *e)
{
    struct prefix_index *p = calloc(1, sizeof *p);
    size_t counters = LEAST_COUNTERS;

    *out = p;
    if (!p)
        return err_set(e, ERR_NOMEM, "out of memory for shingles that are shared");
    *p = (struct prefix_index){.set = set, .sets = sets, .t = threshold * (1 - 1e-9), .memory = memory - memory / 4};
    p->count_shift = 64 - 12;
    while (counters * sizeof *p->count <= memory / 8 && counters < 2 * hashes) {
        counters *= 2;
        p->count_shift--;
    }
    p->step = hashes / counters + 1;
    p->count = calloc(counters, sizeof *p->count);
    return p->count ? 0 : err_set(e, ERR_NOMEM, "out of memory for counts of shingles");
}

void prefix_index_clear(struct prefix_index *p)
{
    for (size_t i = 0; i < p->slots; i++)
        if (p->list[i].n > 1)
            free(p->list[i].many);
    free(p->list);
    free(p->spare);
    p->list = NULL;
    p->spare = NULL;
    p->lists = p->slots = p->postings = p->spare_cap = 0;
}

void prefix_index_free(struct prefix_index *p)
{
    if (!p)
        return;
    prefix_index_clear(p);
    free(p->count);
    free(p->hash);
    free(p);
}

/* ---- the order ---- */

/* The document's set in *to, which grows. */
static int read_set(const struct prefix_index *p, uint32_t doc, uint64_t **to, size_t *cap, struct err *e)
{
    size_t n = p->set[doc].size;

    if (mem_room(to, cap, n, sizeof **to) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for %zu shingles", n);
    return n ? spill_read(p->sets, p->set[doc].at * sizeof **to, *to, n * sizeof **to, e) : 0;
}

int prefix_index_count(struct prefix_index *p, uint32_t doc, struct err *e)
{
    if (p->asked++ % p->step)
        return 0;
    TRY(read_set(p, doc, &p->hash, &p->hash_cap, e));
    for (size_t i = 0; i < p->set[doc].size; i++) {
        uint16_t *count = &p->count[hash_mix64(p->hash[i]) >> p->count_shift];
        *count += *count < COUNT_MOST;
    }
    return 0;
}

/* Puts the least `first` keys before the others (Hoare's quickselect). */
static void select_least(uint64_t *key, size_t n, size_t first)
{
    size_t low = 0, high = n;

    while (high - low > 1 && first > low && first < high) {
        uint64_t pivot = key[low + (high - low - 1) / 2], swap; /* not the last: both sides have some */
        size_t i = low, j = high - 1;

        for (;; i++, j--) {
            while (key[i] < pivot)
                i++;
            while (key[j] > pivot)
                j--;
            if (i >= j)
                break;
            swap = key[i];
            key[i] = key[j];
            key[j] = swap;
        }
        if (first <= j)
            high = j + 1;
        else
            low = j + 1;
    }
}

static int by_key(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;

    return *a < *b ? -1 : *a > *b;
}

/* A key is the count, 16 bits, and the first 48 of the hash, mixed. */
int prefix_of(const struct prefix_index *p, uint32_t doc, struct prefix *x, struct err *e)
{
    size_t n = p->set[doc].size;

    TRY(read_set(p, doc, &x->key, &x->cap, e));
    for (size_t i = 0; i < n; i++) {
        uint64_t h = hash_mix64(x->key[i]);
        x->key[i] = (uint64_t)p->count[h >> p->count_shift] << 48 | (h << 16) >> 16;
    }
    x->size = (uint32_t)n;
    x->n = (size_t)((1 - p->t) * (double)n) + 1;
    x->n = x->n < n ? x->n : n;
    select_least(x->key, n, x->n);
    qsort(x->key, x->n, sizeof *x->key, by_key);
    return 0;
}

/* True if only one document has it. */
static bool alone(const struct prefix_index *p, uint64_t key)
{
    return p->step == 1 && key >> 48 <= 1;
}

/* The room of place i of a set. */
static uint32_t room_at(const struct prefix_index *p, uint32_t size, size_t i)
{
    double room = (size - (1 + p->t) * (double)i) / p->t;

    return room <= 0 ? 0 : room >= UINT32_MAX ? UINT32_MAX : (uint32_t)room;
}

/* ---- lists ---- */

/* Where the list of a tag is, or would be. */
static struct list *list_of(const struct prefix_index *p, uint32_t tag)
{
    size_t at = (size_t)(tag * 0x9E3779B97F4A7C15ull >> p->slot_shift);

    while (p->list[at].n && p->list[at].tag != tag)
        at = at + 1 < p->slots ? at + 1 : 0;
    return &p->list[at];
}

static int grow(struct prefix_index *p, struct err *e)
{
    struct prefix_index more = *p;

    more.slots = p->slots ? 2 * p->slots : LEAST_SLOTS;
    more.list = calloc(more.slots, sizeof *more.list);
    if (!more.list)
        return err_set(e, ERR_NOMEM, "out of memory for shingles that are shared");
    more.slot_shift = p->slots ? p->slot_shift - 1 : 64 - 10;
    for (size_t i = 0; i < p->slots; i++)
        if (p->list[i].n)
            *list_of(&more, p->list[i].tag) = p->list[i];
    free(p->list);
    *p = more;
    return 0;
}

static int by_room(const void *x, const void *y)
{
    const struct posting *a = x, *b = y;

    return a->room > b->room ? -1 : a->room < b->room;
}

/* Makes one run of two of n postings each. */
static int merge(struct prefix_index *p, struct posting *run, size_t n, struct err *e)
{
    size_t a = n, b = n, to = 2 * n;

    if (mem_room(&p->spare, &p->spare_cap, n, sizeof *p->spare) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for shingles that are shared");
    memcpy(p->spare, run + n, n * sizeof *run);
    while (b)
        run[--to] = a && run[a - 1].room < p->spare[b - 1].room ? run[--a] : p->spare[--b];
    return 0;
}

static int put(struct prefix_index *p, struct list *l, struct posting x, struct err *e)
{
    if (l->n == 0) {
        l->one = x;
        l->n = 1;
        return 0;
    }
    if ((l->n & (l->n - 1)) == 0) {
        struct posting *more = realloc(l->n > 1 ? l->many : NULL, 2 * (size_t)l->n * sizeof *more);

        if (!more)
            return err_set(e, ERR_NOMEM, "out of memory for shingles that are shared");
        if (l->n == 1)
            more[0] = l->one;
        l->many = more;
        p->postings += l->n == 1 ? 32 : l->n * sizeof *more;
    }
    l->many[l->n++] = x;
    if (l->n % TAIL)
        return 0;
    qsort(l->many + l->n - TAIL, TAIL, sizeof x, by_room);
    for (uint32_t run = TAIL; l->n % (2 * run) == 0; run *= 2)
        TRY(merge(p, l->many + l->n - 2 * run, run, e));
    return 0;
}

int prefix_index_put(struct prefix_index *p, uint32_t doc, const struct prefix *x, struct err *e)
{
    for (size_t i = 0; i < x->n; i++) {
        uint32_t tag = (uint32_t)x->key[i];
        struct list *l;

        if (alone(p, x->key[i]))
            continue;
        if (4 * p->lists >= 3 * p->slots)
            TRY(grow(p, e));
        l = list_of(p, tag);
        p->lists += l->n == 0;
        l->tag = tag;
        TRY(put(p, l, (struct posting){doc, room_at(p, x->size, i)}, e));
    }
    return 0;
}

/* The table doubles at once, and is there twice for a moment. */
bool prefix_index_full(const struct prefix_index *p)
{
    size_t table = p->slots * sizeof *p->list;

    return (16 * p->lists >= 11 * p->slots ? 3 * table : table) + p->postings + p->spare_cap * sizeof *p->spare > p->memory;
}

/* ---- finding ---- */

int prefix_found_open(struct prefix_found *f, size_t docs, struct err *e)
{
    f->docs = docs;
    f->seen = calloc(docs + 1, sizeof *f->seen);
    return f->seen ? 0 : err_set(e, ERR_NOMEM, "out of memory for %zu documents", docs);
}

void prefix_found_close(struct prefix_found *f)
{
    free(f->doc);
    free(f->seen);
    *f = (struct prefix_found){0};
}

static int found(struct prefix_found *f, uint32_t doc, struct err *e)
{
    if (mem_grow(&f->doc, &f->cap, f->n + 1, sizeof *f->doc) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for documents that can be similar");
    f->seen[doc] = f->asked;
    f->doc[f->n++] = doc;
    return 0;
}

/* The length of the run that begins `left` postings before the end. */
static uint32_t run_length(uint32_t left)
{
    return left < TAIL ? left : UINT32_C(1) << (31 - __builtin_clz(left));
}

/* Those of a list that have room for x, and for which there is room at this place of x. */
static int find_in(const struct prefix_index *p, const struct list *l, const struct prefix *x, uint32_t room, uint64_t *most,
                   struct prefix_found *f, struct err *e)
{
    const struct posting *at = l->n == 1 ? &l->one : l->many, *run_end;

    for (uint32_t left = l->n, run; left && *most; left -= run, at = run_end) {
        run = run_length(left);
        run_end = at + run;
        for (; at < run_end && *most; at++) {
            --*most;
            if (at->room < x->size && run >= TAIL)
                break;
            if (at->room >= x->size && f->seen[at->doc] != f->asked && p->set[at->doc].size <= room)
                TRY(found(f, at->doc, e));
        }
    }
    return 0;
}

int prefix_index_find(const struct prefix_index *p, const struct prefix *x, uint64_t most, struct prefix_found *f,
                      bool *enough, struct err *e)
{
    f->n = 0;
    if (++f->asked == 0) { /* after 2^32 */
        memset(f->seen, 0, f->docs * sizeof *f->seen);
        f->asked = 1;
    }
    for (size_t i = 0; i < x->n && p->lists && most; i++) {
        const struct list *l;

        if (alone(p, x->key[i]))
            continue;
        l = list_of(p, (uint32_t)x->key[i]);
        if (l->n)
            TRY(find_in(p, l, x, room_at(p, x->size, i), &most, f, e));
    }
    *enough = most > 0;
    return 0;
}
