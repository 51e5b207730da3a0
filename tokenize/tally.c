#include "tokenize/tally.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "tokenize/word_hash.h"

enum { KEY = 15, FIRST = 1 << 15, LONG = 0x80, AHEAD = 16 };

/* ---- keys ---- */

struct key {
    uint64_t lo, hi, hash;
};

static struct key long_key(struct span word)
{
    uint64_t h = hash_xxh3_64(word);

    return (struct key){0, (uint64_t)LONG << 56 | (h >> 40) << 32 | (uint32_t)word.n, h};
}

static inline struct key key_of(const uint8_t *p, size_t n)
{
    struct word_key k;

    if (n > KEY)
        return long_key((struct span){(const char *)p, n});
    k = word_key_of(p, n);
    return (struct key){k.lo, k.hi, hash_mix64(k.lo ^ k.hi * 0x9E3779B97F4A7C15ULL)};
}

static inline bool is_long(uint64_t hi)
{
    return hi >> 56 == LONG;
}

struct span tally_word(const struct tally *t, const struct tally_entry *x)
{
    if (is_long(x->hi))
        return (struct span){t->store.p + x->lo, (uint32_t)x->hi};
    return (struct span){(const char *)x, (size_t)(x->hi >> 56)};
}

static uint64_t hash_of(const struct tally *t, const struct tally_entry *x)
{
    struct span s = tally_word(t, x);

    return key_of((const uint8_t *)s.p, s.n).hash;
}

/* ---- the table ---- */

static struct tally_entry *map_entries(uint64_t n)
{
    void *p = mmap(NULL, n * sizeof(struct tally_entry), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    madvise(p, n * sizeof(struct tally_entry), MADV_HUGEPAGE);
    return p;
}

static uint64_t room_of(const struct tally *t)
{
    return t->entries ? t->mask + 1 : 0;
}

static int grow(struct tally *t)
{
    uint64_t size = t->entries ? room_of(t) * 2 : FIRST;
    struct tally_entry *fresh = map_entries(size);

    if (!fresh)
        return ERR_NOMEM;
    for (uint64_t i = 0; i < room_of(t); i++) {
        uint64_t j;
        if (!t->entries[i].hi)
            continue;
        for (j = hash_of(t, &t->entries[i]) & (size - 1); fresh[j].hi;)
            j = (j + 1) & (size - 1);
        fresh[j] = t->entries[i];
    }
    if (t->entries)
        munmap(t->entries, room_of(t) * sizeof *t->entries);
    t->entries = fresh;
    t->mask = size - 1;
    return 0;
}

static int add_key(struct tally *t, const struct key *k, const uint8_t *p, uint64_t times, uint64_t place)
{
    uint64_t i = k->hash & t->mask;
    struct span word = {(const char *)p, (uint32_t)k->hi};

    for (; t->entries[i].hi; i = (i + 1) & t->mask) {
        struct tally_entry *x = &t->entries[i];
        if (x->hi != k->hi || (is_long(k->hi) ? !span_eq(tally_word(t, x), word) : x->lo != k->lo))
            continue;
        x->count += times;
        x->place = place < x->place ? place : x->place;
        return 0;
    }
    t->entries[i] = (struct tally_entry){k->lo, k->hi, times, place};
    if (is_long(k->hi)) {
        t->entries[i].lo = t->store.n;
        if (buf_put_span(&t->store, word) < 0) {
            t->entries[i].hi = 0;
            return ERR_NOMEM;
        }
    }
    t->n++;
    return (t->n + 1) * 2 > room_of(t) ? grow(t) : 0;
}

int tally_add(struct tally *t, struct span word, uint64_t times, uint64_t place)
{
    struct key k = key_of((const uint8_t *)word.p, word.n);

    if (!t->entries)
        TRY(grow(t));
    return add_key(t, &k, (const uint8_t *)word.p, times, place);
}

int tally_text(struct tally *t, const uint8_t *text, uint32_t begin, const uint32_t *ends, size_t n, uint64_t place)
{
    struct key keys[AHEAD];
    uint32_t starts[AHEAD];

    if (!t->entries)
        TRY(grow(t));
    for (size_t i = 0; i < n + AHEAD - 1; i++) {
        if (i < n) {
            struct key *k = &keys[i % AHEAD];
            *k = key_of(text + begin, ends[i] - begin);
            __builtin_prefetch(&t->entries[k->hash & t->mask], 1);
            starts[i % AHEAD] = begin;
            begin = ends[i];
        }
        if (i >= AHEAD - 1) {
            size_t j = i - (AHEAD - 1);
            TRY(add_key(t, &keys[j % AHEAD], text + starts[j % AHEAD], 1, place + j));
        }
    }
    return 0;
}

const struct tally_entry *tally_next(const struct tally *t, const struct tally_entry *x)
{
    const struct tally_entry *end;

    if (!t->entries)
        return NULL;
    end = t->entries + room_of(t);
    for (x = x ? x + 1 : t->entries; x < end; x++)
        if (x->hi)
            return x;
    return NULL;
}

uint64_t tally_size(const struct tally *t)
{
    return room_of(t) * sizeof *t->entries + t->store.cap;
}

uint64_t tally_size_with(const struct tally *t, uint64_t n, uint64_t bytes)
{
    uint64_t room = room_of(t) ? room_of(t) : FIRST, size = room * sizeof *t->entries;

    for (; (t->n + n + 1) * 2 > room; room *= 2)
        size = (room + room * 2) * sizeof *t->entries; /* both are there while words move */
    return size + (t->store.n + bytes < t->store.cap ? t->store.cap : (t->store.n + bytes) * 2);
}

void tally_clear(struct tally *t)
{
    if (t->entries)
        memset(t->entries, 0, room_of(t) * sizeof *t->entries);
    t->n = 0;
    buf_clear(&t->store);
}

void tally_free(struct tally *t)
{
    if (t->entries)
        munmap(t->entries, room_of(t) * sizeof *t->entries);
    buf_free(&t->store);
    memset(t, 0, sizeof *t);
}

/* ---- on disk ---- */

struct tally_run {
    uint64_t at[TALLY_PARTS + 1];
};

struct record { /* a word's bytes follow */
    uint64_t count, place;
    uint32_t length;
} __attribute__((packed));

enum { PART_BUFFER = 1 << 13 };

int tally_disk_open(struct tally_disk *d, const char *dir, struct err *e)
{
    *d = (struct tally_disk){0};
    pthread_mutex_init(&d->lock, NULL);
    return spill_open(&d->file, dir, 1, e); /* written by offset: no buffer */
}

bool tally_disk_empty(const struct tally_disk *d)
{
    return d->runs.n == 0;
}

void tally_disk_close(struct tally_disk *d)
{
    spill_close(&d->file);
    buf_free(&d->runs);
    pthread_mutex_destroy(&d->lock);
}

static unsigned part_of(const struct tally *t, const struct tally_entry *x)
{
    return hash_of(t, x) >> 56; /* tables use the low bits */
}

/* Gives the run its room in the file. */
static int take_room(struct tally_disk *d, struct tally_run *run)
{
    uint64_t total = 0;
    int rc;

    pthread_mutex_lock(&d->lock);
    for (int i = 0; i <= TALLY_PARTS; i++) {
        uint64_t n = run->at[i];
        run->at[i] = d->file.size + total;
        total += n;
    }
    d->file.size += total;
    rc = buf_put(&d->runs, run, sizeof *run);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

struct part_buffer {
    uint64_t at;
    size_t n;
    char bytes[PART_BUFFER];
};

static int put_bytes(const struct tally_disk *d, struct part_buffer *b, const void *p, size_t n, struct err *e)
{
    if (n > sizeof b->bytes - b->n) {
        TRY(spill_write(&d->file, b->at, b->bytes, b->n, e));
        b->at += b->n;
        b->n = 0;
    }
    if (n > sizeof b->bytes) {
        TRY(spill_write(&d->file, b->at, p, n, e));
        b->at += n;
        return 0;
    }
    memcpy(b->bytes + b->n, p, n);
    b->n += n;
    return 0;
}

static int write_run(const struct tally_disk *d, const struct tally *t, struct part_buffer *b, struct err *e)
{
    for (const struct tally_entry *x = NULL; (x = tally_next(t, x));) {
        struct span s = tally_word(t, x);
        struct record r = {x->count, x->place, (uint32_t)s.n};
        struct part_buffer *p = &b[part_of(t, x)];
        TRY(put_bytes(d, p, &r, sizeof r, e));
        TRY(put_bytes(d, p, s.p, s.n, e));
    }
    for (int i = 0; i < TALLY_PARTS; i++)
        TRY(spill_write(&d->file, b[i].at, b[i].bytes, b[i].n, e));
    return 0;
}

int tally_disk_put(struct tally_disk *d, struct tally *t, struct err *e)
{
    struct tally_run run = {0};
    struct part_buffer *b = calloc(TALLY_PARTS, sizeof *b);
    int rc;

    for (const struct tally_entry *x = NULL; (x = tally_next(t, x));)
        run.at[part_of(t, x)] += sizeof(struct record) + tally_word(t, x).n;
    if (!b || take_room(d, &run) < 0) {
        free(b);
        return err_set(e, ERR_NOMEM, "out of memory for words");
    }
    for (int i = 0; i < TALLY_PARTS; i++)
        b[i].at = run.at[i];
    rc = write_run(d, t, b, e);
    free(b);
    tally_free(t); /* a table that stays large would be full again at once */
    return rc;
}

int tally_disk_get(const struct tally_disk *d, int part, struct tally *into, struct err *e)
{
    const struct tally_run *run = (const struct tally_run *)(const void *)d->runs.p;
    struct buf word = {0};
    int rc = 0;

    for (size_t i = 0; i < d->runs.n / sizeof *run && rc == 0; i++) {
        struct spill_reader r;
        uint64_t left = run[i].at[part + 1] - run[i].at[part];
        rc = spill_reader_open(&r, &d->file, run[i].at[part], run[i].at[part + 1], 1 << 16, e);
        while (left && rc == 0) {
            struct record x;
            rc = spill_next(&r, &x, sizeof x, e);
            buf_clear(&word);
            if (rc == 0 && buf_reserve(&word, x.length) < 0)
                rc = err_set(e, ERR_NOMEM, "out of memory for words");
            if (rc == 0)
                rc = spill_next(&r, word.p, x.length, e);
            if (rc == 0 && tally_add(into, (struct span){word.p, x.length}, x.count, x.place) < 0)
                rc = err_set(e, ERR_NOMEM, "out of memory for words");
            left -= rc == 0 ? sizeof x + x.length : 0;
        }
        spill_reader_close(&r);
    }
    buf_free(&word);
    return rc;
}
