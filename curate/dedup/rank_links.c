#include "curate/dedup/rank_links.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "curate/dedup/dedup_links.h"

enum { READ = 1 << 18, LEAST_BATCH = 256, MOST_BATCH = 1 << 20 };

int rank_docs_open(struct rank_docs *d, struct comm *c, uint64_t n, struct err *e)
{
    *d = (struct rank_docs){calloc((size_t)c->size + 1, sizeof *d->first), n};
    if (!d->first)
        return err_set(e, ERR_NOMEM, "out of memory for %d ranks", c->size);
    TRY(comm_all_gather(c, &n, d->first + 1, 1, COMM_I64, e));
    for (int r = 0; r < c->size; r++)
        d->first[r + 1] += d->first[r];
    return 0;
}

void rank_docs_close(struct rank_docs *d)
{
    free(d->first);
    d->first = NULL;
}

static int home_of(const struct rank_link_plan *p, uint64_t doc)
{
    int low = 0, high = p->c->size - 1;

    while (low < high) { /* the last that begins at doc or before, and is not empty */
        int mid = (low + high + 1) / 2;
        if (p->docs->first[mid] <= doc)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

int rank_key_owner(const struct comm *c, uint64_t key)
{
    return (int)((unsigned __int128)key * (unsigned)c->size >> 64);
}

struct edge {
    uint64_t a, b;
};

struct finder {
    const struct rank_link_plan *p;
    uint64_t *root, base;
    struct spill parts[STORE_PARTS];
    struct spill part_edges[STORE_PARTS]; /* while keys are joined */
    struct spill edges;
    uint64_t *sent;
    /* A batch of questions to other ranks. */
    size_t batch;    /* documents at a time */
    uint64_t *ask, *answer, *out, *in;
    size_t in_cap, *place, *to_n, *from_n;
    int64_t *told;
};

/* ---- edges ---- */

/* Another order, so that the keys of one owner are spread over all parts. */
static int take_keys(void *to, int from, struct span bytes, struct err *e)
{
    struct finder *f = to;
    struct store_key k;

    for (size_t at = 0; at < bytes.n; at += sizeof k) {
        memcpy(&k, bytes.p + at, sizeof k);
        k.key = hash_mix64(k.key);
        k.doc += f->p->docs->first[from];
        TRY(spill_put(&f->parts[k.key >> (64 - STORE_PART_BITS)], &k, sizeof k, e));
    }
    return 0;
}

static int put_edge(void *arg, int part, uint64_t first, uint64_t doc, struct err *e)
{
    struct finder *f = arg;
    struct edge x = {first, doc};

    return first == doc ? 0 : spill_put(&f->part_edges[part], &x, sizeof x, e);
}

/* The edges of all parts, in one order whatever the number of threads. */
static int gather_edges(struct finder *f, struct err *e)
{
    for (int i = 0; i < STORE_PARTS; i++) {
        struct spill_reader in = {0};
        struct edge x;
        uint64_t left = f->part_edges[i].size / sizeof x;
        int rc = spill_flush(&f->part_edges[i], e);

        if (rc == 0)
            rc = spill_reader_open(&in, &f->part_edges[i], 0, f->part_edges[i].size, READ, e);
        for (; left > 0 && rc == 0; left--) {
            rc = spill_next(&in, &x, sizeof x, e);
            if (rc == 0)
                rc = spill_put(&f->edges, &x, sizeof x, e);
        }
        spill_reader_close(&in);
        spill_close(&f->part_edges[i]);
        TRY(rc);
    }
    return spill_flush(&f->edges, e);
}

static int make_edges(struct finder *f, struct rank_files *keys, struct err *e)
{
    const struct rank_link_plan *p = f->p;
    int64_t cap = p->memory / 16 / STORE_PARTS;

    cap = cap < 4096 ? 4096 : cap > 1 << 18 ? 1 << 18 : cap;
    for (int i = 0; i < STORE_PARTS; i++)
        TRY(spill_open(&f->parts[i], p->dir, (size_t)cap, e));
    TRY(spill_open(&f->edges, p->dir, READ, e));
    TRY(rank_exchange(p->c, keys, p->memory / 4, take_keys, f, f->sent, e));
    for (int i = 0; i < STORE_PARTS; i++)
        TRY(spill_flush(&f->parts[i], e));
    for (int i = 0; i < STORE_PARTS; i++)
        TRY(spill_open_small(&f->part_edges[i], p->dir, (size_t)cap, e));
    TRY(dedup_links_join(f->parts, p->memory / 2, p->jobs, put_edge, f, e));
    TRY(gather_edges(f, e));
    return rank_meet(p->c, e);
}

/* ---- questions ---- */

static int open_batch(struct finder *f, struct err *e)
{
    size_t size = (size_t)f->p->c->size, n = (size_t)f->p->memory / 64 / size;

    f->batch = n < LEAST_BATCH ? LEAST_BATCH : n > MOST_BATCH ? MOST_BATCH : n;
    f->in_cap = f->batch * size;
    f->ask = malloc(f->batch * sizeof *f->ask);
    f->answer = malloc(f->batch * sizeof *f->answer);
    f->out = malloc(f->batch * sizeof *f->out);
    f->place = malloc(f->batch * sizeof *f->place);
    f->in = malloc(f->in_cap * sizeof *f->in);
    f->to_n = malloc(size * sizeof *f->to_n);
    f->from_n = malloc(size * sizeof *f->from_n);
    f->told = malloc(2 * size * sizeof *f->told);
    if (!f->ask || !f->answer || !f->out || !f->place || !f->in || !f->to_n || !f->from_n || !f->told)
        return err_set(e, ERR_NOMEM, "out of memory for links among %zu ranks", size);
    return 0;
}

/* Sends the n words of ask to the homes of the documents that key gives, in their order; they are then in f->in.
 * stride: words that belong together, of which the first is the document. */
static int send_words(struct finder *f, size_t n, size_t stride, size_t *got, struct err *e)
{
    struct comm *c = f->p->c;
    int64_t *theirs = f->told + c->size;
    struct comm_call told = {.kind = COMM_ALL_TO_ALL, .send = f->told, .recv = theirs, .n = 1, .type = COMM_I64};
    struct comm_call words = {.kind = COMM_ALL_TO_ALL_V, .send = f->out, .recv = f->in, .type = COMM_I64,
                              .send_counts = f->to_n, .recv_counts = f->from_n};
    size_t at = 0;

    memset(f->told, 0, (size_t)c->size * sizeof *f->told);
    for (size_t i = 0; i < n; i += stride)
        f->told[home_of(f->p, f->ask[i])] += (int64_t)stride;
    for (int r = 0; r < c->size; r++) {
        f->to_n[r] = at; /* where it begins, for now */
        at += (size_t)f->told[r];
    }
    for (size_t i = 0; i < n; i += stride) {
        size_t *to = &f->to_n[home_of(f->p, f->ask[i])];
        f->place[i] = *to;
        memcpy(f->out + *to, f->ask + i, stride * sizeof *f->out);
        *to += stride;
    }
    TRY(comm_run(c, &told, e));
    *got = 0;
    for (int r = 0; r < c->size; r++) {
        f->to_n[r] = (size_t)f->told[r];
        f->from_n[r] = (size_t)theirs[r];
        *got += f->from_n[r];
        *f->sent += r == c->rank ? 0 : 8 * f->to_n[r];
    }
    return comm_run(c, &words, e);
}

/* answer[i] becomes the parent of document ask[i], i < n <= batch. */
static int parents(struct finder *f, size_t n, struct err *e)
{
    struct comm_call back = {.kind = COMM_ALL_TO_ALL_V, .send = f->in, .recv = f->out, .type = COMM_I64,
                             .send_counts = f->from_n, .recv_counts = f->to_n};
    size_t got;

    TRY(send_words(f, n, 1, &got, e));
    for (size_t i = 0; i < got; i++)
        f->in[i] = f->root[f->in[i] - f->base];
    TRY(comm_run(f->p->c, &back, e));
    for (int r = 0; r < f->p->c->size; r++)
        *f->sent += r == f->p->c->rank ? 0 : 8 * f->from_n[r];
    for (size_t i = 0; i < n; i++)
        f->answer[i] = f->out[f->place[i]];
    return 0;
}

/* ---- trees ---- */

/* Every document points to its root. */
static int flatten(struct finder *f, struct err *e)
{
    for (bool changed = true; changed;) {
        uint64_t at = 0;
        bool more = true;

        for (changed = false; more;) {
            uint64_t from = at;
            size_t n = 0;

            for (; at < f->p->docs->n && n < f->batch; at++)
                if (f->root[at] != at + f->base)
                    f->ask[n++] = f->root[at];
            TRY(parents(f, n, e));
            n = 0;
            for (uint64_t i = from; i < at; i++) {
                if (f->root[i] == i + f->base)
                    continue;
                changed |= f->root[i] != f->answer[n];
                f->root[i] = f->answer[n++];
            }
            more = at < f->p->docs->n;
            TRY(rank_any(f->p->c, &more, e));
        }
        TRY(rank_any(f->p->c, &changed, e));
    }
    return 0;
}

/* Of each edge that joins two trees, the greater root is put below the smaller one, if nobody else has put it
 * somewhere; the edge goes to left. */
static int hook_batch(struct finder *f, size_t edges, struct spill *left, struct err *e)
{
    size_t n = 0, got;

    TRY(parents(f, 2 * edges, e));
    for (size_t i = 0; i < edges; i++) {
        uint64_t x = f->answer[2 * i], y = f->answer[2 * i + 1];
        struct edge r = {x > y ? x : y, x > y ? y : x};

        if (x == y)
            continue;
        TRY(spill_put(left, &r, sizeof r, e));
        f->ask[n++] = r.a;
        f->ask[n++] = r.b;
    }
    TRY(send_words(f, n, 2, &got, e));
    for (size_t i = 0; i < got; i += 2) {
        uint64_t *root = &f->root[f->in[i] - f->base];
        if (*root == f->in[i] && f->in[i + 1] < *root)
            *root = f->in[i + 1];
    }
    return 0;
}

/* *any: trees are still joined by edges. */
static int hook(struct finder *f, bool *any, struct err *e)
{
    struct spill left = {.fd = -1};
    struct spill_reader in = {0};
    uint64_t todo = f->edges.size / sizeof(struct edge);
    bool more = true;
    int rc = spill_open(&left, f->p->dir, READ, e);

    if (rc == 0)
        rc = spill_reader_open(&in, &f->edges, 0, f->edges.size, READ, e);
    while (rc == 0 && more) {
        size_t n = todo < f->batch / 2 ? (size_t)todo : f->batch / 2;

        todo -= n;
        rc = spill_next(&in, f->ask, n * sizeof(struct edge), e);
        if (rc == 0)
            rc = hook_batch(f, n, &left, e);
        more = todo > 0;
        if (rc == 0)
            rc = rank_any(f->p->c, &more, e);
    }
    spill_reader_close(&in);
    if (rc == 0)
        rc = spill_flush(&left, e);
    spill_close(&f->edges);
    f->edges = left;
    *any = left.size > 0;
    return rc == 0 ? rank_any(f->p->c, any, e) : rc;
}

/* In place of a root that others are linked with: how many documents are, itself among them. */
#define COUNT RANK_LARGE

/* Roots learn how many documents they have. */
static int count_groups(struct finder *f, struct err *e)
{
    uint64_t at = 0;
    bool more = true;

    while (more) {
        size_t n = 0, got;

        for (; at < f->p->docs->n && n < f->batch; at++)
            if (!(f->root[at] & COUNT) && f->root[at] != at + f->base)
                f->ask[n++] = f->root[at];
        TRY(send_words(f, n, 1, &got, e));
        for (size_t i = 0; i < got; i++) {
            uint64_t *root = &f->root[f->in[i] - f->base];
            *root = *root & COUNT ? *root + 1 : COUNT | 2;
        }
        more = at < f->p->docs->n;
        TRY(rank_any(f->p->c, &more, e));
    }
    return 0;
}

static uint64_t mark_of(const struct finder *f, uint64_t count)
{
    return RANK_LINKED | ((count & ~COUNT) > f->p->large ? RANK_LARGE : 0);
}

/* Documents learn of their roots in what kind of group they are. */
static int mark_groups(struct finder *f, struct err *e)
{
    uint64_t at = 0;
    bool more = true;

    TRY(count_groups(f, e));
    while (more) {
        uint64_t from = at;
        size_t n = 0;

        for (; at < f->p->docs->n && n < f->batch; at++)
            if (!(f->root[at] & COUNT) && f->root[at] != at + f->base)
                f->ask[n++] = f->root[at];
        TRY(parents(f, n, e));
        n = 0;
        for (uint64_t i = from; i < at; i++)
            if (!(f->root[i] & COUNT) && f->root[i] != i + f->base)
                f->root[i] |= mark_of(f, f->answer[n++]);
        more = at < f->p->docs->n;
        TRY(rank_any(f->p->c, &more, e));
    }
    for (uint64_t i = 0; i < f->p->docs->n; i++)
        if (!(f->root[i] & RANK_LINKED) && f->root[i] & COUNT)
            f->root[i] = (i + f->base) | mark_of(f, f->root[i]);
    return 0;
}

static int find(struct finder *f, struct rank_files *keys, struct err *e)
{
    bool any = true;

    TRY(make_edges(f, keys, e));
    TRY(open_batch(f, e));
    for (uint64_t i = 0; i < f->p->docs->n; i++)
        f->root[i] = i + f->base;
    while (any) {
        TRY(hook(f, &any, e));
        TRY(flatten(f, e));
    }
    return mark_groups(f, e);
}

int rank_links_find(const struct rank_link_plan *p, struct rank_files *keys, uint64_t *root, uint64_t *sent,
                    struct err *e)
{
    struct finder f = {.p = p, .root = root, .base = p->docs->first[p->c->rank], .edges = {.fd = -1}, .sent = sent};
    int rc;

    for (int i = 0; i < STORE_PARTS; i++)
        f.parts[i].fd = f.part_edges[i].fd = -1;
    rc = find(&f, keys, e);
    for (int i = 0; i < STORE_PARTS; i++) {
        spill_close(&f.parts[i]);
        spill_close(&f.part_edges[i]);
    }
    spill_close(&f.edges);
    rank_files_close(keys);
    free(f.ask), free(f.answer), free(f.out), free(f.in);
    free(f.place), free(f.to_n), free(f.from_n), free(f.told);
    return rc;
}
