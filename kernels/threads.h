/* kernels/threads.h -- the threads of the ops on a CPU: how many, how they wait for each other, and where they run beside
 * other processes.
 *
 * An op is done when its slowest thread is, so one busy neighbour on one processor holds up the threads on all others.
 * Threads that wait without end make it worse: they take the time that the late one needs.  So they spin for a bounded time
 * and then sleep (threads_bound_spin); and where one of them keeps waiting for its processor, all run on the others, which
 * the neighbour then leaves alone (struct crowd).  Neither changes a bit of what is computed.
 */
#ifndef KERNELS_THREADS_H
#define KERNELS_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bounds how long OpenMP's threads spin, oneDNN's too, unless GOMP_SPINCOUNT or OMP_WAIT_POLICY is set.  GNU's OpenMP reads
 * the environment before main, so the program is started once more in this process, with GOMP_SPINCOUNT set; where that
 * fails it goes on as it is.  To be called first in main, with its argv. */
void threads_bound_spin(char **argv);

/* How many threads: jobs where it is > 0; else OMP_NUM_THREADS; else this process's part of the processors, at least 1.
 * alike: processes of this job on this machine that may use the same processors, here: all of them on this machine, this
 * one included. */
int threads_count(int64_t jobs, int alike, int here);

/* ---- beside other processes ---- */

/* What was seen between two looks. */
struct crowd_window {
    double now;     /* seconds */
    double cost;    /* seconds of a unit of work */
    double waited;  /* of the time, by the thread that waited most for its processor */
    double idle;    /* processors' worth of time in which those that the threads have left were idle */
};

/* Whether threads run on all processors or on one less; zeroed is the beginning. */
struct crowd_place {
    bool narrow, trial; /* trial: the next window shows what it has brought */
    double cost;        /* of the last window on all processors; when narrow without trial, of the trial */
    double since;       /* when this place was taken */
    double until, rest; /* no trial before; how long after one that brought nothing */
};

/* Moves p as w says; returns p->narrow. */
bool crowd_judge(struct crowd_place *p, const struct crowd_window *w);

/* Watches over a team of threads and moves it. */
struct crowd;
/* NULL where there is nothing to do: one thread, or a kernel that does not say who waits.  For the thread that starts the ops.
 * *team, the number of threads where any will do, becomes that of the processors in use. */
struct crowd *crowd_open(int threads, int *team);
/* Behind each piece of work of so many units that took so many seconds. */
void crowd_step(struct crowd *c, double seconds, double units);
/* All threads may run everywhere again.  NULL is fine. */
void crowd_close(struct crowd *c);
/* The calling thread, started by one of a crowd, may run where the process could when the crowd was opened. */
void crowd_leave(void);

#ifdef __cplusplus
}
#endif
#endif
