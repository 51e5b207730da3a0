/* pipelines/curate.h -- runs a plan: the whole graph, resumable, by one process or many.
 *
 * Each input goes through each pass by itself (pipelines/part.h); which process takes it makes no difference to what comes out.
 * Where the last stage of a pass must know other documents it decides when all are through (pipelines/decide.h).  What can be
 * done at a time follows from the files that are there: processes meet in the work folder and nowhere else, so tasks may run on
 * any machines that share it, at once or one after the other.
 */
#ifndef PIPELINES_CURATE_H
#define PIPELINES_CURATE_H

#include "pipelines/plan.h"

struct curate_conf {
    struct plan *plan;
    int jobs;            /* threads in all of this task */
    int64_t checkpoint;  /* bytes of input after which a part can go on */
    int64_t processes;   /* that this task divides itself into; 0: as many as readers are needed */
    int64_t task, tasks; /* this is number task of tasks; tasks 0: by the environment */
    bool wait;           /* for other tasks; false: come back when they have gone on */
    bool wait_given;     /* it was asked for: also for another run of this task, which is else refused */
    bool again;          /* forget what a former run left */
    struct comm *ranks;  /* the tasks are its ranks, and decide together; NULL: task and tasks say who this is */
};
/* Defaults: 256 MiB between checkpoints, tasks by the environment, waiting. */
void curate_conf_init(struct curate_conf *c);
#define CURATE_OPTS(c)                                                                                        \
    OPT_SIZE(0, "checkpoint", &(c).checkpoint, 1, INT64_MAX / 2,                                              \
             "input bytes of which a killed run loses at most so many"),                                      \
    OPT_INT(0, "processes", &(c).processes, 0, 4096, "divide the threads among N processes; 0: one for 8 threads"), \
    OPT_INT(0, "task", &(c).task, 0, 1000000, "with --tasks: the number of this task, from 0"),              \
    OPT_INT(0, "tasks", &(c).tasks, 0, 1000000, "tasks that share the work; 0: by Slurm or MPI, else 1"),     \
    {.type = OPT_TYPE_FLAG, .name = "wait", .value = &(c).wait, .given = &(c).wait_given,                     \
     .help = "wait for other tasks between passes; given: for another run of this plan too"},                 \
    OPT_FLAG(0, "again", &(c).again, "forget what a former run has done, but for documents that were kept")

/* An input with bad records. */
struct curate_bad {
    const char *input; /* of the plan */
    uint64_t bad;
};
struct curate_result {
    bool finished; /* everything is done; else other tasks have work left */
    bool already;  /* and was so before */
    bool part;     /* this is a process that the task was divided into: the first one speaks for all */
    uint64_t docs_in, docs_out, dropped, bad; /* once finished; bad: also if it was so before */
    struct curate_bad *bad_input; /* once finished, in the order of the plan; release with free */
    int n_bad_inputs;
    double seconds;
};

/* Runs a settled plan.  Errors as plan_open_stages and work_claim (pipelines/work.h). */
int curate_run(const struct curate_conf *c, struct curate_result *r, struct err *e);
#endif
