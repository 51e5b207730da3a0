#include "curate/dedup/dedup_clusters.h"

#include <stdlib.h>

#include "base/pool.h"

/* Documents are taken a batch at a time: first each is compared, in parallel, with the
 * survivors of earlier batches; then those left with one another; then, in order, it is
 * decided which of these stay.  That gives what one document at a time would give.
 * A thread takes one document of it after the other, or for a GPU its share at once. */
enum { BATCH = 512, PAIRS = 4096 };

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
    uint32_t step;        /* documents that a thread takes */
    int (*look)(struct worker *w, uint32_t doc, struct err *e);
    int (*take)(struct worker *w, const struct set_pair *similar, struct err *e);
    struct match *match[BATCH]; /* ascending */
    uint32_t next;              /* document to be taken by a thread */
    struct worker *worker;
    pthread_mutex_t gpu;  /* one thread at a time has it */
    pthread_mutex_t lock;
    struct err *e;
    int failed;
};

struct worker {
    struct clustering *c;
    struct dedup_compare *compare;
    struct dedup_tally t;
    struct set_pair pair[PAIRS]; /* a document and an earlier one, to be compared */
    size_t n;
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
    int rc;

    if (c->k->gpu)
        pthread_mutex_lock(&c->gpu);
    rc = dedup_compare_run(w->compare, c->k->set, c->threshold, w->pair, w->n, e);
    if (c->k->gpu)
        pthread_mutex_unlock(&c->gpu);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < w->n; i++)
        if (w->pair[i].similarity >= c->threshold)
            TRY(c->take(w, &w->pair[i], e));
    w->n = 0;
    return 0;
}

/* Two candidates are to be compared, unless an earlier band had them or their sketches say enough. */
static int candidates(struct worker *w, uint32_t doc, uint32_t other, int k, struct err *e)
{
    const struct clustering *c = w->c;

    if (!dedup_bands_first(c->b, doc, other, k))
        return 0;
    w->t.candidates++;
    if (dedup_bands_agree(c->b, doc, other) < c->least)
        return 0;
    w->t.compared++;
    w->pair[w->n++] = (struct set_pair){.a = doc, .b = other};
    return w->n == PAIRS ? compare(w, e) : 0;
}

/* Looks at the survivors of earlier batches. */
static int look_at_survivors(struct worker *w, uint32_t doc, struct err *e)
{
    const struct clustering *c = w->c;

    for (int k = 0; k < c->b->bands; k++) {
        const struct bucket *u = bucket_of(c->b, doc, k);
        for (uint32_t i = 0; u && i < u->kept; i++)
            TRY(candidates(w, doc, c->b->band[k].member[u->start + i], k, e));
    }
    return 0;
}

/* The first survivor that a document is like is its own. */
static int take_survivor(struct worker *w, const struct set_pair *p, struct err *e)
{
    struct dedup_fate *fate = &w->c->fate[p->a];

    (void)e;
    if (p->b < fate->survivor)
        *fate = (struct dedup_fate){.survivor = p->b, .similarity = (float)p->similarity};
    return 0;
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

    if (c->fate[doc].survivor != doc)
        return 0;
    for (int k = 0; k < c->b->bands; k++) {
        const struct bucket *u = bucket_of(c->b, doc, k);
        for (uint32_t i = u ? u->seen : 0; u && i < u->size; i++) {
            uint32_t other = c->b->band[k].member[u->start + i];
            if (other >= doc)
                break;
            if (c->fate[other].survivor == other)
                TRY(candidates(w, doc, other, k, e));
        }
    }
    return 0;
}

/* For a listener: all earlier ones, whatever became of them. */
static int look_at_all(struct worker *w, uint32_t doc, struct err *e)
{
    struct clustering *c = w->c;
    uint32_t end = c->k->fixed_only ? c->k->fixed : doc;

    for (int k = 0; k < c->b->bands; k++) {
        const struct bucket *u = bucket_of(c->b, doc, k);
        for (uint32_t i = 0; u && i < u->size && c->b->band[k].member[u->start + i] < end; i++)
            TRY(candidates(w, doc, c->b->band[k].member[u->start + i], k, e));
    }
    return 0;
}

static void work(void *arg, int thread)
{
    struct clustering *c = arg;
    struct worker *w = &c->worker[thread];
    struct err e = {0};
    uint32_t doc, end;
    int rc = 0;

    w->n = 0;
    while (rc == 0 && (doc = __atomic_fetch_add(&c->next, c->step, __ATOMIC_RELAXED)) < c->last) {
        end = c->last - doc < c->step ? c->last : doc + c->step;
        for (; doc < end && rc == 0; doc++)
            rc = c->look(w, doc, &e);
        if (rc == 0)
            rc = compare(w, &e);
    }
    if (rc < 0) {
        pthread_mutex_lock(&c->lock);
        if (!c->failed)
            *c->e = e;
        c->failed = rc;
        pthread_mutex_unlock(&c->lock);
    }
}

static int run_phase(struct clustering *c, int jobs, int (*look)(struct worker *w, uint32_t doc, struct err *e),
                     int (*take)(struct worker *w, const struct set_pair *similar, struct err *e))
{
    c->look = look;
    c->take = take;
    c->next = c->first;
    pool_run(jobs, work, c, NULL);
    return c->failed;
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

/* In order: who of the batch stays.  Survivors move to the front of their buckets. */
static int decide(struct clustering *c)
{
    for (uint32_t doc = c->first; doc < c->last; doc++) {
        TRY(take_matches(c, doc));
        for (int k = 0; k < c->b->bands && !c->listener; k++) {
            struct bucket *u = bucket_of(c->b, doc, k);
            if (u)
                u->seen++;
            if (u && c->fate[doc].survivor == doc)
                c->b->band[k].member[u->start + u->kept++] = doc;
        }
    }
    return 0;
}

static int workers_open(struct clustering *c, int jobs, struct err *e)
{
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->gpu, NULL);
    c->worker = calloc((size_t)jobs, sizeof *c->worker);
    if (!c->worker)
        return err_set(e, ERR_NOMEM, "out of memory for %d threads", jobs);
    for (int i = 0; i < jobs; i++) {
        c->worker[i].c = c;
        TRY(dedup_compare_new(&c->worker[i].compare, c->k->sets, c->k->gpu, c->k->hashes, e));
    }
    return 0;
}

static void workers_close(struct clustering *c, int jobs)
{
    for (int i = 0; c->worker && i < jobs; i++) {
        c->t->candidates += c->worker[i].t.candidates;
        c->t->compared += c->worker[i].t.compared;
        dedup_compare_free(c->worker[i].compare);
    }
    for (int i = 0; i < BATCH; i++)
        for (struct match *m = c->match[i], *next; m; m = next) {
            next = m->next;
            free(m);
        }
    free(c->worker);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->gpu);
}

static int verified(struct clustering *c, int jobs)
{
    const struct dedup_block *k = c->k;

    for (c->first = 0; c->first < c->b->docs; c->first = c->last) {
        uint32_t end = c->first < k->fixed ? k->fixed : (uint32_t)c->b->docs;

        c->last = end - c->first < BATCH ? end : c->first + BATCH;
        if (c->first >= k->fixed && c->listener) {
            TRY(run_phase(c, jobs, look_at_all, take_match));
        } else if (c->first >= k->fixed) {
            TRY(run_phase(c, jobs, look_at_survivors, take_survivor));
            if (k->fixed_only)
                continue;
            TRY(run_phase(c, jobs, look_in_batch, take_match));
        }
        TRY(decide(c));
    }
    return 0;
}

int dedup_cluster(const struct dedup_block *k, double threshold, int jobs, const struct dedup_listener *listener,
                  struct dedup_fate *fate, struct dedup_tally *t, struct err *e)
{
    struct clustering c = {.k = k, .b = k->bands, .threshold = threshold, .listener = listener,
                           .fate = fate, .t = t, .e = e, .least = dedup_bands_least(k->bands, threshold),
                           .step = k->gpu ? (uint32_t)((BATCH + jobs - 1) / jobs) : 1};
    int rc = workers_open(&c, jobs, e);

    if (rc == 0)
        rc = verified(&c, jobs);
    workers_close(&c, jobs);
    return rc;
}
