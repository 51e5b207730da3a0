#include "tokenize/vocab.h"

#include "base/hash.h"

struct vocab_entry {
    uint32_t at;
    uint32_t n : 30, there : 2; /* bytes; enum */
};

enum { HOLE, MODEL, ADDED, LONGEST = (1 << 30) - 1 };

/* Most of a hash stands beside the number, so that texts are compared where they are the same. */
struct vocab_slot {
    uint32_t id, tag; /* id + 1; 0: free */
};

static struct vocab_entry *entry(const struct vocab *v, uint32_t id)
{
    return (struct vocab_entry *)(void *)v->entries.p + id;
}

struct span vocab_get(const struct vocab *v, uint32_t id)
{
    struct span s = {NULL, 0};

    if (id < v->n && entry(v, id)->there) {
        s.p = v->bytes.p + entry(v, id)->at;
        s.n = entry(v, id)->n;
    }
    return s;
}

/* The slot that holds s, which has this hash, or the free one where it would go. */
static struct vocab_slot *find_slot(const struct vocab *v, struct span s, uint64_t hash)
{
    uint32_t tag = (uint32_t)(hash >> 32), i = tag & v->mask;

    while (v->slots[i].id && (v->slots[i].tag != tag || !span_eq(vocab_get(v, v->slots[i].id - 1), s)))
        i = (i + 1) & v->mask;
    return &v->slots[i];
}

uint64_t vocab_ask(const struct vocab *v, struct span s)
{
    uint64_t hash = hash_xxh3_64(s);

    __builtin_prefetch(v->slots + ((uint32_t)(hash >> 32) & v->mask), 1);
    return hash;
}

void vocab_ask_more(const struct vocab *v, uint64_t asked)
{
    const struct vocab_slot *slot = v->slots + ((uint32_t)(asked >> 32) & v->mask);

    if (slot->id)
        __builtin_prefetch(entry(v, slot->id - 1));
}

bool vocab_may_have(const struct vocab *v, uint64_t asked)
{
    uint32_t tag = (uint32_t)(asked >> 32), i = tag & v->mask;

    while (v->slots[i].id && v->slots[i].tag != tag)
        i = (i + 1) & v->mask;
    return v->slots[i].id != 0;
}

int64_t vocab_find_asked(const struct vocab *v, struct span s, uint64_t hash)
{
    return v->slots ? (int64_t)find_slot(v, s, hash)->id - 1 : VOCAB_NONE;
}

int64_t vocab_find(const struct vocab *v, struct span s)
{
    return vocab_find_asked(v, s, hash_xxh3_64(s));
}

bool vocab_is_joined(const struct vocab *v, uint32_t id, struct span left, struct span right)
{
    struct span s = vocab_get(v, id);

    return s.n == left.n + right.n && s.n && memcmp(s.p, left.p, left.n) == 0 && memcmp(s.p + left.n, right.p, right.n) == 0;
}

int64_t vocab_find_likely(const struct vocab *v, struct span s, uint32_t likely)
{
    struct span x = vocab_get(v, likely);

    return x.p && !v->twins && span_eq(x, s) ? (int64_t)likely : vocab_find(v, s);
}

static int grow_table(struct vocab *v, uint32_t size, struct err *e)
{
    struct vocab_slot *old = v->slots;
    struct pages pages, old_pages = v->pages;
    uint32_t old_size = old ? v->mask + 1 : 0;

    v->slots = pages_new(&pages, size * sizeof *v->slots);
    if (!v->slots) {
        v->slots = old;
        return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
    }
    v->pages = pages;
    v->mask = size - 1;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i].id) {
            uint32_t k = old[i].tag & v->mask;
            while (v->slots[k].id)
                k = (k + 1) & v->mask;
            v->slots[k] = old[i];
        }
    pages_free(&old_pages);
    return 0;
}

int vocab_reserve(struct vocab *v, uint32_t n, struct err *e)
{
    uint32_t size = v->slots ? v->mask + 1 : 1024;

    if (n > VOCAB_MAX_ID)
        return err_set(e, ERR_FORMAT, "a vocabulary of %u tokens: at most %d", n, VOCAB_MAX_ID);
    if ((size_t)n * sizeof(struct vocab_entry) > v->entries.cap &&
        buf_reserve_large(&v->entries, (size_t)n * sizeof(struct vocab_entry) - v->entries.n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
    while (size < n + n / 2)
        size *= 2;
    return v->slots && size == v->mask + 1 ? 0 : grow_table(v, size, e);
}

int vocab_put(struct vocab *v, uint32_t id, struct span s, struct err *e)
{
    struct vocab_entry *x;

    if (id > VOCAB_MAX_ID)
        return err_set(e, ERR_FORMAT, "token id %u is above %d", id, VOCAB_MAX_ID);
    if (s.n > LONGEST || v->bytes.n > UINT32_MAX - s.n)
        return err_set(e, ERR_FORMAT, "token %u is longer than 1 GiB, or all before have 4 GiB", id);
    if (id >= v->n) {
        size_t more = (size_t)(id + 1 - v->n) * sizeof *x;
        if (buf_reserve(&v->entries, more) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
        memset(v->entries.p + v->entries.n, 0, more);
        v->entries.n += more;
        v->n = id + 1;
    }
    x = entry(v, id);
    if (x->there)
        return err_set(e, ERR_FORMAT, "token id %u is given twice", id);
    if (buf_put_span(&v->bytes, s) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
    *x = (struct vocab_entry){(uint32_t)(v->bytes.n - s.n), (uint32_t)s.n & LONGEST, MODEL};
    v->there++;
    return 0;
}

static void index_one(struct vocab *v, uint32_t id, struct span s, uint64_t hash)
{
    struct vocab_slot *slot = find_slot(v, s, hash);

    v->twins |= slot->id != 0;
    if (!slot->id) {
        *slot = (struct vocab_slot){id + 1, (uint32_t)(hash >> 32)};
        v->used++;
    }
}

int vocab_index(struct vocab *v, struct err *e)
{
    enum { AHEAD = 16 };
    uint64_t hash[AHEAD];

    TRY(vocab_reserve(v, v->there, e));
    for (uint32_t id = 0; id < v->n + AHEAD; id++) {
        if (id >= AHEAD && entry(v, id - AHEAD)->there)
            index_one(v, id - AHEAD, vocab_get(v, id - AHEAD), hash[id % AHEAD]);
        if (id < v->n && entry(v, id)->there)
            hash[id % AHEAD] = vocab_ask(v, vocab_get(v, id));
    }
    return 0;
}

void vocab_find_last(struct vocab *v)
{
    for (uint32_t id = 0; id < v->n && v->twins; id++)
        if (entry(v, id)->there)
            find_slot(v, vocab_get(v, id), vocab_ask(v, vocab_get(v, id)))->id = id + 1;
}

int vocab_add(struct vocab *v, uint32_t id, struct span s, struct err *e)
{
    uint64_t hash = hash_xxh3_64(s);

    TRY(vocab_reserve(v, v->used + 1, e));
    TRY(vocab_put(v, id, s, e));
    index_one(v, id, vocab_get(v, id), hash);
    return 0;
}

int64_t vocab_find_own(const struct vocab *v, struct span s)
{
    int64_t id = vocab_find(v, s);

    return id >= 0 && vocab_is_added(v, (uint32_t)id) ? VOCAB_NONE : id;
}

void vocab_mark_added(struct vocab *v, uint32_t id)
{
    entry(v, id)->there = ADDED;
}

bool vocab_is_added(const struct vocab *v, uint32_t id)
{
    return id < v->n && entry(v, id)->there == ADDED;
}

void vocab_free(struct vocab *v)
{
    buf_free(&v->bytes);
    buf_free(&v->entries);
    pages_free(&v->pages);
    memset(v, 0, sizeof *v);
}
