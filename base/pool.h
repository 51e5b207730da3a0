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

/* The number of processors this process may use (its affinity mask), at least 1. */
int pool_cpus(void);

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

#ifdef __cplusplus
}
#endif
#endif
