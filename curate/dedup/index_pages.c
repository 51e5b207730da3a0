#include "curate/dedup/index_pages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/little.h"

/* A page begins with its checksum (8 bytes), how many keys it has (2), in a leaf of how many bytes a difference of keys is
 * (1), and zeros; in a leaf the first key follows. */
enum { HEAD = 16, LEAF_HEAD = HEAD + 8, FANOUT = (INDEX_PAGE - HEAD) / 8, LEVELS = 16, READ = 1 << 16 };

/* Bytes that a number takes. */
static int width(uint64_t x)
{
    int n = 0;

    for (; x; x >>= 8)
        n++;
    return n;
}

/* Of values that are less than this; at least one, so that a leaf has a most. */
static int value_width(uint64_t values)
{
    int n = values ? width(values - 1) : 0;

    return n ? n : 1;
}

static uint64_t level_above(uint64_t pages)
{
    return (pages + FANOUT - 1) / FANOUT;
}

uint64_t index_pages_count(uint64_t leaves)
{
    uint64_t all = leaves;

    for (uint64_t n = leaves; n > 1;)
        all += n = level_above(n);
    return all;
}

/* ---- writing ---- */

int index_pages_begin(struct index_pages_out *p, struct file_out *out, uint64_t values, const char *dir, struct err *e)
{
    *p = (struct index_pages_out){.out = out, .dir = dir, .first = {.fd = -1}, .value_bytes = value_width(values)};
    p->entry = malloc(INDEX_PAGE * sizeof *p->entry);
    if (!p->entry)
        return err_set(e, ERR_NOMEM, "out of memory for an index");
    return spill_open(&p->first, dir, READ, e);
}

void index_pages_free(struct index_pages_out *p)
{
    if (p->entry)
        spill_close(&p->first);
    free(p->entry);
    p->entry = NULL;
}

static int put_page(struct file_out *out, unsigned char *page, struct err *e)
{
    little_put(page, hash_xxh3_64((struct span){(char *)page + 8, INDEX_PAGE - 8}), 8);
    return file_write(out, page, INDEX_PAGE, e);
}

static int put_leaf(struct index_pages_out *p, struct err *e)
{
    unsigned char page[INDEX_PAGE] = {0}, *to = page + LEAF_HEAD;
    uint64_t first = p->entry[0].key;
    int keys = width(p->entry[p->n - 1].key - first);

    little_put(page + 8, p->n, 2);
    little_put(page + 10, (uint64_t)keys, 1);
    little_put(page + HEAD, first, 8);
    for (size_t i = 0; i < p->n; i++, to += keys + p->value_bytes) {
        little_put(to, p->entry[i].key - first, keys);
        little_put(to + keys, p->entry[i].value, p->value_bytes);
    }
    p->n = 0;
    p->leaves++;
    TRY(spill_put(&p->first, &first, sizeof first, e));
    return put_page(p->out, page, e);
}

int index_pages_put(struct index_pages_out *p, struct index_entry x, struct err *e)
{
    if (p->n && (p->n + 1) * (size_t)(width(x.key - p->entry[0].key) + p->value_bytes) > INDEX_PAGE - LEAF_HEAD)
        TRY(put_leaf(p, e));
    p->entry[p->n++] = x;
    p->entries++;
    return 0;
}

/* The pages above those of which the first keys are in `below`; their own go to `first`. */
static int put_level(struct index_pages_out *p, const struct spill *below, struct spill *first, struct err *e)
{
    uint64_t key[FANOUT];

    TRY(spill_open(first, p->dir, READ, e));
    for (uint64_t at = 0, n; at < below->size; at += n) {
        unsigned char page[INDEX_PAGE] = {0};

        n = below->size - at < sizeof key ? below->size - at : sizeof key;
        TRY(spill_read(below, at, key, (size_t)n, e));
        little_put(page + 8, n / sizeof *key, 2);
        for (size_t i = 0; i < n / sizeof *key; i++)
            little_put(page + HEAD + 8 * i, key[i], 8);
        TRY(put_page(p->out, page, e));
        TRY(spill_put(first, key, sizeof *key, e));
    }
    return 0;
}

int index_pages_end(struct index_pages_out *p, struct err *e)
{
    if (p->n)
        TRY(put_leaf(p, e));
    for (uint64_t pages = p->leaves; pages > 1; pages = level_above(pages)) {
        struct spill above = {.fd = -1};
        int rc = spill_flush(&p->first, e);

        if (rc == 0)
            rc = put_level(p, &p->first, &above, e);
        spill_close(&p->first);
        p->first = above;
        TRY(rc);
    }
    return 0;
}

/* ---- reading ---- */

int index_read_at(int fd, const char *name, uint64_t at, void *p, size_t n, struct err *e)
{
    ssize_t got = fd_read_at(fd, p, n, at);

    if (got < 0)
        return err_sys(e, ERR_IO, "cannot read '%s' at byte %" PRIu64, name, at);
    return (size_t)got == n ? 0 : err_set(e, ERR_FORMAT, "'%s' is cut short at byte %" PRIu64, name, at + (size_t)got);
}

/* A page in memory. */
struct held {
    uint64_t number; /* in its level; UINT64_MAX: none yet */
    size_t n;
    int key_bytes;   /* of a leaf */
    unsigned char page[INDEX_PAGE];
};

struct index_cursor {
    const struct index_tree *t;
    int levels, value_bytes;
    struct {
        uint64_t at, pages; /* its first page, its number of them */
        struct held held;
    } level[LEVELS]; /* leaves first */
    uint64_t read;
};

int index_cursor_new(struct index_cursor **out, const struct index_tree *t, struct err *e)
{
    struct index_cursor *c = calloc(1, sizeof *c);
    uint64_t at = 0;

    *out = c;
    if (!c)
        return err_set(e, ERR_NOMEM, "out of memory for an index");
    c->t = t;
    c->value_bytes = value_width(t->values);
    for (uint64_t pages = t->leaves; pages; pages = pages > 1 ? level_above(pages) : 0) {
        c->level[c->levels].at = at;
        c->level[c->levels].pages = pages;
        c->level[c->levels++].held.number = UINT64_MAX;
        at += pages;
    }
    return 0;
}

void index_cursor_free(struct index_cursor *c)
{
    free(c);
}

uint64_t index_cursor_bytes(const struct index_cursor *c)
{
    return c->read;
}

static int damaged(const struct index_cursor *c, int level, uint64_t number, const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT, "the index '%s' is damaged: the page at byte %" PRIu64 " %s; make it anew", c->t->name,
                   c->t->at + (c->level[level].at + number) * INDEX_PAGE, what);
}

/* How many keys a page of a level may have. */
static bool may_have(const struct index_cursor *c, int level, const struct held *h)
{
    uint64_t below;

    if (level == 0)
        return h->n > 0 && h->key_bytes <= 8 && h->n * (size_t)(h->key_bytes + c->value_bytes) <= INDEX_PAGE - LEAF_HEAD;
    below = c->level[level - 1].pages - h->number * FANOUT;
    return h->n == (below < FANOUT ? below : FANOUT);
}

/* A page of a level is in memory. */
static int hold(struct index_cursor *c, int level, uint64_t number, struct err *e)
{
    struct held *h = &c->level[level].held;

    if (h->number == number)
        return 0;
    h->number = UINT64_MAX;
    TRY(index_read_at(c->t->fd, c->t->name, c->t->at + (c->level[level].at + number) * INDEX_PAGE, h->page, INDEX_PAGE, e));
    c->read += INDEX_PAGE;
    if (hash_xxh3_64((struct span){(char *)h->page + 8, INDEX_PAGE - 8}) != little_get(h->page, 8))
        return damaged(c, level, number, "has another checksum", e);
    h->n = (size_t)little_get(h->page + 8, 2);
    h->key_bytes = h->page[10];
    h->number = number;
    if (!may_have(c, level, h)) {
        h->number = UINT64_MAX;
        return damaged(c, level, number, "has a wrong number of keys", e);
    }
    return 0;
}

static uint64_t first_key(const struct held *h)
{
    return little_get(h->page + HEAD, 8);
}

static struct index_entry entry_at(const struct index_cursor *c, size_t i)
{
    const struct held *h = &c->level[0].held;
    const unsigned char *p = h->page + LEAF_HEAD + i * (size_t)(h->key_bytes + c->value_bytes);

    return (struct index_entry){first_key(h) + little_get(p, h->key_bytes), little_get(p + h->key_bytes, c->value_bytes)};
}

/* The last page below that begins before the key, or the first one. */
static size_t child_of(const struct held *h, uint64_t key)
{
    size_t low = 0, high = h->n;

    while (high - low > 1) {
        size_t middle = (low + high) / 2;

        if (little_get(h->page + HEAD + 8 * middle, 8) < key)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The first entry of the leaf that is not less than the key. */
static size_t place_of(const struct index_cursor *c, uint64_t key)
{
    size_t low = 0, high = c->level[0].held.n;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (entry_at(c, middle).key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int give(struct index_cursor *c, size_t i, index_taker *take, void *to, struct err *e)
{
    struct index_entry x = entry_at(c, i);

    if (x.value >= c->t->values)
        return damaged(c, 0, c->level[0].held.number, "names a document that there is not", e);
    return take(to, x, e);
}

int index_cursor_find(struct index_cursor *c, uint64_t key, index_taker *take, void *to, struct err *e)
{
    uint64_t number = 0;

    if (!c->levels)
        return 0;
    for (int level = c->levels - 1; level > 0; level--) {
        TRY(hold(c, level, number, e));
        number = number * FANOUT + child_of(&c->level[level].held, key);
    }
    for (bool first = true; number < c->level[0].pages; number++, first = false) {
        size_t i;

        TRY(hold(c, 0, number, e));
        if (!first && first_key(&c->level[0].held) < key)
            return damaged(c, 0, number, "is out of order", e);
        for (i = place_of(c, key); i < c->level[0].held.n && entry_at(c, i).key == key; i++)
            TRY(give(c, i, take, to, e));
        if (i < c->level[0].held.n)
            break;
    }
    return 0;
}

int index_cursor_all(struct index_cursor *c, index_taker *take, void *to, struct err *e)
{
    uint64_t entries = 0, last = 0;

    for (uint64_t number = 0; c->levels && number < c->level[0].pages; number++) {
        TRY(hold(c, 0, number, e));
        if (first_key(&c->level[0].held) < last)
            return damaged(c, 0, number, "is out of order", e);
        for (size_t i = 0; i < c->level[0].held.n; i++)
            TRY(give(c, i, take, to, e));
        last = entry_at(c, c->level[0].held.n - 1).key;
        entries += c->level[0].held.n;
    }
    if (entries != c->t->entries)
        return err_set(e, ERR_FORMAT, "the index '%s' is damaged: it has %" PRIu64 " keys, not %" PRIu64 "; make it anew",
                       c->t->name, entries, c->t->entries);
    return 0;
}
