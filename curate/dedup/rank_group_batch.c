#include "curate/dedup/rank_group_inner.h"

#include <stdlib.h>
#include <string.h>

/* ---- records to others ---- */

int group_post_open(struct group_post *p, struct rank_group *g, struct err *e)
{
    p->g = g;
    return rank_files_open(&p->out, g->conf.c, g->conf.dir, g->sets.memory, e);
}

static int post_to_all(const struct group_post *p, const void *record, size_t n, struct err *e)
{
    for (int r = 0; r < p->out.n; r++)
        TRY(spill_put(&p->out.file[r], record, n, e));
    return 0;
}

int group_post_send(struct group_post *p, int rc, rank_taker *take, void *to, struct err *e)
{
    if (rc == 0)
        rc = rank_files_flush(&p->out, e);
    if (rc == 0)
        rc = rank_exchange(p->g->conf.c, &p->out, p->g->sets.memory, take, to, &p->g->sets.sent, e);
    rank_files_close(&p->out);
    return rc;
}

static int heap_put(struct heap *h, const void *record, size_t size, size_t n, struct err *e)
{
    if (mem_grow(&h->p, &h->cap, h->n + n, size) < 0)
        return group_no_memory(e);
    memcpy((char *)h->p + h->n * size, record, n * size);
    h->n += n;
    return 0;
}

/* ---- the batch ---- */

static int by_batch_order(const void *x, const void *y)
{
    const struct batch_doc *a = x, *b = y;

    return group_order(a->rank, a->number, b->rank, b->number);
}

static int take_batch_docs(void *to, int from, struct span bytes, struct err *e)
{
    struct rank_group *g = to;
    struct batch_doc d;

    for (size_t at = 0; at < bytes.n; at += sizeof d) {
        memcpy(&d, bytes.p + at, sizeof d);
        d.home = (uint32_t)from;
        TRY(heap_put(&g->all, &d, sizeof d, 1, e));
    }
    return 0;
}

/* Every rank learns the batch. */
static int share_batch(struct rank_group *g, struct err *e)
{
    struct group_post p = {0};
    struct batch_doc *all;
    int rc = group_post_open(&p, g, e), size = g->conf.c->size;

    for (size_t i = 0; i < g->own_n && rc == 0; i++) {
        const struct group_doc *d = &g->doc[g->own[i]];
        struct batch_doc x = {d->rank, d->number, (uint32_t)i, g->own[i], 0, (uint32_t)g->sets.set[g->own[i]].size};
        rc = post_to_all(&p, &x, sizeof x, e);
    }
    g->all.n = 0;
    TRY(group_post_send(&p, rc, take_batch_docs, g, e));
    all = g->all.p;
    memset(g->first, 0, ((size_t)size + 1) * sizeof *g->first);
    for (size_t i = 0; i < g->all.n; i++)
        g->first[all[i].home + 1]++;
    for (int r = 0; r < size; r++)
        g->first[r + 1] += g->first[r];
    if (mem_grow(&g->place, &g->place_cap, g->all.n, sizeof *g->place) < 0 ||
        mem_grow(&g->begin, &g->begin_cap, g->all.n, sizeof *g->begin) < 0 ||
        mem_grow(&g->open, &g->open_cap, g->all.n, sizeof *g->open) < 0 ||
        mem_grow(&g->of, &g->of_cap, g->all.n, sizeof *g->of) < 0)
        return group_no_memory(e);
    if (g->all.n)
        qsort(all, g->all.n, sizeof *all, by_batch_order);
    for (size_t i = 0; i < g->all.n; i++)
        g->place[g->first[all[i].home] + all[i].slot] = (uint32_t)i;
    return 0;
}

static int take_postings(void *to, int from, struct span bytes, struct err *e)
{
    struct rank_group *g = to;

    return heap_put(&g->posting[from], bytes.p, sizeof(struct posting), bytes.n / sizeof(struct posting), e);
}

/* Rare shingles of the batch go to their owners. */
static int share_postings(struct rank_group *g, struct err *e)
{
    struct group_post p = {0};
    struct prefix x = {0};
    int rc = group_post_open(&p, g, e), size = g->conf.c->size;

    for (size_t slot = 0; slot < g->own_n && rc == 0; slot++) {
        rc = prefix_of(g->prefix, g->own[slot], &x, e);
        for (size_t i = 0; i < x.n && rc == 0; i++) {
            struct posting r = {(uint32_t)x.key[i], (uint32_t)slot, prefix_room(g->prefix, x.size, i), x.size};
            if (!prefix_alone(g->prefix, x.key[i]))
                rc = spill_put(&p.out.file[(uint64_t)r.tag * (unsigned)size >> 32], &r, sizeof r, e);
        }
    }
    prefix_free(&x);
    for (int r = 0; r < size; r++)
        g->posting[r].n = 0;
    TRY(group_post_send(&p, rc, take_postings, g, e));
    for (int r = 0; r < size; r++) {
        const struct posting *q = g->posting[r].p;
        size_t at = 0;

        for (size_t slot = 0; slot < g->first[r + 1] - g->first[r]; slot++) {
            while (at < g->posting[r].n && q[at].slot < slot)
                at++;
            g->begin[g->first[r] + slot] = at;
        }
    }
    return 0;
}

/* The postings of a document of the batch, which are here in the order of its shingles. */
static const struct posting *postings_of(const struct rank_group *g, const struct batch_doc *d, size_t *n)
{
    size_t at = g->first[d->home] + d->slot, begin = g->begin[at];
    bool last = at + 1 == g->first[d->home + 1];

    *n = (last ? g->posting[d->home].n : g->begin[at + 1]) - begin;
    return *n ? (const struct posting *)g->posting[d->home].p + begin : NULL;
}

/* ---- who can be alike ---- */

/* Whom the lists have that d can be like: in g->found. */
static int find(struct rank_group *g, const struct prefix_index *lists, const struct batch_doc *d, bool fresh, struct err *e)
{
    const struct batch_doc *all = g->all.p;
    const struct entry *entry = g->entry.p;
    struct prefix_found *f = &g->found;
    uint64_t most = UINT64_MAX;
    size_t n, kept = 0;
    const struct posting *p = postings_of(g, d, &n);

    TRY(prefix_found_begin(lists, f, e));
    for (size_t i = 0; i < n; i++) {
        TRY(prefix_index_find_key(lists, p[i].tag, p[i].size, &most, f, e));
        for (size_t k = kept; k < f->n; k++)
            if ((fresh ? all[f->doc[k]].size : entry[f->doc[k]].size) <= p[i].room)
                f->doc[kept++] = f->doc[k];
        f->n = kept;
    }
    return 0;
}

static int put_lists(struct rank_group *g, struct prefix_index *lists, const struct batch_doc *d, uint32_t doc, struct err *e)
{
    size_t n;
    const struct posting *p = postings_of(g, d, &n);

    for (size_t i = 0; i < n; i++)
        TRY(prefix_index_put_key(lists, p[i].tag, doc, p[i].room, e));
    return 0;
}

/* It stays in any case: nobody asks whom it is like. */
static bool is_fixed(const struct batch_doc *d)
{
    return d->rank == UINT64_MAX;
}

/* The pairs of a document of the batch and those in g->found go to its home. */
static int tell_home(struct rank_group *g, struct group_post *p, const struct batch_doc *d, bool fresh, struct err *e)
{
    const struct batch_doc *all = g->all.p;
    const struct entry *entry = g->entry.p;

    for (size_t i = 0; i < g->found.n; i++) {
        uint32_t doc = g->found.doc[i];
        struct rank_pair x = {.slot = d->slot};

        x.ref = fresh ? rank_ref((int)all[doc].home, all[doc].local) : entry[doc].ref;
        x.place = fresh ? g->base + doc : entry[doc].place;
        TRY(spill_put(&p->out.file[d->home], &x, sizeof x, e));
    }
    return 0;
}

/* Of those kept before. */
static int find_kept(struct rank_group *g, struct group_post *p, struct err *e)
{
    const struct batch_doc *all = g->all.p;

    for (size_t i = 0; i < g->all.n; i++) {
        if (is_fixed(&all[i]))
            continue;
        TRY(find(g, g->kept, &all[i], false, e));
        TRY(tell_home(g, p, &all[i], false, e));
    }
    return 0;
}

/* Of the batch itself. */
static int find_fresh(struct rank_group *g, struct group_post *p, struct err *e)
{
    const struct batch_doc *all = g->all.p;

    prefix_index_clear(g->fresh);
    for (size_t i = 0; i < g->all.n; i++) {
        if (!g->open[i])
            continue;
        if (!is_fixed(&all[i])) {
            TRY(find(g, g->fresh, &all[i], true, e));
            TRY(tell_home(g, p, &all[i], true, e));
        }
        TRY(put_lists(g, g->fresh, &all[i], (uint32_t)i, e));
    }
    return 0;
}

static int take_pairs(void *to, int from, struct span bytes, struct err *e)
{
    (void)from;
    return spill_put(to, bytes.p, bytes.n, e);
}

/* Has all ranks find pairs, and their homes compare these. */
static int find_and_compare(struct rank_group *g, int (*look)(struct rank_group *g, struct group_post *p, struct err *e),
                            rank_similar *take, struct err *e)
{
    struct spill pairs = {.fd = -1};
    struct group_post p = {0};
    int rc = group_post_open(&p, g, e);

    if (rc == 0)
        rc = look(g, &p, e);
    if (rc == 0)
        rc = spill_open_small(&pairs, g->conf.dir, GROUP_READ, e);
    rc = group_post_send(&p, rc, take_pairs, &pairs, e);
    if (rc == 0)
        rc = rank_sets_verify(&g->sets, g->own, g->own_n, &pairs, take, g, e);
    spill_close(&pairs);
    return rc;
}

/* What becomes of a document that goes for the other of a pair. */
static int fate_of(struct rank_group *g, const struct rank_pair *p, float similarity, struct span id, struct group_doc *d,
                   struct err *e)
{
    d->survivor = p->ref;
    d->place = p->place;
    d->similarity = similarity;
    d->id_at = g->ids.size;
    d->id_n = (uint32_t)id.n;
    return spill_put(&g->ids, id.p, id.n, e);
}

/* The first that is like a document is its survivor. */
static int take_survivor(void *arg, const struct rank_pair *p, float similarity, struct span id, struct err *e)
{
    struct rank_group *g = arg;
    struct group_doc *d = &g->doc[g->own[p->slot]];

    return p->place < d->place ? fate_of(g, p, similarity, id, d, e) : 0;
}

/* Which of the batch stay is yet to be known. */
static int take_match(void *arg, const struct rank_pair *p, float similarity, struct span id, struct err *e)
{
    struct rank_group *g = arg;
    struct match m = {.fate = g->doc[g->own[p->slot]]};

    m.edge.doc = g->place[g->first[g->conf.c->rank] + p->slot];
    m.edge.other = (uint32_t)(p->place - g->base);
    TRY(fate_of(g, p, similarity, id, &m.fate, e));
    return heap_put(&g->matches, &m, sizeof m, 1, e);
}

/* ---- who stays ---- */

static int take_open(void *to, int from, struct span bytes, struct err *e)
{
    struct rank_group *g = to;
    struct slot_record r;

    (void)e;
    for (size_t at = 0; at < bytes.n; at += sizeof r) {
        memcpy(&r, bytes.p + at, sizeof r);
        g->open[g->place[g->first[from] + r.slot]] = true;
    }
    return 0;
}

/* Every rank learns which of the batch are open. */
static int share_open(struct rank_group *g, struct err *e)
{
    struct group_post p = {0};
    int rc = group_post_open(&p, g, e);

    for (size_t i = 0; i < g->own_n && rc == 0; i++)
        if (g->doc[g->own[i]].place == UINT64_MAX)
            rc = post_to_all(&p, &(struct slot_record){i, 0}, sizeof(struct slot_record), e);
    if (g->all.n)
        memset(g->open, 0, g->all.n * sizeof *g->open);
    return group_post_send(&p, rc, take_open, g, e);
}

static int take_edges(void *to, int from, struct span bytes, struct err *e)
{
    struct rank_group *g = to;

    (void)from;
    return heap_put(&g->edges, bytes.p, sizeof(struct edge), bytes.n / sizeof(struct edge), e);
}

static int by_edge(const void *x, const void *y)
{
    const struct edge *a = x, *b = y;

    if (a->doc != b->doc)
        return a->doc < b->doc ? -1 : 1;
    return a->other < b->other ? -1 : a->other > b->other;
}

/* All ranks go through the batch alike: the first that stays and is like a document is its survivor. */
static int decide(struct rank_group *g, struct err *e)
{
    struct group_post p = {0};
    const struct match *m = g->matches.p;
    const struct edge *edge;
    int rc = group_post_open(&p, g, e);

    for (size_t i = 0; i < g->matches.n && rc == 0; i++)
        rc = post_to_all(&p, &m[i].edge, sizeof m[i].edge, e);
    g->edges.n = 0;
    TRY(group_post_send(&p, rc, take_edges, g, e));
    edge = g->edges.p;
    if (g->edges.n)
        qsort(g->edges.p, g->edges.n, sizeof *edge, by_edge);
    for (uint32_t i = 0; i < g->all.n; i++)
        g->of[i] = i;
    for (size_t i = 0; i < g->edges.n; i++)
        if (g->of[edge[i].doc] == edge[i].doc && g->of[edge[i].other] == edge[i].other)
            g->of[edge[i].doc] = edge[i].other;
    for (size_t i = 0; i < g->matches.n; i++) {
        const struct batch_doc *d = (const struct batch_doc *)g->all.p + m[i].edge.doc;
        if (g->of[m[i].edge.doc] == m[i].edge.other)
            g->doc[d->local] = m[i].fate;
    }
    g->matches.n = 0;
    return 0;
}

/* Those that stay, to be met by all that follow. */
static int keep(struct rank_group *g, struct err *e)
{
    const struct batch_doc *all = g->all.p;

    for (uint32_t i = 0; i < g->all.n; i++) {
        struct entry x = {rank_ref((int)all[i].home, all[i].local), g->base + i, all[i].size};
        size_t n;

        if (!g->open[i] || g->of[i] != i || !postings_of(g, &all[i], &n))
            continue;
        TRY(put_lists(g, g->kept, &all[i], (uint32_t)g->entry.n, e));
        TRY(heap_put(&g->entry, &x, sizeof x, 1, e));
    }
    g->base += g->all.n;
    return 0;
}

int group_batch_look_back(struct rank_group *g, struct err *e)
{
    TRY(share_batch(g, e));
    TRY(share_postings(g, e));
    return find_and_compare(g, find_kept, take_survivor, e);
}

int group_batch_decide(struct rank_group *g, struct err *e)
{
    TRY(share_open(g, e));
    TRY(find_and_compare(g, find_fresh, take_match, e));
    TRY(decide(g, e));
    return keep(g, e);
}
