#include "curate/dedup/rank_group_inner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "curate/dedup/dedup_fuzzy.h"

/* Documents of a batch, at least and at most: of all ranks together, and of each.  It grows as long as a document is
 * like few others of its batch, up to EDGES of them.  DOC_BYTES: of memory for a document,
 * and as much again while arrays grow. */
enum { LEAST_BATCH = 256, MOST_BATCH = 2048, MOST_OWN = 512, LEAST_OWN = 16, EDGES = 16, DOC_BYTES = 80 };

/* ---- documents ---- */

int rank_group_open(struct rank_group **out, const struct rank_group_conf *conf, struct err *e)
{
    struct rank_group *g = calloc(1, sizeof *g);
    int64_t buffers = (int64_t)conf->c->size * GROUP_READ;

    *out = g;
    if (!g)
        return group_no_memory(e);
    g->conf = *conf;
    g->ids.fd = g->sets.notes.fd = -1;
    g->sets.c = conf->c;
    g->sets.dir = conf->dir;
    g->sets.memory = buffers < conf->memory / 16 ? buffers : conf->memory / 16;
    g->sets.threshold = conf->threshold;
    g->first = calloc((size_t)conf->c->size + 1, sizeof *g->first);
    g->posting = calloc((size_t)conf->c->size, sizeof *g->posting);
    if (!g->first || !g->posting)
        return group_no_memory(e);
    TRY(dedup_bands_init(&g->sets.shape, conf->bands, conf->rows, e));
    g->sets.shape.hash_bytes = conf->hash_bytes;
    TRY(spill_open(&g->ids, conf->dir, GROUP_READ, e));
    return rank_sets_open(&g->sets, e);
}

void rank_group_close(struct rank_group *g)
{
    if (!g)
        return;
    free(g->entry.p), free(g->all.p), free(g->edges.p), free(g->matches.p);
    for (int r = 0; r < g->conf.c->size && g->posting; r++)
        free(g->posting[r].p);
    prefix_index_free(g->prefix);
    prefix_index_free(g->kept);
    prefix_index_free(g->fresh);
    prefix_found_close(&g->found);
    rank_sets_close(&g->sets);
    spill_close(&g->ids);
    free(g->doc), free(g->order), free(g->own), free(g->first), free(g->place);
    free(g->posting), free(g->begin), free(g->open), free(g->of);
    free(g);
}

int rank_group_add(struct rank_group *g, struct span note, bool outside, uint64_t number, struct err *e)
{
    struct group_doc d = {.number = number, .place = UINT64_MAX};

    if ((int64_t)(g->sets.n + 1) * DOC_BYTES > g->conf.memory / 2 || g->sets.n >= UINT32_MAX - 1)
        return err_set(e, ERR_NOMEM, "%zu documents of large groups are too many for the memory of a rank", g->sets.n);
    if (mem_grow(&g->doc, &g->cap, g->sets.n + 1, sizeof *g->doc) < 0)
        return group_no_memory(e);
    TRY(rank_sets_add(&g->sets, note, &d.rank, e));
    d.rank = outside ? UINT64_MAX : g->conf.last ? number : d.rank;
    g->doc[g->sets.n - 1] = d;
    return 0;
}

/* ---- the batch ---- */

static int by_doc_order(const void *x, const void *y, void *doc)
{
    const struct group_doc *d = doc;
    const uint32_t *a = x, *b = y;

    return group_order(d[*a].rank, d[*a].number, d[*b].rank, d[*b].number);
}

/* Documents from *at on that are open, `most` at most: *last becomes the key of the last, or of none if these are all. */
static void next_own(const struct rank_group *g, size_t at, uint64_t last[2])
{
    size_t n = 0;

    last[0] = 0;
    last[1] = UINT64_MAX;
    for (; at < g->sets.n && n < g->most; at++)
        if (g->doc[g->order[at]].place == UINT64_MAX && ++n == g->most) {
            last[0] = g->doc[g->order[at]].rank;
            last[1] = g->doc[g->order[at]].number;
        }
}

/* Takes this rank's documents of the next batch: up to the key that comes first among the ranks', if they are to be in order. */
static int take_own(struct rank_group *g, size_t *at, bool in_order, struct err *e)
{
    uint64_t last[2], *all = calloc(2 * (size_t)g->conf.c->size, sizeof *all);
    int rc = all ? 0 : group_no_memory(e);

    next_own(g, *at, last);
    if (rc == 0 && in_order)
        rc = comm_all_gather(g->conf.c, last, all, 2, COMM_I64, e);
    for (int r = 0; r < g->conf.c->size && rc == 0 && in_order; r++)
        if (group_order(all[2 * r], all[2 * r + 1], last[0], last[1]) < 0)
            memcpy(last, &all[2 * r], sizeof last);
    free(all);
    g->own_n = 0;
    for (; *at < g->sets.n && g->own_n < g->most && rc == 0; ++*at) {
        const struct group_doc *d = &g->doc[g->order[*at]];
        if (group_order(d->rank, d->number, last[0], last[1]) > 0)
            break;
        if (d->place == UINT64_MAX)
            g->own[g->own_n++] = g->order[*at];
    }
    return rc;
}

/* Holds all documents from `at` on against what is kept, and keeps none of it. */
static int sweep(struct rank_group *g, size_t at, struct err *e)
{
    bool more = true;

    while (more) {
        TRY(take_own(g, &at, false, e));
        TRY(group_batch_look_back(g, e));
        more = at < g->sets.n;
        TRY(rank_any(g->conf.c, &more, e));
    }
    prefix_index_clear(g->kept);
    g->entry.n = 0;
    return 0;
}

/* How many documents of a rank the next batch has; the same on all. */
static size_t batch_size(const struct rank_group *g)
{
    size_t size = (size_t)g->conf.c->size, most = MOST_BATCH / size, least = LEAST_BATCH / size, n = g->most;

    most = most < LEAST_OWN ? LEAST_OWN : most > MOST_OWN ? MOST_OWN : most;
    least = least < 1 ? 1 : least;
    n = n == 0 ? least : g->edges.n > EDGES * g->all.n ? n / 2 : 2 * n;
    return n < least ? least : n > most ? most : n;
}

static int all_batches(struct rank_group *g, struct err *e)
{
    size_t at = 0;
    bool more = true, full;

    while (more) {
        g->most = batch_size(g);
        TRY(take_own(g, &at, true, e));
        TRY(group_batch_look_back(g, e));
        TRY(group_batch_decide(g, e));
        full = prefix_index_full(g->kept);
        more = at < g->sets.n;
        TRY(rank_any(g->conf.c, &more, e));
        TRY(rank_any(g->conf.c, &full, e));
        if (more && full)
            TRY(sweep(g, at, e));
    }
    return 0;
}

/* ---- the beginning, and the end ---- */

enum { COUNTS = 1 << 16 };

/* The counts of all ranks, added up. */
static int add_counts(struct rank_group *g, struct err *e)
{
    size_t n;
    uint16_t *count = prefix_index_counts(g->prefix, &n);
    int32_t *sum = malloc(COUNTS * sizeof *sum);
    int rc = sum ? 0 : group_no_memory(e);

    for (size_t at = 0, some; at < n && rc == 0; at += some) {
        some = n - at < COUNTS ? n - at : COUNTS;
        for (size_t i = 0; i < some; i++)
            sum[i] = count[at + i];
        rc = comm_all_reduce(g->conf.c, sum, some, COMM_I32, COMM_SUM, e);
        for (size_t i = 0; i < some; i++)
            count[at + i] = sum[i] < UINT16_MAX ? (uint16_t)sum[i] : UINT16_MAX;
    }
    free(sum);
    return rc;
}

/* Counts shingles, so that rare ones come first. */
static int count_shingles(struct rank_group *g, struct err *e)
{
    struct rank_sets *s = &g->sets;
    size_t memory = (size_t)g->conf.memory / 4;
    uint64_t hashes = 0;

    for (size_t i = 0; i < s->n; i++)
        hashes += s->set[i].size;
    TRY(comm_all_reduce(g->conf.c, &hashes, 1, COMM_I64, COMM_SUM, e));
    TRY(prefix_index_new(&g->prefix, s->set, &s->files, g->conf.threshold, hashes / 8, memory, e));
    TRY(prefix_index_new(&g->kept, NULL, NULL, g->conf.threshold, 0, memory, e));
    TRY(prefix_index_new(&g->fresh, NULL, NULL, g->conf.threshold, 0, memory, e));
    for (size_t i = 0; i < s->n; i++)
        TRY(prefix_index_count(g->prefix, (uint32_t)i, e));
    return add_counts(g, e);
}

static int take_gone(void *to, int from, struct span bytes, struct err *e)
{
    struct rank_group *g = to;
    struct slot_record r;

    (void)from, (void)e;
    for (size_t at = 0; at < bytes.n; at += sizeof r) {
        memcpy(&r, bytes.p + at, sizeof r);
        g->doc[r.slot].size++;
    }
    return 0;
}

/* Survivors learn how many have gone for them. */
static int count_clusters(struct rank_group *g, struct err *e)
{
    struct group_post p = {0};
    struct arena a = {0};
    struct span id;
    int rc = group_post_open(&p, g, e);

    for (size_t i = 0; i < g->sets.n && rc == 0; i++)
        if (g->doc[i].place != UINT64_MAX)
            rc = spill_put(&p.out.file[rank_ref_home(g->doc[i].survivor)],
                           &(struct slot_record){(uint32_t)g->doc[i].survivor, 0}, sizeof(struct slot_record), e);
        else
            g->doc[i].size = 1;
    TRY(group_post_send(&p, rc, take_gone, g, e));
    for (size_t i = 0; i < g->sets.n && rc == 0; i++) {
        const struct group_doc *d = &g->doc[i], *best = &g->doc[g->largest_of];

        if (d->place != UINT64_MAX)
            continue;
        g->clusters += d->size > 1;
        if (d->size > g->largest || (d->size == g->largest && d->number < best->number)) {
            g->largest = d->size;
            g->largest_of = i;
        }
        if (g->conf.report_over && d->size > (uint64_t)g->conf.report_over) {
            rc = rank_group_id(g, i, &a, &id, e);
            if (rc == 0)
                dedup_fuzzy_warn_of_large(id, d->size);
        }
        arena_reset(&a);
    }
    arena_free(&a);
    return rc;
}

int rank_group_decide(struct rank_group *g, uint64_t *sent, struct err *e)
{
    struct rank_sets *s = &g->sets;
    uint64_t n = s->n;

    TRY(comm_all_reduce(g->conf.c, &n, 1, COMM_I64, COMM_SUM, e));
    TRY(rank_sets_flush(s, e));
    if (n == 0)
        return 0;
    g->order = malloc((s->n + 1) * sizeof *g->order);
    g->own = malloc(MOST_BATCH * sizeof *g->own);
    if (!g->order || !g->own)
        return group_no_memory(e);
    for (size_t i = 0; i < s->n; i++)
        g->order[i] = (uint32_t)i;
    if (s->n)
        qsort_r(g->order, s->n, sizeof *g->order, by_doc_order, g->doc);
    TRY(count_shingles(g, e));
    TRY(all_batches(g, e));
    TRY(count_clusters(g, e));
    *sent += s->sent;
    return spill_flush(&g->ids, e);
}

int rank_group_id(const struct rank_group *g, uint64_t n, struct arena *a, struct span *id, struct err *e)
{
    struct buf b = {0};
    struct fuzzy_parts p;
    struct fuzzy_note *h;
    char *to = NULL;
    int rc = rank_sets_note(&g->sets, n, &b, e);

    if (rc == 0)
        rc = fuzzy_note_parse(&g->sets.shape, buf_span(&b), &h, &p, e);
    if (rc == 0 && !(to = arena_alloc(a, h->id_n + 1)))
        rc = group_no_memory(e);
    if (rc == 0) {
        memcpy(to, p.id, h->id_n);
        *id = (struct span){to, h->id_n};
    }
    buf_free(&b);
    return rc;
}

int rank_group_fate(const struct rank_group *g, uint64_t n, struct rank_fate *f, struct arena *a, struct err *e)
{
    const struct group_doc *d = &g->doc[n];
    char *id;

    *f = (struct rank_fate){.stays = d->place == UINT64_MAX};
    if (f->stays) {
        f->size = d->size;
        return 0;
    }
    f->similarity = d->similarity;
    id = arena_alloc(a, d->id_n + 1);
    if (!id)
        return group_no_memory(e);
    f->survivor = (struct span){id, d->id_n};
    return d->id_n ? spill_read(&g->ids, d->id_at, id, d->id_n, e) : 0;
}

void rank_group_counts(const struct rank_group *g, struct rank_group_counts *to)
{
    *to = (struct rank_group_counts){.documents = g->sets.n, .candidates = g->sets.candidates,
                                     .compared = g->sets.compared, .clusters = g->clusters,
                                     .largest = g->largest, .largest_of = g->largest_of};
    if (g->sets.n)
        to->largest_number = g->doc[g->largest_of].number;
}
