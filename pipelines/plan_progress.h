/* pipelines/plan_progress.h -- how far a task's share of a plan is: all passes and inputs in one.
 *
 * A task may be divided into processes: each says here, in memory that they share, how far its own inputs are, and the
 * first of them shows the sum.  What counts is bytes that are read: of the inputs as they are stored, and in later passes
 * of what was kept, which for the passes to come is guessed from what is kept in this one.
 */
#ifndef PIPELINES_PLAN_PROGRESS_H
#define PIPELINES_PLAN_PROGRESS_H

#include "curate/stream/pass.h"

struct plan_progress;
/* Before the task is divided, into at most n processes.  ERR_NOMEM.  Release with plan_progress_close. */
int plan_progress_open(struct plan_progress **out, int n, struct err *e);
void plan_progress_close(struct plan_progress *p);
/* In a process that the task was divided into: its number, from 1; it shows nothing itself. */
void plan_progress_join(struct plan_progress *p, int process);

/* This process begins pass number `pass` of `passes`, in which it is to read `total` bytes; of these `done` were read
 * before it was started.  total 0: not known, as of addresses. */
void plan_progress_pass(struct plan_progress *p, int pass, int passes, double done, double total);
/* It begins with an input of that pass, of `size` bytes. */
void plan_progress_input(struct plan_progress *p, const char *name, double size);
/* The pass stands here within the input, and has written so many bytes for the next pass. */
void plan_progress_tell(struct plan_progress *p, const struct pass_now *now, double kept);
/* The input is through; what was counted and written, in all. */
void plan_progress_input_end(struct plan_progress *p, const struct flows *flows, double kept);
/* Shows how far all are while this process does something else, such as "deciding". */
void plan_progress_wait(struct plan_progress *p, const char *what);
#endif
