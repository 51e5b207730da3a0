/* comm/apart.h -- a call that may never return, in a thread of its own. */
#ifndef COMM_APART_H
#define COMM_APART_H

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* run(arg), which returns 0 or more: its result, or -1 if it has not returned after `seconds`; then the thread, and arg, stay
 * in use. */
int run_apart(int (*run)(void *arg), void *arg, double seconds);

/* The time of day in so many seconds, for pthread_cond_timedwait. */
struct timespec in_seconds(double seconds);

#ifdef __cplusplus
}
#endif
#endif
