/* pipelines/plan_keep.h -- what a plan keeps: the documents that stand before the first stage that compares them with others.
 *
 * What stands before looks at each document by itself, so without some of the inputs' documents the others would be the same
 * there.  So pages can be taken out of the documents that were kept, and the rest of the plan gives what it would give of
 * inputs without them; and a plan whose later stages have changed can go on from there as well.
 *
 * A stage compares documents if it has `commit` (curate/stream/stage.h).  A branch is alone if no stage that it reads from does
 * so, and none of the branches that it reads is cut.  It is cut in front of its first stage that compares; or in front of its
 * output; or at its end, where a branch reads it that is not alone: so each document comes to one cut at most.  What leads to
 * the cuts are passes of their own, whose files lie in the folder `keep` under names that do not depend on what follows.
 */
#ifndef PIPELINES_PLAN_KEEP_H
#define PIPELINES_PLAN_KEEP_H

#include "pipelines/plan.h"

/* Finds the cuts of a plan that keeps documents, whose stages are open, and puts a stage `forget` at each if there are pages.
 * stage has room for n_branches more; those that are open are counted in p->n_stages.  ERR_NOMEM, or as forget_stage_open. */
int plan_find_cuts(struct plan *p, struct stage *stage, struct err *e);
/* Says whether the run goes on from documents that were kept; kept: all of them are there. */
void plan_tell_kept(const struct plan *p, bool kept);
#endif
