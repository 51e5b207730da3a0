/* train/plan_check.h -- a run held against its plan (train/plan.h): memory that was allocated, time that steps took. */
#ifndef TRAIN_PLAN_CHECK_H
#define TRAIN_PLAN_CHECK_H

#include "base/mem.h"
#include "train/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Steps of a run, added up; the first one, in which plans of products are made, only as long as it is the only one.
 * Zeroed is none. */
struct plan_steps {
    int64_t seen;
    double seconds, phase[PHASES]; /* sums */
};
void plan_steps_add(struct plan_steps *p, const struct train_step *s);
/* How many are in the sums. */
static inline int64_t plan_steps_n(const struct plan_steps *p)
{
    return p->seen > 1 ? p->seen - 1 : p->seen;
}

/* Bytes by enum memory_kind, those in the host's memory too. */
void plan_memory_kinds(const struct train_memory *m, size_t kind[MEMORY_KINDS]);

/* All ranks of t call it while t is open; out of the first gets a line: what the rank that has most has allocated, by
 * kind, and whether on every rank each kind is what the plan says, to the byte (of the copy for saving: at most). */
int plan_check_memory(struct trainer *t, struct buf *out, struct err *e);

/* All ranks call it; out of the first gets two lines: seconds of a step and of its phases, by the plan for a machine as
 * measured, and as steps took on that rank. */
int plan_check_time(struct trainer *t, const struct plan_steps *took, struct buf *out, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
