/* pipelines/publish.h -- the end of a plan: its statistics and outputs get their names. */
#ifndef PIPELINES_PUBLISH_H
#define PIPELINES_PUBLISH_H

#include "pipelines/curate.h"
#include "pipelines/part_counts.h"

/* Once every part is through and every stage has decided.  counts: what the stages said when they were opened, to which what
 * all parts counted is added.  Fills in the result, whose list of inputs is the caller's. */
int publish(const struct plan *p, const struct stage *stage, struct part_counts *counts, double start, struct curate_result *res,
            struct err *e);
#endif
