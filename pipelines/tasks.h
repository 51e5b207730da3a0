/* pipelines/tasks.h -- who shares the work of a plan: tasks, and the processes that a task divides itself into.
 *
 * Task K of N takes inputs K, K + N and so on.  A process of a task is a task of its own.
 */
#ifndef PIPELINES_TASKS_H
#define PIPELINES_TASKS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "pipelines/plan_progress.h"

struct tasks {
    int task, n;     /* this is number task of n */
    int jobs;        /* threads of this process */
    pid_t *child;
    int n_children;
    bool is_child;   /* this process is one that the task was divided into, and not its first */
};

/* Who this is: number task of n, or if n is 0 by the environment: a Slurm array, an MPI rank, a process of srun; else the only
 * one.  ERR_ARG: there is no such task. */
int tasks_find(struct tasks *t, int task, int n, struct err *e);
/* Divides this task, which has so many inputs to share with others and so many threads, into `processes` (0: one for every 8
 * threads).  In a child it returns as well.  Makes what tells how far they all are. */
int tasks_divide(struct tasks *t, int inputs, int processes, int jobs, struct plan_progress **progress, struct err *e);
/* Fails if a process of ours has; waits until they have ended if wished. */
int tasks_check(struct tasks *t, bool wait, struct err *e);
void tasks_free(struct tasks *t);
#endif
