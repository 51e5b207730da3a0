/* Pieces whose passages may be repeats.  A part of them is read in order; each passage is looked up among those that were
 * met before, whose elements are kept in memory and compared.  Where what is to be kept has no room, a slice of the part is
 * looked through at a time: keys, and if need be hashes of passages, within bounds. */
#include "curate/dedup/dedup_repeats_match.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "curate/dedup/dedup_roll.h"

enum {
    READ = 1 << 18, BUFFER_LEAST = 1 << 12, BUFFER_MOST = 1 << 16, BITS_MOST = 8,
    PASSAGES = 1 << 16, /* of a piece: or as many as a passage has elements */
    AHEAD = 64,         /* passages whose slots are fetched at once */
    BATCH = 1 << 10,    /* marks that a thread puts at once */
    PART = 1 << 25,     /* bytes of a part's pieces and slots that are quick to look through, and no fewer */
    SAMPLES = 1 << 10,  /* passages from which the bounds of smaller slices are chosen */
    FULL = 1,           /* what a slice keeps has no room: it has to be a smaller one */
};
#define APART ((int64_t)24 << 20) /* of the memory, for everything else */
/* A slot is 0, or: in which unit of what is kept the piece begins; the number of the passage in it; some bits of its hash. */
enum { TAG_BITS = 12, NUMBER_BITS = 20, UNIT = 8 };

typedef unsigned __int128 wide; /* a key, and behind it the hash of a passage */

struct thread {
    struct repeats_match *m;
    struct roll roll;
    size_t length, width;
    unsigned char *memory; /* slots, and behind them what is kept */
    size_t bytes;
    uint64_t *slot;
    size_t slots, used; /* how many there are, and how many are taken */
    unsigned char *kept; /* pieces, each in whole units; with conf.all a bit a passage behind it: is there another like it? */
    size_t room, n;
    wide lo, hi; /* the slice: both are in it */
    struct { uint64_t at, n; } mark[BATCH]; /* the last one grows */
    size_t marks;
};

static size_t whole_units(size_t n)
{
    return (n + UNIT - 1) / UNIT * UNIT;
}

/* Elements of a piece. */
static size_t piece_bytes(const struct repeats_conf *c, uint64_t passages)
{
    return (size_t)(passages + c->length - 1) * (size_t)c->width;
}

static size_t kept_bytes(const struct repeats_conf *c, uint64_t passages)
{
    size_t bits = c->all ? whole_units((size_t)passages / 8 + 1) : 0;

    return whole_units(sizeof(struct repeats_piece) + piece_bytes(c, passages)) + bits;
}

static struct repeats_piece *piece_at(const struct thread *t, size_t at)
{
    return (struct repeats_piece *)(void *)(t->kept + at);
}

/* With conf.all: a bit a passage. */
static unsigned char *bits_of(const struct thread *t, struct repeats_piece *x)
{
    return (unsigned char *)x + whole_units(sizeof *x + piece_bytes(&t->m->c, x->passages));
}

/* ---- marks ---- */

static int put_marks(struct thread *t, struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&t->m->lock);
    for (size_t i = 0; i < t->marks && rc == 0; i++) {
        struct member pair = member_of_pair(t->mark[i].at, t->mark[i].n);
        rc = members_add(&t->m->marks, &pair, e);
    }
    pthread_mutex_unlock(&t->m->lock);
    t->marks = 0;
    return rc;
}

/* The passage at `at` is struck. */
static int strike(struct thread *t, uint64_t at, struct err *e)
{
    if (t->marks && t->mark[t->marks - 1].at + t->mark[t->marks - 1].n == at) {
        t->mark[t->marks - 1].n++;
        return 0;
    }
    if (t->marks == BATCH)
        TRY(put_marks(t, e));
    t->mark[t->marks].at = at;
    t->mark[t->marks++].n = 1;
    return 0;
}

/* ---- passages ---- */

/* One that is kept: its piece and its number there; piece NULL: none. */
struct passage {
    struct repeats_piece *piece;
    size_t number;
};

static const unsigned char *elements(const struct thread *t, struct passage x)
{
    return (const unsigned char *)(x.piece + 1) + x.number * t->width;
}

/* By the lower half of the hash: the upper half is much the same in a slice of one key. */
static uint64_t *first_slot(const struct thread *t, uint64_t hash)
{
    return t->slot + (size_t)((wide)(hash << 32 | hash >> 32) * t->slots >> 64);
}

static uint64_t tag_of(uint64_t hash)
{
    return hash >> 32 & ((1u << TAG_BITS) - 1);
}

/* Whether a passage of a piece with this key belongs to the slice. */
static bool in_slice(const struct thread *t, uint64_t key, uint64_t hash)
{
    wide place = (wide)key << 64 | hash;

    return place >= t->lo && place <= t->hi;
}

/* The first passage like p, or the free slot for it. */
static struct passage find(const struct thread *t, const unsigned char *p, uint64_t hash, uint64_t **free_slot)
{
    uint64_t tag = tag_of(hash), *s = first_slot(t, hash);

    for (; *s; s = s + 1 < t->slot + t->slots ? s + 1 : t->slot) {
        struct passage x;
        if ((*s & ((1u << TAG_BITS) - 1)) != tag)
            continue;
        x.piece = piece_at(t, (size_t)(*s >> (TAG_BITS + NUMBER_BITS)) * UNIT);
        x.number = (size_t)(*s >> TAG_BITS) & ((1u << NUMBER_BITS) - 1);
        if (memcmp(elements(t, x), p, t->length * t->width) == 0)
            return x;
    }
    *free_slot = s;
    return (struct passage){0};
}

/* A passage like x was met at `at`.  1: that one is struck; 0: it stays. */
static int meet(struct thread *t, struct passage x, uint64_t at, struct err *e)
{
    if (!t->m->c.all && x.piece->at + x.number + t->length > at)
        return 0; /* x does not end before it */
    if (t->m->c.all)
        bits_of(t, x.piece)[x.number / 8] |= (unsigned char)(1u << (x.number & 7));
    TRY(strike(t, at, e));
    return 1;
}

/* Passages [from, end) of the piece x, whose hashes are known.  `last` is the passage that the one before was like and struck
 * for: what stands behind the two is often alike too, and any earlier one that ends before it is reason enough to strike one. */
static int meet_some(struct thread *t, struct repeats_piece *x, size_t from, size_t end, const uint64_t *hash, bool whole,
                     struct passage *last, struct err *e)
{
    size_t back = (t->length - 1) * t->width;

    for (size_t i = from; i < end; i++) {
        const unsigned char *p = elements(t, (struct passage){x, i});
        uint64_t *slot = NULL;
        int struck;

        if (last->piece && ++last->number < last->piece->passages &&
            memcmp(elements(t, *last) + back, p + back, t->width) == 0) {
            TRY(struck = meet(t, *last, x->at + i, e));
            if (struck)
                continue;
        }
        last->piece = NULL;
        if (!whole && !in_slice(t, x->key, hash[i - from]))
            continue;
        *last = find(t, p, hash[i - from], &slot);
        if (last->piece) {
            TRY(struck = meet(t, *last, x->at + i, e));
            if (!struck)
                last->piece = NULL;
            continue;
        }
        if (t->used >= t->slots / 4 * 3)
            return FULL;
        t->used++;
        *slot = (uint64_t)(((unsigned char *)x - t->kept) / UNIT) << (TAG_BITS + NUMBER_BITS) | (uint64_t)i << TAG_BITS |
                tag_of(hash[i - from]);
    }
    return 0;
}

/* A piece of which all, or some passages, belong to the slice, and which is kept if it has a new one. */
static int meet_piece(struct thread *t, struct repeats_piece *x, bool whole, struct err *e)
{
    const unsigned char *p = elements(t, (struct passage){x, 0});
    size_t n = (size_t)x->passages, used = t->used;
    struct passage last = {0};
    uint64_t hash[AHEAD], h = roll_start(&t->roll, p, 0);
    int rc;

    for (size_t from = 0, end; from < n; from = end) {
        end = n - from < AHEAD ? n : from + AHEAD;
        for (size_t i = from; i < end; i++) {
            h = roll_in(&t->roll, h, p, i + t->length - 1);
            hash[i - from] = hash_mix64(h);
            h = roll_out(&t->roll, h, p, i);
            __builtin_prefetch(first_slot(t, hash[i - from]));
        }
        if ((rc = meet_some(t, x, from, end, hash, whole, &last, e)) != 0)
            return rc;
    }
    if (t->used > used)
        t->n += kept_bytes(&t->m->c, n);
    return 0;
}

/* The first and behind the last passage of a piece that belong to the slice; none: both are the same. */
static void bounds(const struct thread *t, const struct repeats_piece *x, const void *p, size_t *from, size_t *end)
{
    uint64_t h = roll_start(&t->roll, p, 0);

    *from = *end = 0;
    for (size_t i = 0; i < x->passages; i++) {
        h = roll_in(&t->roll, h, p, i + t->length - 1);
        if (in_slice(t, x->key, hash_mix64(h))) {
            *from = *from == *end ? i : *from;
            *end = i + 1;
        }
        h = roll_out(&t->roll, h, p, i);
    }
}

/* ---- a part ---- */

/* The next piece of the part, read at r->buf + r->pos but for what x has of it. */
static int take_piece(struct thread *t, struct spill_reader *r, struct repeats_piece *x, struct err *e)
{
    const unsigned char *p = (const unsigned char *)r->buf + r->pos;
    bool whole = in_slice(t, x->key, 0) && in_slice(t, x->key, UINT64_MAX);
    size_t from = 0, end = (size_t)x->passages;
    struct repeats_piece *to;

    if (!whole) { /* (memory is aligned for elements of 4 bytes) */
        if (sizeof *x + piece_bytes(&t->m->c, end) > t->room - t->n)
            return FULL;
        memcpy(t->kept + t->n, p, piece_bytes(&t->m->c, end));
        bounds(t, x, t->kept + t->n, &from, &end);
        if (from == end)
            return 0;
    }
    if (kept_bytes(&t->m->c, end - from) > t->room - t->n)
        return FULL;
    to = piece_at(t, t->n);
    *to = (struct repeats_piece){x->at + from, x->key, end - from};
    memcpy(to + 1, p + from * t->width, piece_bytes(&t->m->c, end - from));
    if (t->m->c.all)
        memset(bits_of(t, to), 0, whole_units((end - from) / 8 + 1));
    return meet_piece(t, to, whole, e);
}

/* With conf.all: the first ones too are struck, where there are others. */
static int strike_first_ones(struct thread *t, struct err *e)
{
    for (size_t at = UNIT; at < t->n;) {
        struct repeats_piece *x = piece_at(t, at);
        const unsigned char *bits = bits_of(t, x);
        for (size_t i = 0; i < x->passages; i++)
            if (bits[i / 8] >> (i & 7) & 1)
                TRY(strike(t, x->at + i, e));
        at += kept_bytes(&t->m->c, x->passages);
    }
    return 0;
}

/* The pieces of a part that are in the slice.  FULL: they are too many, as was seen behind *seen bytes.  What was marked until
 * then is right. */
static int do_slice(struct thread *t, const struct spill *part, uint64_t *seen, struct err *e)
{
    struct spill_reader r;
    struct repeats_piece x;
    size_t got, cap = sizeof x + piece_bytes(&t->m->c, t->m->most);
    int rc = spill_reader_open(&r, part, 0, part->size, cap < READ ? READ : cap, e);

    memset(t->slot, 0, t->slots * sizeof *t->slot);
    t->used = 0;
    t->n = UNIT; /* so that no slot that is taken is 0 */
    while (rc == 0 && (rc = spill_ahead(&r, sizeof x, &got, e)) == 0 && got) {
        memcpy(&x, r.buf + r.pos, sizeof x);
        r.pos += sizeof x;
        rc = spill_ahead(&r, piece_bytes(&t->m->c, x.passages), &got, e);
        if (rc == 0 && x.key >= (uint64_t)(t->lo >> 64) && x.key <= (uint64_t)(t->hi >> 64))
            rc = take_piece(t, &r, &x, e);
        r.pos += got;
    }
    *seen = r.at - (r.have - r.pos);
    spill_reader_close(&r);
    if (rc == 0 && t->m->c.all)
        rc = strike_first_ones(t, e);
    return rc;
}

static int by_place(const void *a, const void *b)
{
    const wide *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Sorted places of some of the slice's passages that are kept; their number. */
static size_t sample(const struct thread *t, wide place[SAMPLES])
{
    size_t n = 0, every = t->used / SAMPLES + 1, skip = 0;

    for (size_t at = UNIT; at < t->n && n < SAMPLES;) {
        const struct repeats_piece *x = piece_at(t, at);
        for (; skip < x->passages && n < SAMPLES; skip += every) {
            uint64_t h = roll_in(&t->roll, roll_start(&t->roll, x + 1, skip), x + 1, skip + t->length - 1);
            place[n] = (wide)x->key << 64 | hash_mix64(h);
            n += in_slice(t, x->key, hash_mix64(h));
        }
        skip -= n < SAMPLES ? (size_t)x->passages : 0;
        at += kept_bytes(&t->m->c, x->passages);
    }
    qsort(place, n, sizeof *place, by_place);
    return n;
}

/* Divides the memory where pieces take so many bytes a passage. */
static void divide(struct thread *t, double each)
{
    size_t least = 2 * kept_bytes(&t->m->c, t->m->most), slot = sizeof *t->slot;

    t->slots = (size_t)((double)t->bytes / (1 + each * 3 / 4 / (double)slot)) / slot; /* three of four are taken */
    if (t->bytes - t->slots * slot < least)
        t->slots = (t->bytes - least) / slot;
    t->slot = (uint64_t *)(void *)t->memory;
    t->kept = t->memory + t->slots * slot;
    t->room = t->bytes - t->slots * slot;
    if (t->room / UNIT > UINT32_MAX)
        t->room = (size_t)UINT32_MAX * UNIT;
}

/* The part's pieces within [lo, hi].  If they have no room, in smaller slices, each with about as many of those that were
 * kept when room ran out. */
static int do_slices(struct thread *t, const struct spill *part, wide lo, wide hi, struct err *e)
{
    wide place[SAMPLES], from = lo, to;
    uint64_t seen;
    size_t n, slices;
    int rc;

    t->lo = lo;
    t->hi = hi;
    __atomic_fetch_add(&t->m->slices, 1, __ATOMIC_RELAXED);
    if ((rc = do_slice(t, part, &seen, e)) != FULL)
        return rc;
    if (lo == hi)
        return err_set(e, ERR_LIMIT, "too many passages have one hash to compare them in this --memory");
    n = sample(t, place);
    divide(t, (double)t->n / (double)(t->used + 1));
    slices = (size_t)(part->size / (seen + 1) + 2);
    for (size_t k = 1; k < slices && n; k++) {
        to = place[n * k / slices];
        if (to < from || to >= hi)
            continue;
        TRY(do_slices(t, part, from, to, e));
        from = to + 1;
    }
    if (from == lo) { /* samples do not tell them apart */
        to = n && place[0] > lo ? place[0] - 1 : lo + (hi - lo) / 2;
        TRY(do_slices(t, part, lo, to, e));
        from = to + 1;
    }
    return do_slices(t, part, from, hi, e);
}

static int do_part(struct thread *t, int number, struct err *e)
{
    const struct repeats_match *m = t->m;
    wide hashes = ~(wide)0 >> m->bits, from = m->bits ? (wide)(unsigned)number << (128 - m->bits) : 0; /* of a part, less 1 */
    double passages = (double)m->passages[number], each = (double)m->part[number].size * 9 / 8 / passages;
    double all = passages * (each + sizeof *t->slot / .75) + 4096 + 3 * (double)kept_bytes(&m->c, m->most);
    int rc;

    t->bytes = all < (double)m->room ? (size_t)all : m->room;
    t->memory = malloc(t->bytes);
    if (!t->memory)
        return err_set(e, ERR_NOMEM, "out of memory for %zu bytes of passages", t->bytes);
    mem_large(t->memory, t->bytes);
    divide(t, each);
    rc = do_slices(t, &m->part[number], from, from + hashes, e);
    free(t->memory);
    return rc;
}

static int work(void *arg, int thread, struct err *e)
{
    struct repeats_match *m = arg;
    struct thread *t = calloc(1, sizeof *t);
    int i, rc = t ? 0 : err_set(e, ERR_NOMEM, "out of memory for a thread");

    (void)thread;
    if (t) {
        t->m = m;
        t->length = m->c.length;
        t->width = (size_t)m->c.width;
        roll_init(&t->roll, m->c.width, m->c.length - 1);
    }
    while (rc == 0 && (i = __atomic_fetch_add(&m->next_part, 1, __ATOMIC_RELAXED)) < 1 << m->bits) {
        if (m->part[i].size) {
            __atomic_fetch_add(&m->parts, 1, __ATOMIC_RELAXED);
            rc = do_part(t, i, e);
        }
        spill_close(&m->part[i]);
    }
    if (rc == 0)
        rc = put_marks(t, e);
    free(t);
    return rc;
}

/* ---- the whole ---- */

int repeats_match_open(struct repeats_match *m, const struct repeats_conf *c, uint64_t pieces, uint64_t passages, int jobs,
                       struct err *e)
{
    int64_t memory = c->memory - APART < c->memory / 4 ? c->memory / 4 : c->memory - APART;
    uint64_t need = passages * (uint64_t)c->width + pieces * (c->length * (uint64_t)c->width + sizeof(struct repeats_piece)) +
                    passages * sizeof(uint64_t) / 3 * 4; /* if all is new */
    size_t cap;
    int rc;

    *m = (struct repeats_match){.c = *c, .jobs = jobs};
    m->most = (size_t)memory / 64 / (size_t)c->width < PASSAGES ? (size_t)memory / 64 / (size_t)c->width : PASSAGES;
    m->most = m->most < c->length ? c->length : m->most;
    /* at least four of the largest pieces for a thread */
    while (m->jobs > 1 && (size_t)memory / (size_t)m->jobs < 4 * kept_bytes(c, m->most))
        m->jobs--;
    m->room = (size_t)memory / (size_t)m->jobs;
    while (m->bits < BITS_MOST && need >> m->bits > (m->room < PART ? m->room : PART))
        m->bits++;
    m->part = calloc((size_t)1 << m->bits, sizeof *m->part);
    m->passages = calloc((size_t)1 << m->bits, sizeof *m->passages);
    pthread_mutex_init(&m->lock, NULL);
    for (int i = 0; m->part && i < 1 << m->bits; i++)
        m->part[i].fd = -1;
    if (!m->part || !m->passages)
        return err_set(e, ERR_NOMEM, "out of memory for %d parts", 1 << m->bits);
    cap = (size_t)memory / 8 >> m->bits;
    cap = cap < BUFFER_LEAST ? BUFFER_LEAST : cap > BUFFER_MOST ? BUFFER_MOST : cap;
    rc = members_open(&m->marks, (size_t)memory / 16 / sizeof(struct member) + 1, c->dir, e);
    for (int i = 0; i < 1 << m->bits && rc == 0; i++)
        rc = spill_open(&m->part[i], c->dir, cap, e);
    return rc;
}

void repeats_match_close(struct repeats_match *m)
{
    for (int i = 0; m->part && i < 1 << m->bits; i++)
        spill_close(&m->part[i]);
    if (m->part)
        pthread_mutex_destroy(&m->lock);
    free(m->part);
    free(m->passages);
    members_close(&m->marks);
    *m = (struct repeats_match){0};
}

int repeats_match_add(struct repeats_match *m, const struct repeats_piece *p, const void *elements_of, struct err *e)
{
    size_t part = m->bits ? (size_t)(p->key >> (64 - m->bits)) : 0;

    m->candidates += p->passages;
    m->passages[part] += p->passages;
    TRY(spill_put(&m->part[part], p, sizeof *p, e));
    return spill_put(&m->part[part], elements_of, piece_bytes(&m->c, p->passages), e);
}

int repeats_match_find(struct repeats_match *m, struct err *e)
{
    for (int i = 0; i < 1 << m->bits; i++)
        TRY(spill_flush(&m->part[i], e));
    TRY(pool_share(m->jobs, work, m, e));
    return members_sort(&m->marks, e);
}
