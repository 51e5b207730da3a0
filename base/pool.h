/* base/pool.h -- threads that share work and still answer in order.
 *
 * The pattern of every streaming tool here: N threads each loop over
 *     ticket = gate_ticket(); gate_enter(read_gate, ticket): take the next block;
 *     gate_leave(); work on the block (in parallel);
 *     gate_enter(write_gate, ticket): write it; gate_leave().
 * A gate lets tickets 0, 1, 2 ... through one at a time in that order, so what
 * happens inside is sequential and in input order for any number of threads, and no
 * more than N blocks are ever in flight.  A thread must pass the gates in the same
 * order for each ticket; then the lowest ticket can always go on.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs fn(arg, thread) for thread = 0 .. n-1, the caller being thread 0; returns
 * when all have.  ERR_NOMEM when a thread cannot be started: then fn was run by
 * fewer threads, at least by the caller, and the result still stands. */
int pool_run(int n, void (*fn)(void *arg, int thread), void *arg, struct err *e);

/* The same of work that can fail, where fewer threads do as well: 0, or the first failure, which e has too (NULL: nobody asks).
 * The others go on. */
typedef int pool_work(void *arg, int thread, struct err *e);
int pool_share(int n, pool_work *fn, void *arg, struct err *e);

/* pool_share for many short runs, by threads that are kept: */
struct crew;
/* n threads, the caller being one, or fewer where they cannot be started.  ERR_NOMEM. */
int crew_open(struct crew **c, int n, struct err *e);
int crew_share(struct crew *c, pool_work *fn, void *arg, struct err *e);
void crew_close(struct crew *c); /* NULL is fine */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t turn;
    uint64_t next;
    bool stopped;
};

/* Open for ticket 0.  Destroy it when nobody waits any more. */
void gate_init(struct gate *g);
void gate_destroy(struct gate *g);
/* Waits until ticket is next.  0, or ERR_STOPPED once gate_stop() was called. */
int gate_enter(struct gate *g, uint64_t ticket);
/* Lets ticket + 1 in. */
void gate_leave(struct gate *g);
/* Sends everybody who waits or will wait away with ERR_STOPPED. */
void gate_stop(struct gate *g);

/* A belt brings things that many threads make to one place in order, and nobody waits for a slower one:
 *     belt_take(): an empty thing; fill it; belt_put(): it is used, or lies there until those before it have been.
 * Whoever brings the one that is due uses it and those that lie behind it.  Uses come in the order of numbers 0, 1, 2 ...,
 * one at a time; there are never more things than belt_init() was given. */
struct belt {
    pthread_mutex_t lock;
    pthread_cond_t room;
    void **empty, **full; /* full: by number modulo n */
    size_t n, n_empty;
    uint64_t due;
    bool busy; /* a thread uses what is due */
    bool stopped;
};

/* With n things that the caller keeps and frees.  ERR_NOMEM. */
int belt_init(struct belt *b, size_t n, struct err *e);
void belt_add(struct belt *b, void *thing); /* n times, before the threads start */
void belt_destroy(struct belt *b);
/* Waits until there is an empty thing, the one that was used last.  0, or ERR_STOPPED. */
int belt_take(struct belt *b, void **thing);
/* Thing is number i; numbers are given to things after they were taken, in order, without gaps.  What use returns
 * if it fails: then the belt has stopped, and so it has for ERR_STOPPED. */
int belt_put(struct belt *b, uint64_t i, void *thing, int (*use)(void *arg, void *thing, struct err *e), void *arg,
             struct err *e);
/* Sends everybody away with ERR_STOPPED; what lies there is not used any more. */
void belt_stop(struct belt *b);

#ifdef __cplusplus
}
#endif
#endif
