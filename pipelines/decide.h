/* pipelines/decide.h -- the last stage of a pass decides, once it can know all documents.
 *
 * It commits the notes of all parts of a pass, or of a group of them, in order, resolves and judges, and what it answers lies
 * in the work folder, for the next pass to read beside the documents.  An end makes its files instead.
 */
#ifndef PIPELINES_DECIDE_H
#define PIPELINES_DECIDE_H

#include "pipelines/part.h"

/* Whether all ranks decide together, each on a range of the inputs: then all call part_decide, pass by pass in the same order. */
bool part_is_shared(const struct part_conf *c, const struct plan_pass *pass);
/* Once all parts of the group are through. */
int part_decide(const struct part_conf *c, const struct plan_pass *pass, int group, struct err *e);
#endif
