/* pipelines/part.h -- one input's way through one pass of a plan, which can be killed and goes on.
 *
 * A part has its files in the work folder (pipelines/work.h), which only grow, and a state: how long each was, and what was
 * counted, when the part last came to rest.  Going on cuts the files to those lengths and reads what the part reads again up
 * to there.  Once the part is through, its state is called done.
 */
#ifndef PIPELINES_PART_H
#define PIPELINES_PART_H

#include "pipelines/part_counts.h"
#include "pipelines/plan_progress.h"

/* What a process runs parts with. */
struct part_conf {
    struct plan *plan;
    struct stage *stage;
    struct comm *ranks; /* all tasks, which decide together where a stage can; NULL: they are no ranks */
    int jobs;
    uint64_t checkpoint; /* bytes of input after which a part comes to rest */
    struct plan_progress *progress;
};

/* Runs these inputs (numbers, ascending), none of which is done, through a pass.  What they read must be there. */
int part_run(const struct part_conf *c, const struct plan_pass *pass, const int *input, int n, struct err *e);
#endif
