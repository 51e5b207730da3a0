#include "base/pool.h"

#include <errno.h>
#include <stdlib.h>

struct job {
    void (*fn)(void *, int);
    void *arg;
    int thread;
};

static void *start(void *p)
{
    struct job *j = p;
    j->fn(j->arg, j->thread);
    return NULL;
}

int pool_run(int n, void (*fn)(void *arg, int thread), void *arg, struct err *e)
{
    pthread_t *ids = calloc((size_t)(n > 0 ? n : 1), sizeof *ids);
    struct job *jobs = calloc((size_t)(n > 0 ? n : 1), sizeof *jobs);
    int started = 1, rc = 0;

    if (!ids || !jobs) {
        free(ids);
        free(jobs);
        fn(arg, 0);
        return err_set(e, ERR_NOMEM, "out of memory for %d threads", n);
    }
    for (; started < n; started++) {
        jobs[started] = (struct job){fn, arg, started};
        errno = pthread_create(&ids[started], NULL, start, &jobs[started]);
        if (errno) {
            rc = err_sys(e, ERR_NOMEM, "cannot start thread %d of %d", started + 1, n);
            break;
        }
    }
    fn(arg, 0);
    for (int i = 1; i < started; i++)
        pthread_join(ids[i], NULL);
    free(ids);
    free(jobs);
    return rc;
}

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
