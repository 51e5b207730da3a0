#include "curate/dedup/dedup_sets.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Elements that the table holds, unless that makes more parts than these; and that are read at a time. */
enum { PART = 1 << 19, PARTS_MOST = 16, READ = 1 << 17 };
/* Hashes that are packed before they are put, and unpacked in one go. */
enum { PACK = 1 << 10, LANES = 16 };

/* The elements of one set, or of a part of it.  0 marks free slots, and is remembered apart. */
struct table {
    uint64_t *slot;
    size_t cap, mask;
    int shift; /* to the slot: the first bits of a product */
    bool zero;
    size_t parts, part; /* by the last bits; a power of two */
};

struct dedup_compare {
    const struct set_files *sets;
    struct table a;
    uint64_t at; /* where the set in the table begins; UINT64_MAX: there is none, or a part of one */
    uint64_t *hash; /* what was read last */
    size_t hash_cap;
};

/* ---- on disk ---- */

void set_pack(void *to, size_t bytes, const uint64_t *hash, size_t n)
{
    char *p = to;

    if (bytes == sizeof *hash) {
        memcpy(to, hash, n * sizeof *hash);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t h = (uint32_t)hash[i];
        memcpy(p + i * sizeof h, &h, sizeof h);
    }
}

/* LANES at a time, all of them read before any is written: what is in the same memory is never behind. */
void set_unpack(uint64_t *to, size_t bytes, const void *from, size_t n)
{
    const char *p = from;
    uint32_t h[LANES];
    size_t i = 0;

    if (bytes == sizeof *to) {
        memmove(to, from, n * sizeof *to);
        return;
    }
    for (; n - i >= LANES; i += LANES) {
        memcpy(h, p + i * sizeof *h, sizeof h);
        for (size_t k = 0; k < LANES; k++)
            to[i + k] = h[k];
    }
    for (; i < n; i++) {
        memcpy(h, p + i * sizeof *h, sizeof *h);
        to[i] = *h;
    }
}

int set_put(struct spill *to, size_t bytes, const uint64_t *hash, size_t n, struct err *e)
{
    uint32_t packed[PACK];

    if (bytes == sizeof *hash)
        return spill_put(to, hash, n * sizeof *hash, e);
    for (size_t k; n; hash += k, n -= k) {
        k = n < PACK ? n : PACK;
        set_pack(packed, bytes, hash, k);
        TRY(spill_put(to, packed, k * bytes, e));
    }
    return 0;
}

int set_read(const struct spill *from, uint64_t offset, size_t bytes, uint64_t *to, size_t n, struct err *e)
{
    char *packed = (char *)(to + n) - n * bytes;

    if (!n)
        return 0;
    TRY(spill_read(from, offset, packed, n * bytes, e));
    set_unpack(to, bytes, packed, n);
    return 0;
}

int set_files_read(const struct set_files *f, struct set_ref set, uint64_t *hash, struct err *e)
{
    uint64_t place = set.at & ((UINT64_C(1) << SET_FILE_SHIFT) - 1);

    return set.size ? set_read(f->file[set.at >> SET_FILE_SHIFT], place * f->bytes, f->bytes, hash, set.size, e) : 0;
}

/* ---- two sets ---- */

int dedup_compare_new(struct dedup_compare **out, const struct set_files *sets, struct err *e)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    (*out)->sets = sets;
    return 0;
}

void dedup_compare_free(struct dedup_compare *c)
{
    if (!c)
        return;
    free(c->a.slot);
    free(c->hash);
    free(c);
}

static size_t slot_of(const struct table *t, uint64_t h)
{
    return h * 0x9E3779B97F4A7C15ull >> t->shift;
}

/* An empty table for n elements. */
static int begin(struct table *t, size_t n, struct err *e)
{
    size_t cap = 64;

    for (t->shift = 64 - 6; cap < 2 * n; cap *= 2)
        t->shift--;
    if (mem_room(&t->slot, &t->cap, cap, sizeof *t->slot) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the elements of a set");
    memset(t->slot, 0, cap * sizeof *t->slot);
    t->mask = cap - 1;
    t->zero = false;
    return 0;
}

static bool is_of_part(const struct table *t, uint64_t h)
{
    return (h & (t->parts - 1)) == t->part;
}

/* Enters those of n elements that are of the table's part. */
static uint64_t enter(struct table *t, const uint64_t *hash, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = slot_of(t, hash[i]);
        if (!is_of_part(t, hash[i]))
            continue;
        if (hash[i] == 0) {
            t->zero = true;
            continue;
        }
        while (t->slot[at])
            at = (at + 1) & t->mask;
        t->slot[at] = hash[i];
    }
    return 0;
}

/* How many of n elements are of the table's part. */
static uint64_t of_part(struct table *t, const uint64_t *hash, size_t n)
{
    uint64_t found = 0;

    for (size_t i = 0; i < n; i++)
        found += is_of_part(t, hash[i]);
    return found;
}

/* How many of n elements the table has. */
static uint64_t common(struct table *t, const uint64_t *hash, size_t n)
{
    uint64_t both = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t h = hash[i];
        size_t at = slot_of(t, h);
        if (!is_of_part(t, h))
            continue;
        while (t->slot[at] != h && t->slot[at])
            at = (at + 1) & t->mask;
        both += h ? t->slot[at] == h : t->zero;
    }
    return both;
}

/* Reads through a set; adds to *sum what `take` says of its pieces. */
static int go_through(struct dedup_compare *c, struct set_ref set,
                      uint64_t (*take)(struct table *t, const uint64_t *hash, size_t n), uint64_t *sum, struct err *e)
{
    size_t most = set.size < READ ? set.size : READ;

    if (mem_room(&c->hash, &c->hash_cap, most, sizeof *c->hash) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for %zu shingles", most);
    for (uint64_t done = 0; done < set.size; done += most) {
        most = set.size - done < READ ? (size_t)(set.size - done) : READ;
        TRY(set_files_read(c->sets, (struct set_ref){set.at + done, most}, c->hash, e));
        *sum += take(&c->a, c->hash, most);
    }
    return 0;
}

/* Makes the table of the elements of a set, or of a part of them. */
static int load(struct dedup_compare *c, struct set_ref set, struct err *e)
{
    uint64_t n = 0;

    c->at = UINT64_MAX;
    if (c->a.parts > 1)
        TRY(go_through(c, set, of_part, &n, e));
    else
        n = set.size;
    TRY(begin(&c->a, n, e));
    TRY(go_through(c, set, enter, &n, e));
    c->at = c->a.parts > 1 ? UINT64_MAX : set.at;
    return 0;
}

/* Both from disk, a in the table; as many parts of it, one after another, as have room there. */
static int compare_two(struct dedup_compare *c, struct set_ref a, struct set_ref b, double *similarity, struct err *e)
{
    struct table *t = &c->a;
    uint64_t both = 0;

    for (t->parts = 1; t->parts < PARTS_MOST && a.size / t->parts > PART; t->parts *= 2)
        ;
    for (t->part = 0; t->part < t->parts; t->part++) {
        if (c->at != a.at)
            TRY(load(c, a, e));
        TRY(go_through(c, b, common, &both, e));
    }
    *similarity = (double)both / (double)(a.size + b.size - both);
    return 0;
}

int dedup_compare_run(struct dedup_compare *c, const struct set_ref *set, double floor, struct set_pair *pair, size_t n,
                      struct err *e)
{
    c->at = UINT64_MAX; /* the files may have changed */
    for (size_t i = 0; i < n; i++) {
        struct set_ref a = set[pair[i].a], b = set[pair[i].b];
        uint64_t less = a.size < b.size ? a.size : b.size, more = a.size < b.size ? b.size : a.size;

        pair[i].similarity = 0;
        if (less && (double)less / (double)more >= floor)
            TRY(compare_two(c, a, b, &pair[i].similarity, e));
    }
    return 0;
}
