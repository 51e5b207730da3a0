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
    const struct set_files *sets;
    double t;          /* the threshold, so much less that no rounding loses a pair */
    uint16_t *count;   /* of the shingles of each hash */
    int count_shift;   /* to the counter: the first bits */
    uint64_t step, asked; /* every so manieth document is counted */
    struct list *list; /* by open addressing */
    size_t lists, slots;
    int slot_shift;
    size_t postings;   /* bytes of lists of many */
    size_t memory;
    size_t docs;       /* greater than all that were put in */
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

int prefix_index_new(struct prefix_index **out, const struct set_ref *set, const struct set_files *sets, double threshold,
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
    return set_files_read(p->sets, p->set[doc], *to, e);
}

uint16_t *prefix_index_counts(struct prefix_index *p, size_t *n)
{
    *n = (size_t)1 << (64 - p->count_shift);
    return p->count;
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

bool prefix_alone(const struct prefix_index *p, uint64_t key)
{
    return p->step == 1 && key >> 48 <= 1;
}

uint32_t prefix_room(const struct prefix_index *p, uint32_t size, size_t i)
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

int prefix_index_put_key(struct prefix_index *p, uint32_t tag, uint32_t doc, uint32_t room, struct err *e)
{
    struct list *l;

    if (4 * p->lists >= 3 * p->slots)
        TRY(grow(p, e));
    l = list_of(p, tag);
    p->lists += l->n == 0;
    l->tag = tag;
    p->docs = doc < p->docs ? p->docs : (size_t)doc + 1;
    return put(p, l, (struct posting){doc, room}, e);
}

int prefix_index_put(struct prefix_index *p, uint32_t doc, const struct prefix *x, struct err *e)
{
    for (size_t i = 0; i < x->n; i++)
        if (!prefix_alone(p, x->key[i]))
            TRY(prefix_index_put_key(p, (uint32_t)x->key[i], doc, prefix_room(p, x->size, i), e));
    return 0;
}

/* The table doubles at once, and is there twice for a moment. */
bool prefix_index_full(const struct prefix_index *p)
{
    size_t table = p->slots * sizeof *p->list;

    return (16 * p->lists >= 11 * p->slots ? 3 * table : table) + p->postings + p->spare_cap * sizeof *p->spare > p->memory;
}

/* ---- finding ---- */

int prefix_found_begin(const struct prefix_index *p, struct prefix_found *f, struct err *e)
{
    if (p->docs > f->docs) {
        size_t more = p->docs + p->docs / 2;
        uint32_t *seen = realloc(f->seen, more * sizeof *seen);

        if (!seen)
            return err_set(e, ERR_NOMEM, "out of memory for %zu documents", more);
        memset(seen + f->docs, 0, (more - f->docs) * sizeof *seen);
        f->seen = seen;
        f->docs = more;
    }
    f->n = 0;
    if (++f->asked == 0) { /* after 2^32 */
        memset(f->seen, 0, f->docs * sizeof *f->seen);
        f->asked = 1;
    }
    return 0;
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

int prefix_index_find_key(const struct prefix_index *p, uint32_t tag, uint32_t size, uint64_t *most, struct prefix_found *f,
                          struct err *e)
{
    const struct list *l = p->lists ? list_of(p, tag) : NULL;
    const struct posting *at, *run_end;

    if (!l || !l->n)
        return 0;
    at = l->n == 1 ? &l->one : l->many;
    for (uint32_t left = l->n, run; left && *most; left -= run, at = run_end) {
        run = run_length(left);
        run_end = at + run;
        for (; at < run_end && *most; at++) {
            --*most;
            if (at->room < size && run >= TAIL)
                break;
            if (at->room >= size && f->seen[at->doc] != f->asked)
                TRY(found(f, at->doc, e));
        }
    }
    return 0;
}

/* A document that is too large for a place is too large for all that follow: what is seen once need not be seen again. */
int prefix_index_find(const struct prefix_index *p, const struct prefix *x, uint64_t most, struct prefix_found *f,
                      bool *enough, struct err *e)
{
    TRY(prefix_found_begin(p, f, e));
    for (size_t i = 0; i < x->n && most; i++) {
        uint32_t room = prefix_room(p, x->size, i);
        size_t n = f->n;

        if (prefix_alone(p, x->key[i]))
            continue;
        TRY(prefix_index_find_key(p, (uint32_t)x->key[i], x->size, &most, f, e));
        for (size_t k = n; k < f->n; k++)
            if (p->set[f->doc[k]].size <= room)
                f->doc[n++] = f->doc[k];
        f->n = n;
    }
    *enough = most > 0;
    return 0;
}
