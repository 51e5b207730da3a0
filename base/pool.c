#include "base/pool.h"

#include <errno.h>
#include <stdlib.h>

/* ---- threads that are kept ---- */

struct crew {
    pthread_mutex_t lock;
    pthread_cond_t go, done;
    void (*fn)(void *, int);
    void *arg;
    uint64_t run;    /* how many there were */
    int n, working;  /* threads beside the caller; of them, those that are not done */
    int why;         /* errno of one that could not be started, or 0 */
    bool over;
    struct member {
        struct crew *crew;
        pthread_t id;
        int thread;
    } *member;
};

static void *serve(void *p)
{
    const struct member *m = p;
    struct crew *c = m->crew;
    uint64_t run = 0;

    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->run == run && !c->over)
            pthread_cond_wait(&c->go, &c->lock);
        if (c->over)
            break;
        run = c->run;
        pthread_mutex_unlock(&c->lock);
        c->fn(c->arg, m->thread);
        pthread_mutex_lock(&c->lock);
        if (--c->working == 0)
            pthread_cond_signal(&c->done);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

int crew_open(struct crew **out, int n, struct err *e)
{
    struct crew *c = calloc(1, sizeof *c);

    *out = NULL;
    if (c)
        c->member = calloc((size_t)(n > 0 ? n : 1), sizeof *c->member);
    if (!c || !c->member) {
        free(c);
        return err_set(e, ERR_NOMEM, "out of memory for %d threads", n);
    }
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->go, NULL);
    pthread_cond_init(&c->done, NULL);
    for (; c->n + 1 < n; c->n++) {
        struct member *m = &c->member[c->n];

        *m = (struct member){.crew = c, .thread = c->n + 1};
        c->why = pthread_create(&m->id, NULL, serve, m);
        if (c->why)
            break;
    }
    *out = c;
    return 0;
}

static void run_all(struct crew *c, void (*fn)(void *arg, int thread), void *arg)
{
    pthread_mutex_lock(&c->lock);
    c->fn = fn;
    c->arg = arg;
    c->working = c->n;
    c->run++;
    pthread_cond_broadcast(&c->go);
    pthread_mutex_unlock(&c->lock);
    fn(arg, 0);
    pthread_mutex_lock(&c->lock);
    while (c->working)
        pthread_cond_wait(&c->done, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void crew_close(struct crew *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->over = true;
    pthread_cond_broadcast(&c->go);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->n; i++)
        pthread_join(c->member[i].id, NULL);
    pthread_cond_destroy(&c->go);
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->lock);
    free(c->member);
    free(c);
}

/* ---- work that can fail ---- */

/* A run of which the first failure counts. */
struct sharing {
    pool_work *fn;
    void *arg;
    struct err *e;
    int failed;
};

static void share(void *p, int thread)
{
    struct sharing *s = p;
    struct err e = {0};
    int rc = s->fn(s->arg, thread, &e), none = 0;

    if (rc < 0 && __atomic_compare_exchange_n(&s->failed, &none, rc, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) && s->e)
        *s->e = e;
}

int crew_share(struct crew *c, pool_work *fn, void *arg, struct err *e)
{
    struct sharing s = {fn, arg, e, 0};

    run_all(c, share, &s);
    return s.failed;
}

int pool_run(int n, void (*fn)(void *arg, int thread), void *arg, struct err *e)
{
    struct crew *c;
    int rc = crew_open(&c, n, e);

    if (rc < 0) {
        fn(arg, 0);
        return rc;
    }
    run_all(c, fn, arg);
    errno = c->why;
    if (errno)
        rc = err_sys(e, ERR_NOMEM, "cannot start thread %d of %d", c->n + 2, n);
    crew_close(c);
    return rc;
}

int pool_share(int n, pool_work *fn, void *arg, struct err *e)
{
    struct sharing s = {fn, arg, e, 0};

    pool_run(n, share, &s, NULL);
    return s.failed;
}

/* ---- gates ---- */

void gate_init(struct gate *g)
{
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->turn, NULL);
    g->next = 0;
    g->stopped = false;
}

void gate_destroy(struct gate *g)
{
    pthread_cond_destroy(&g->turn);
    pthread_mutex_destroy(&g->lock);
}

int gate_enter(struct gate *g, uint64_t ticket)
{
    int rc;

    pthread_mutex_lock(&g->lock);
    while (g->next != ticket && !g->stopped)
        pthread_cond_wait(&g->turn, &g->lock);
    rc = g->stopped ? ERR_STOPPED : 0;
    pthread_mutex_unlock(&g->lock);
    return rc;
}

void gate_leave(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->next++;
    pthread_cond_broadcast(&g->turn);
    pthread_mutex_unlock(&g->lock);
}

void gate_stop(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->stopped = true;
    pthread_cond_broadcast(&g->turn);
    pthread_mutex_unlock(&g->lock);
}

int belt_init(struct belt *b, size_t n, struct err *e)
{
    *b = (struct belt){.n = n, .empty = calloc(2 * n, sizeof *b->empty)};
    if (!b->empty)
        return err_set(e, ERR_NOMEM, "out of memory for %zu blocks", n);
    b->full = b->empty + n;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->room, NULL);
    return 0;
}

void belt_add(struct belt *b, void *thing)
{
    b->empty[b->n_empty++] = thing;
}

void belt_destroy(struct belt *b)
{
    pthread_cond_destroy(&b->room);
    pthread_mutex_destroy(&b->lock);
    free(b->empty);
}

int belt_take(struct belt *b, void **thing)
{
    int rc;

    pthread_mutex_lock(&b->lock);
    while (!b->n_empty && !b->stopped)
        pthread_cond_wait(&b->room, &b->lock);
    rc = b->stopped ? ERR_STOPPED : 0;
    if (rc == 0)
        *thing = b->empty[--b->n_empty];
    pthread_mutex_unlock(&b->lock);
    return rc;
}

int belt_put(struct belt *b, uint64_t i, void *thing, int (*use)(void *arg, void *thing, struct err *e), void *arg,
             struct err *e)
{
    bool mine;
    int rc = 0;

    pthread_mutex_lock(&b->lock);
    b->full[i % b->n] = thing;
    mine = !b->busy;
    b->busy = true;
    while (mine && !b->stopped && rc == 0 && (thing = b->full[b->due % b->n])) {
        pthread_mutex_unlock(&b->lock);
        rc = use(arg, thing, e);
        pthread_mutex_lock(&b->lock);
        b->full[b->due++ % b->n] = NULL;
        belt_add(b, thing);
        b->stopped = b->stopped || rc < 0;
        pthread_cond_signal(&b->room);
    }
    b->busy = b->busy && !mine;
    if (b->stopped) {
        pthread_cond_broadcast(&b->room);
        rc = rc < 0 ? rc : ERR_STOPPED;
    }
    pthread_mutex_unlock(&b->lock);
    return rc;
}

void belt_stop(struct belt *b)
{
    pthread_mutex_lock(&b->lock);
    b->stopped = true;
    pthread_cond_broadcast(&b->room);
    pthread_mutex_unlock(&b->lock);
}
