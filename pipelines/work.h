/* pipelines/work.h -- the work folder of a plan: what lies there, and whose it is.
 *
 * A part is one input's way through one pass.  Its files are PASS.INPUT.ENDING: they only grow until PASS.INPUT.done says that
 * the part is through.  docs/curate.md has the table.  Files of a pass whose documents are kept lie in the folder `keep` of the
 * plan in the same way, with the number of their branch for that of the pass.
 */
#ifndef PIPELINES_WORK_H
#define PIPELINES_WORK_H

#include "pipelines/plan.h"
#include "pipelines/work_lock.h"

enum work_file { WORK_NOTES, WORK_REJECTS, WORK_STATE, WORK_ENDED, WORK_DONE, WORK_ANSWERS };
/* The name of a part's file, into path; and of its documents: of what it gives, number `out`. */
void work_part(const struct plan *p, int pass, int input, enum work_file f, char path[4096]);
void work_docs(const struct plan *p, int pass, int input, int out, char path[4096]);
/* Names number k of the files of documents that a part reads.  1; 0: there are not so many (as in a pass that reads the
 * inputs). */
int work_reads(const struct plan *p, const struct plan_pass *pass, int input, int k, char path[4096]);
/* Whether these are kept when they have been read. */
bool work_reads_kept(const struct plan_pass *pass);
/* The file that says that the last stage of a pass has decided on a group of inputs, with its own counts. */
void work_decided(const struct plan *p, const struct plan_pass *pass, int group, char path[4096]);
/* What the names of the files begin with in which so many ranks tell one another what the last stage of a pass has to know. */
void work_messages(const struct plan *p, const struct plan_pass *pass, int ranks, char path[4096]);
/* The file that says that all is done: the statistics. */
void work_finished(const struct plan *p, char path[4096]);
bool work_is_finished(const struct plan *p);

/* The bytes that a part reads: of its input as it is stored, or of documents that were kept, 0 once it is done. */
double work_bytes(const struct plan *p, const struct plan_pass *pass, int input);

/* What claims the folder. */
struct work_claim {
    int task, tasks;
    bool wait;  /* for another run of this task, which is else refused */
    bool again; /* forget what a former run left */
};
/* Held while a run is at work: of the work folder, and of that of kept documents. */
struct work_locks {
    struct work_lock work, keep;
};
/* Makes the work folder ours, or finds that it is, and likewise that of documents that are kept, and makes those of the outputs.
 * ERR_ARG: it belongs to another plan, or an input at an address has changed, which is told; ERR_IO: another run is at work in it
 * (pipelines/work_lock.h); errors as of http_open. */
int work_claim(struct plan *p, const struct work_claim *c, struct work_locks *locks, struct err *e);
/* Gives back what is held; a process that this one was divided into: its own share. */
void work_leave(struct work_locks *locks, bool is_child);
/* Removes what a plan that is done no longer needs there; what cannot be removed stays, with a warning. */
void work_tidy(const struct plan *p);
#endif
