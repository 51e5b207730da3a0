#include "curate/dedup/dedup_clusters.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "curate/dedup/dedup_prefix.h"

/* Documents are taken a batch at a time: first each is compared, in parallel, with the
 * survivors of earlier batches; then those left with one another; then, in order, it is
 * decided which of these stay.  That gives what one document at a time would give.
 * A thread takes one document of it after the other.
 *
 * A bucket in which CROWD documents stay is crowded: pages of a template, or a page changed again
 * and again.  Those of crowded buckets are found by the rare shingles that they share
 * (curate/dedup/dedup_prefix.h), where that costs less than to look at each.  Once its index has
 * the memory that it may take, all documents yet to come are held against it; then it is cleared,
 * and crowded buckets are empty again.
 *
 * With a listener documents that are dropped stay candidates. */
enum { BATCH = 512, CROWD_BATCH = 64, CROWD = 64, CROWD_LOOKS = 512, PAIRS = 4096 };

/* A document of the batch and an earlier one of it that has the similarity. */
struct match {
    uint32_t earlier;
    float similarity;
    struct match *next; /* a later one */
};

struct worker;
struct clustering {
    const struct dedup_block *k;
    struct dedup_bands *b;
    double threshold;
    const struct dedup_listener *listener;
    int least; /* places in which the sketches must agree */
    struct dedup_fate *fate;
    struct dedup_tally *t;

    uint32_t first, last; /* the batch */
    int (*look)(struct worker *w, uint32_t doc, struct err *e);
    int (*take)(struct worker *w, const struct set_pair *similar, struct err *e);
    struct match *match[BATCH]; /* ascending */
    struct prefix_index *index; /* of those in crowded buckets; NULL: there is none yet */
    bool *indexed;              /* of each document: it is in there */
    struct prefix prefix;       /* of the one that is put in */
    uint32_t next;              /* document to be taken by a thread */
    struct worker *worker;
    struct crew *crew;
    pthread_mutex_t lock; /* one pair at a time is told */
    struct err *e;
};

struct worker {
    struct clustering *c;
    struct dedup_compare *compare;
    struct dedup_tally t;
    struct set_pair pair[PAIRS]; /* a document and an earlier one, to be compared */
    size_t n;
    struct prefix prefix;
    struct prefix_found found;
    uint64_t verifying; /* nanoseconds of this phase */
};

static struct bucket *bucket_of(const struct dedup_bands *b, uint32_t doc, int k)
{
    uint64_t number = b->key[(size_t)doc * (size_t)b->bands + (size_t)k];

    return number == BUCKET_NONE ? NULL : &b->band[k].bucket[number];
}

/* Compares the pairs that have been found; those that are similar are taken. */
static int compare(struct worker *w, struct err *e)
{
    struct clustering *c = w->c;
    uint64_t t = laps_now();

    if (!w->n)
        return 0;
    TRY(dedup_compare_run(w->compare, c->k->set, c->threshold, w->pair, w->n, e));
    w->verifying += laps_now() - t;
    for (size_t i = 0; i < w->n; i++)
        if (w->pair[i].similarity >= c->threshold)
            TRY(c->take(w, &w->pair[i], e));
    w->n = 0;
    return 0;
}

static bool crowded(const struct bucket *u)
{
    return u->kept >= CROWD;
}

/* Two candidates are to be compared, unless their sketches say enough. */
static int candidates(struct worker *w, uint32_t doc, uint32_t other, struct err *e)
{
    const struct clustering *c = w->c;

    w->t.candidates++;
    if (dedup_bands_agree(c->b, doc, other) < c->least)
        return 0;
    w->t.compared++;
    w->pair[w->n++] = (struct set_pair){.a = doc, .b = other};
    return w->n == PAIRS ? compare(w, e) : 0;
}

/* The first `kept` of bucket u of band k, unless an earlier band has them as well. */
static int look_at_kept(struct worker *w, uint32_t doc, const struct bucket *u, int k, struct err *e)
{
    const struct dedup_bands *b = w->c->b;
    const uint32_t *member = b->band[k].member + u->start;

    for (uint32_t i = 0; i < u->kept; i++)
        if (dedup_bands_meet(b, doc, member[i]) == k)
            TRY(candidates(w, doc, member[i], e));
    return 0;
}

/* Survivors that meet the document first in a crowded bucket.  looks: what it takes without the index. */
static int look_at_crowds(struct worker *w, uint32_t doc, uint64_t looks, struct err *e)
{
    struct clustering *c = w->c;
    bool found = false;

    if (looks > CROWD_LOOKS) {
        TRY(prefix_of(c->index, doc, &w->prefix, e));
        TRY(prefix_index_find(c->index, &w->prefix, looks, &w->found, &found, e));
    }
    for (size_t i = 0; i < w->found.n && found; i++) {
        uint32_t other = w->found.doc[i];
        int k = dedup_bands_meet(c->b, doc, other);
        const struct bucket *u = k < 0 ? NULL : bucket_of(c->b, doc, k);
        if (u && crowded(u) && other >= c->b->band[k].member[u->start]) /* those before it were swept */
            TRY(candidates(w, doc, other, e));
    }
    for (int k = 0; k < c->b->bands && !found; k++) {
        const struct bucket *u = bucket_of(c->b, doc, k);
        if (u && crowded(u))
            TRY(look_at_kept(w, doc, u, k, e));
    }
    return 0;
}

/* A survivor that a sweep found need not be the first: buckets that are not crowded may have an earlier one. */
static int look_at_earlier(struct worker *w, uint32_t doc, bool crowds_only, struct err *e)
{
    const struct clustering *c = w->c;
    uint64_t looks = 0;

    if (c->fate[doc].survivor == UINT32_MAX && !c->listener)
        return 0;
    for (int k = 0; k < c->b->bands; k++) {
        const struct bucket *u = bucket_of(c->b, doc, k);
        if (u && crowded(u))
            looks += u->kept;
        else if (u && !crowds_only)
            TRY(look_at_kept(w, doc, u, k, e));
    }
    return looks ? look_at_crowds(w, doc, looks, e) : 0;
}

/* Looks at the survivors of earlier batches. */
static int look_at_survivors(struct worker *w, uint32_t doc, struct err *e)
{
    return look_at_earlier(w, doc, false, e);
}

/* Of those, at what is in the index. */
static int look_at_index(struct worker *w, uint32_t doc, struct err *e)
{
    return look_at_earlier(w, doc, true, e);
}

/* The first survivor that a document is like is its own; what was dropped before stays as it is. */
static int take_survivor(struct worker *w, const struct set_pair *p, struct err *e)
{
    struct clustering *c = w->c;
    struct dedup_fate *fate = &c->fate[p->a];
    int rc = 0;

    if (c->fate[p->b].survivor == p->b && p->b < fate->survivor && fate->survivor != UINT32_MAX)
        *fate = (struct dedup_fate){.survivor = p->b, .similarity = (float)p->similarity};
    if (c->listener) {
        pthread_mutex_lock(&c->lock);
        rc = c->listener->pair(c->listener->arg, p->b, p->a, (float)p->similarity, e);
        pthread_mutex_unlock(&c->lock);
    }
    return rc;
}

static int take_match(struct worker *w, const struct set_pair *p, struct err *e)
{
    struct match **list = &w->c->match[p->a - w->c->first], *m = malloc(sizeof *m);

    if (!m)
        return err_set(e, ERR_NOMEM, "out of memory for a pair");
    while (*list && (*list)->earlier < p->b)
        list = &(*list)->next;
    *m = (struct match){p->b, (float)p->similarity, *list};
    *list = m;
    return 0;
}

/* Looks at those of its own batch that are undecided as well. */
static int look_in_batch(struct worker *w, uint32_t doc, struct err *e)
{
    struct clustering *c = w->c;

    if (c->fate[doc].survivor != doc && !c->listener)
        return 0;
    for (int k = 0; k < c->b->bands; k++) {
        const struct bucket *u = bucket_of(c->b, doc, k);
        for (uint32_t i = u ? u->seen : 0; u && i < u->size; i++) {
            uint32_t other = c->b->band[k].member[u->start + i];
            if (other >= doc)
                break;
            if ((c->listener || c->fate[other].survivor == other) && dedup_bands_meet(c->b, doc, other) == k)
                TRY(candidates(w, doc, other, e));
        }
    }
    return 0;
}

static int work(void *arg, int thread, struct err *e)
{
    struct clustering *c = arg;
    struct worker *w = &c->worker[thread];
    uint64_t t = laps_now();
    uint32_t doc;
    int rc = 0;

    w->n = 0;
    w->verifying = 0;
    while (rc == 0 && (doc = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED)) < c->last) {
        rc = c->look(w, doc, e);
        if (rc == 0)
            rc = compare(w, e);
    }
    laps_more(c->k->laps, LAP_VERIFY, w->verifying);
    laps_more(c->k->laps, LAP_CANDIDATES, laps_now() - t - w->verifying);
    return rc;
}

static int run_phase(struct clustering *c, int (*look)(struct worker *w, uint32_t doc, struct err *e),
               int (*take)(struct worker *w, const struct set_pair *similar, struct err *e))
{
    c->look = look;
    c->take = take;
    c->next = c->first;
    return crew_share(c->crew, work, c, c->e);
}

/* Takes doc's matches in order: the first that stays is its survivor. */
static int take_matches(struct clustering *c, uint32_t doc)
{
    struct dedup_fate *fate = &c->fate[doc];
    struct match **list = &c->match[doc - c->first], *m;
    int rc = 0;

    while ((m = *list)) {
        if (fate->survivor == doc && c->fate[m->earlier].survivor == m->earlier)
            *fate = (struct dedup_fate){.survivor = m->earlier, .similarity = m->similarity};
        if (c->listener && rc == 0)
            rc = c->listener->pair(c->listener->arg, m->earlier, doc, m->similarity, c->e);
        *list = m->next;
        free(m);
    }
    return rc;
}

/* True if a bucket of the document may become crowded. */
static bool may_be_crowded(const struct clustering *c, uint32_t doc)
{
    for (int k = 0; k < c->b->bands; k++) {
        const struct bucket *u = bucket_of(c->b, doc, k);
        if (u && u->size >= CROWD)
            return true;
    }
    return false;
}

static int open_index(struct clustering *c)
{
    const struct dedup_block *k = c->k;
    uint64_t hashes = 0;

    c->indexed = calloc(c->b->docs, sizeof *c->indexed);
    if (!c->indexed)
        return err_set(c->e, ERR_NOMEM, "out of memory for %zu documents", c->b->docs);
    for (uint32_t doc = 0; doc < c->b->docs; doc++)
        hashes += may_be_crowded(c, doc) ? k->set[doc].size : 0;
    TRY(prefix_index_new(&c->index, k->set, k->sets, c->threshold, hashes, k->index_memory, c->e));
    for (uint32_t doc = 0; doc < c->b->docs; doc++)
        if (may_be_crowded(c, doc))
            TRY(prefix_index_count(c->index, doc, c->e));
    return 0;
}

/* Puts documents of a crowded bucket into the index, unless they are there. */
static int put_in_index(struct clustering *c, const uint32_t *doc, size_t n)
{
    if (!c->index)
        TRY(open_index(c));
    for (size_t i = 0; i < n; i++) {
        if (c->indexed[doc[i]])
            continue;
        TRY(prefix_of(c->index, doc[i], &c->prefix, c->e));
        TRY(prefix_index_put(c->index, doc[i], &c->prefix, c->e));
        c->indexed[doc[i]] = true;
    }
    return 0;
}

/* In order: who of the batch stays.  Survivors move to the front of their buckets. */
static int decide(struct clustering *c)
{
    for (uint32_t doc = c->first; doc < c->last; doc++) {
        TRY(take_matches(c, doc));
        for (int k = 0; k < c->b->bands; k++) {
            struct bucket *u = bucket_of(c->b, doc, k);
            uint32_t *member = u ? c->b->band[k].member + u->start : NULL;

            if (!u)
                continue;
            u->seen++;
            if (!c->listener && c->fate[doc].survivor != doc)
                continue;
            member[u->kept++] = doc;
            if (u->kept == CROWD)
                TRY(put_in_index(c, member, CROWD));
            else if (crowded(u))
                TRY(put_in_index(c, &doc, 1));
        }
    }
    return 0;
}

/* Holds all documents that are left against what is in the index, which begins again. */
static int sweep(struct clustering *c)
{
    uint32_t last = c->last;

    c->first = last < c->k->fixed ? c->k->fixed : last;
    c->last = (uint32_t)c->b->docs;
    TRY(run_phase(c, look_at_index, take_survivor));
    c->last = last;
    prefix_index_clear(c->index);
    memset(c->indexed, 0, c->b->docs * sizeof *c->indexed);
    for (int k = 0; k < c->b->bands; k++)
        for (size_t i = 0; i < c->b->band[k].buckets; i++)
            if (crowded(&c->b->band[k].bucket[i]))
                c->b->band[k].bucket[i].kept = 0;
    return 0;
}

static int workers_open(struct clustering *c, int jobs, struct err *e)
{
    pthread_mutex_init(&c->lock, NULL);
    c->worker = calloc((size_t)jobs, sizeof *c->worker);
    if (!c->worker)
        return err_set(e, ERR_NOMEM, "out of memory for %d threads", jobs);
    for (int i = 0; i < jobs; i++) {
        c->worker[i].c = c;
        TRY(dedup_compare_new(&c->worker[i].compare, c->k->sets, e));
    }
    return crew_open(&c->crew, jobs, e);
}

static void workers_close(struct clustering *c, int jobs)
{
    crew_close(c->crew);
    for (int i = 0; c->worker && i < jobs; i++) {
        c->t->candidates += c->worker[i].t.candidates;
        c->t->compared += c->worker[i].t.compared;
        dedup_compare_free(c->worker[i].compare);
        prefix_free(&c->worker[i].prefix);
        prefix_found_close(&c->worker[i].found);
    }
    for (int i = 0; i < BATCH; i++)
        for (struct match *m = c->match[i], *next; m; m = next) {
            next = m->next;
            free(m);
        }
    free(c->worker);
    prefix_free(&c->prefix);
    prefix_index_free(c->index);
    free(c->indexed);
    pthread_mutex_destroy(&c->lock);
}

static int verified(struct clustering *c)
{
    const struct dedup_block *k = c->k;
    uint64_t t;

    for (c->first = 0; c->first < c->b->docs; c->first = c->last) {
        bool fixed = c->first < k->fixed;
        uint32_t end = fixed ? k->fixed : (uint32_t)c->b->docs;
        uint32_t batch = c->index && !fixed && !k->fixed_only ? CROWD_BATCH : BATCH;

        c->last = end - c->first < batch ? end : c->first + batch;
        if (!fixed)
            TRY(run_phase(c, look_at_survivors, take_survivor));
        if (!fixed && k->fixed_only)
            continue;
        if (!fixed)
            TRY(run_phase(c, look_in_batch, take_match));
        t = laps_now();
        TRY(decide(c));
        laps_add(k->laps, LAP_DECIDE, t);
        if (c->index && prefix_index_full(c->index))
            TRY(sweep(c));
    }
    return 0;
}

int dedup_cluster(const struct dedup_block *k, double threshold, int jobs, const struct dedup_listener *listener,
                  struct dedup_fate *fate, struct dedup_tally *t, struct err *e)
{
    struct clustering c = {.k = k, .b = k->bands, .threshold = threshold, .listener = listener,
                           .fate = fate, .t = t, .e = e, .least = dedup_bands_least(k->bands, threshold)};
    uint64_t now = laps_now();
    int rc = workers_open(&c, jobs, e);

    if (rc == 0)
        rc = verified(&c);
    workers_close(&c, jobs);
    laps_add(k->laps, LAP_CLUSTERS, now);
    return rc;
}
