#include "tests/streams.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct item {
    struct item *next;
    void (*run)(void *);
    void *arg;
};

struct stream {
    struct test_stream shown; /* first */
    pthread_t thread;
    struct item *first, **last;
    bool ending;
    uint32_t delay;
};

struct test_event {
    uint64_t recorded, come;
};

/* Of all streams and events. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

static void *work(void *arg)
{
    struct stream *s = arg;

    pthread_mutex_lock(&lock);
    for (;;) {
        struct item *x = s->first;

        if (!x && s->ending)
            break;
        if (!x) {
            pthread_cond_wait(&moved, &lock);
            continue;
        }
        s->first = x->next;
        if (!s->first)
            s->last = &s->first;
        pthread_mutex_unlock(&lock);
        s->delay = s->delay * 1664525 + 1013904223;
        nanosleep(&(struct timespec){.tv_nsec = s->delay >> 17}, NULL); /* 16 us on average */
        x->run(x->arg);
        free(x);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void push(struct test_stream *to, void (*run)(void *), void *arg)
{
    struct stream *s = (struct stream *)to;
    struct item *x = malloc(sizeof *x);

    if (!x)
        abort();
    *x = (struct item){.run = run, .arg = arg};
    pthread_mutex_lock(&lock);
    *s->last = x;
    s->last = &x->next;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
}

struct test_stream *test_stream_new(void)
{
    static uint32_t seed;
    struct stream *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->shown.push = push;
    s->last = &s->first;
    s->delay = seed += 12345;
    if (pthread_create(&s->thread, NULL, work, s) != 0)
        abort();
    return &s->shown;
}

void test_stream_free(struct test_stream *t)
{
    struct stream *s = (struct stream *)t;

    if (!s)
        return;
    pthread_mutex_lock(&lock);
    s->ending = true;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
    pthread_join(s->thread, NULL);
    free(s);
}

struct test_event *test_event_new(void)
{
    return calloc(1, sizeof(struct test_event));
}

void test_event_free(struct test_event *ev)
{
    free(ev);
}

struct mark {
    struct test_event *ev;
    uint64_t number;
};

static struct mark *mark_of(struct test_event *ev, uint64_t number)
{
    struct mark *m = malloc(sizeof *m);

    if (!m)
        abort();
    *m = (struct mark){ev, number};
    return m;
}

static void come(void *arg)
{
    struct mark *m = arg;

    pthread_mutex_lock(&lock);
    if (m->ev->come < m->number)
        m->ev->come = m->number;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
    free(m);
}

static void await(void *arg)
{
    struct mark *m = arg;

    pthread_mutex_lock(&lock);
    while (m->ev->come < m->number)
        pthread_cond_wait(&moved, &lock);
    pthread_mutex_unlock(&lock);
    free(m);
}

static void in_stream(struct test_stream *s, void (*run)(void *), void *arg)
{
    if (s)
        s->push(s, run, arg);
    else
        run(arg);
}

void test_event_record(struct test_event *ev, struct test_stream *s)
{
    uint64_t number;

    pthread_mutex_lock(&lock);
    number = ++ev->recorded;
    pthread_mutex_unlock(&lock);
    in_stream(s, come, mark_of(ev, number));
}

void test_event_after(struct test_event *ev, struct test_stream *s)
{
    uint64_t number;

    pthread_mutex_lock(&lock);
    number = ev->recorded;
    pthread_mutex_unlock(&lock);
    in_stream(s, await, mark_of(ev, number));
}

bool test_event_query(struct test_event *ev)
{
    bool all;

    pthread_mutex_lock(&lock);
    all = ev->come == ev->recorded;
    pthread_mutex_unlock(&lock);
    return all;
}
