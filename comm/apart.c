#include "comm/apart.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct apart {
    pthread_mutex_t lock;
    pthread_cond_t over;
    int (*run)(void *arg);
    void *arg;
    int rc;
    bool done, left; /* left: nobody waits any more */
};

static void *do_run(void *p)
{
    struct apart *x = p;
    int rc = x->run(x->arg);
    bool left;

    pthread_mutex_lock(&x->lock);
    x->rc = rc;
    x->done = true;
    left = x->left;
    pthread_cond_signal(&x->over);
    pthread_mutex_unlock(&x->lock);
    if (left)
        free(x);
    return NULL;
}

struct timespec in_seconds(double seconds)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += (time_t)seconds;
    t.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

int run_apart(int (*run)(void *), void *arg, double seconds)
{
    struct timespec until = in_seconds(seconds);
    struct apart *x = calloc(1, sizeof *x);
    pthread_t thread;
    int rc;

    if (!x)
        return run(arg);
    x->run = run;
    x->arg = arg;
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->over, NULL);
    if (pthread_create(&thread, NULL, do_run, x) != 0) {
        free(x);
        return run(arg);
    }
    pthread_mutex_lock(&x->lock);
    while (!x->done && pthread_cond_timedwait(&x->over, &x->lock, &until) != ETIMEDOUT)
        ;
    rc = x->done ? x->rc : -1;
    x->left = !x->done;
    pthread_mutex_unlock(&x->lock);
    if (rc == -1) {
        pthread_detach(thread);
        return -1;
    }
    pthread_join(thread, NULL);
    free(x);
    return rc;
}
