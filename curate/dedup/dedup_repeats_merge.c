/* The candidates' runs become one; equal passages stand together in it. */
#include <stdlib.h>
#include <string.h>

#include "curate/dedup/dedup_repeats_parts.h"

enum { MEMBERS = 1 << 16, AHEAD = 24, TRIM = 1 << 8 };

/* A run, and the passage that it has next: where it is, and its first 8 bytes as a number. */
struct run {
    uint64_t key, at, first;
    struct spill_reader in;
};

/* Passages that are equal: those that memory has no room for are on disk. */
struct group {
    uint64_t least, n;
    uint64_t *member;
    struct spill more;
};

struct merge {
    struct candidates *c;
    const unsigned char *text;
    size_t bytes; /* of a passage */
    struct run *run;
    size_t *heap, n;
    struct group group;
};

static uint64_t key_of(const unsigned char *p)
{
    uint64_t k;

    memcpy(&k, p, sizeof k);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    k = __builtin_bswap64(k);
#endif
    return k;
}

/* Moves run r to its next passage.  1, or 0 at its end. */
static int run_next(struct merge *m, struct run *r, struct err *e)
{
    uint64_t width = (uint64_t)m->c->c.width;
    uint32_t at;
    size_t got;

    TRY(spill_ahead(&r->in, sizeof at, &got, e));
    if (!got)
        return 0;
    memcpy(&at, r->in.buf + r->in.pos, sizeof at);
    r->in.pos += sizeof at;
    r->at = r->first + at;
    r->key = key_of(m->text + r->at * width);
    if (r->in.have - r->in.pos > AHEAD * sizeof at) {
        memcpy(&at, r->in.buf + r->in.pos + AHEAD * sizeof at, sizeof at);
        __builtin_prefetch(m->text + (r->first + at) * width);
    }
    return 1;
}

static int compare(const struct merge *m, uint64_t key_a, uint64_t a, uint64_t key_b, uint64_t b)
{
    uint64_t width = (uint64_t)m->c->c.width;

    if (key_a != key_b)
        return key_a < key_b ? -1 : 1;
    return memcmp(m->text + a * width + 8, m->text + b * width + 8, m->bytes - 8);
}

static bool before(const struct merge *m, size_t a, size_t b)
{
    return compare(m, m->run[a].key, m->run[a].at, m->run[b].key, m->run[b].at) < 0;
}

static void sift(struct merge *m, size_t i)
{
    size_t top = m->heap[i];

    for (size_t k; (k = 2 * i + 1) < m->n; i = k) {
        if (k + 1 < m->n && before(m, m->heap[k + 1], m->heap[k]))
            k++;
        if (!before(m, m->heap[k], top))
            break;
        m->heap[i] = m->heap[k];
    }
    m->heap[i] = top;
}

/* ---- groups ---- */

static int group_add(struct merge *m, uint64_t at, struct err *e)
{
    struct group *g = &m->group;
    uint64_t k = g->n % MEMBERS;

    if (k == 0 && g->n)
        TRY(spill_write(&g->more, (g->n - MEMBERS) * sizeof at, g->member, MEMBERS * sizeof at, e));
    g->member[k] = at;
    g->n++;
    if (g->n == 1 || at < g->least)
        g->least = at;
    return 0;
}

static void mark(struct merge *m, const uint64_t *member, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (m->c->c.all || member[i] >= m->group.least + m->c->c.length)
            m->c->struck.p[member[i] / 8] |= (unsigned char)(1u << (member[i] & 7));
}

static int group_end(struct merge *m, struct err *e)
{
    struct group *g = &m->group;
    uint64_t last = g->n ? (g->n - 1) % MEMBERS + 1 : 0;

    if (g->n > 1) {
        mark(m, g->member, last);
        for (uint64_t i = 0; i < g->n - last; i += MEMBERS) {
            TRY(spill_read(&g->more, i * sizeof *g->member, g->member, MEMBERS * sizeof *g->member, e));
            mark(m, g->member, MEMBERS);
        }
    }
    g->n = 0;
    return 0;
}

/* ---- the whole ---- */

static int merge_all(struct merge *m, struct err *e)
{
    uint64_t key = 0, at = 0, done = 0;

    while (m->n) {
        struct run *r = &m->run[m->heap[0]];
        int more;
        if (m->group.n && compare(m, key, at, r->key, r->at) != 0)
            TRY(group_end(m, e));
        key = r->key;
        at = r->at;
        TRY(group_add(m, at, e));
        TRY(more = run_next(m, r, e));
        if (!more)
            m->heap[0] = m->heap[--m->n];
        if (m->n)
            sift(m, 0);
        if (++done % TRIM == 0)
            candidates_trim(m->c);
    }
    return group_end(m, e);
}

static int open_runs(struct merge *m, struct err *e)
{
    struct candidates *c = m->c;
    size_t cap = (size_t)(c->c.memory / 8 / (int64_t)c->shards) / 4 * 4;

    cap = cap < 4096 ? 4096 : cap > 1 << 20 ? 1 << 20 : cap;
    for (size_t k = 0; k < c->shards; k++) {
        struct run *r = &m->run[k];
        uint64_t from = k * c->shard * sizeof(uint32_t);
        int more;
        r->first = k * c->shard;
        TRY(spill_reader_open(&r->in, &c->runs, from, from + c->run[k] * sizeof(uint32_t), cap, e));
        TRY(more = run_next(m, r, e));
        if (more)
            m->heap[m->n++] = k;
    }
    for (size_t i = m->n; i-- > 0;)
        sift(m, i);
    return 0;
}

int candidates_merge(struct candidates *c, struct err *e)
{
    struct merge m = {.c = c, .bytes = c->c.length * (size_t)c->c.width, .group.more.fd = -1};
    int rc = 0;

    TRY(spill_map_open(&c->struck, c->c.dir, (size_t)(c->n / 8 + 1), e));
    TRY(spill_map_file(&c->text_map, &c->text, e));
    if (!c->shards)
        return 0;
    m.text = c->text_map.p;
    m.run = calloc((size_t)c->shards, sizeof *m.run);
    m.heap = calloc((size_t)c->shards, sizeof *m.heap);
    m.group.member = malloc(MEMBERS * sizeof *m.group.member);
    if (!m.run || !m.heap || !m.group.member)
        rc = err_set(e, ERR_NOMEM, "out of memory for %llu shards", (unsigned long long)c->shards);
    if (rc == 0)
        rc = spill_open(&m.group.more, c->c.dir, 1, e);
    if (rc == 0)
        rc = open_runs(&m, e);
    if (rc == 0)
        rc = merge_all(&m, e);
    for (size_t k = 0; m.run && k < c->shards; k++)
        spill_reader_close(&m.run[k].in);
    free(m.run);
    free(m.heap);
    free(m.group.member);
    spill_close(&m.group.more);
    return rc;
}
