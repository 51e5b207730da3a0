/* tests/jobs.h -- a list of jobs in a process of their own, for the programs that run on a GPU: one that fails, ends the process
 * or does not end leaves the others alone.
 *
 * After an error in a kernel the GPU is lost to its process (CUDA: a sticky error), so behind such a job a new process goes on
 * with the next.  Jobs print what they find as they go.
 */
#ifndef TESTS_JOBS_H
#define TESTS_JOBS_H

#include "kernels/device.h"

struct job_set {
    int n;
    const char *(*name)(int i);
    /* In the process, before its first job; < 0: nothing can be done, which it has said. */
    int (*open)(void);
    /* Does job i: 0, or 1 if it failed, which it has said. */
    int (*run)(int i);
    struct device **dev; /* what open opened: looked at after a job that failed */
    double limit;        /* seconds for open, and for each job */
    double budget;       /* seconds for all; what is not done by then is left out.  0: as long as it takes */
};
struct jobs_result {
    int passed, failed, left;
};

/* Prints a line "not ok - NAME: ..." for a job that did not come to its end.  ERR_DEVICE: open failed. */
int jobs_run(const struct job_set *j, struct jobs_result *r);
/* Seconds by a clock that only goes forward. */
double jobs_clock(void);

#endif
