/* pipelines/work_lock.h -- a work folder is worked on by one run at a time: each task of a plan holds a lock there.
 *
 * The lock of task K of N is the file lock.K.N in the work folder, locked as flock(2) does it (on NFS between hosts too)
 * for as long as the task or a process that it was divided into lives; a killed run leaves the file, but no lock.  In the
 * file stand host and process.  Different tasks of one division go together; the same task twice, or tasks of two
 * divisions, would write the same files.
 */
#ifndef PIPELINES_WORK_LOCK_H
#define PIPELINES_WORK_LOCK_H

#include <stdbool.h>

#include "base/err.h"

struct work_lock {
    int fd; /* -1: none is held */
    char path[4096];
};

/* Takes the lock of this task in the folder, which is there.  ERR_IO: another run holds it, or one of another division,
 * which is named, and the hint; without a hint (NULL) it waits until that has ended.  On a file system without locks it warns
 * and goes on. */
int work_lock_take(struct work_lock *l, const char *folder, int task, int tasks, const char *hint, struct err *e);
/* The same for the only task, without waiting.  1: taken; 0: another process holds it, or has just removed the folder. */
int work_lock_try(struct work_lock *l, const char *folder, struct err *e);
/* Removes the lock files that killed tasks left. */
void work_lock_sweep(const char *folder);
/* Gives the lock back.  A process that this one was divided into only closes its own share of it (drop). */
void work_lock_release(struct work_lock *l);
void work_lock_drop(struct work_lock *l);
/* Whether a file of the work folder is a lock. */
bool work_lock_is(const char *name);
#endif
