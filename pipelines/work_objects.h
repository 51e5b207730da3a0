/* pipelines/work_objects.h -- inputs at addresses: whether they still are what a former run read. */
#ifndef PIPELINES_WORK_OBJECTS_H
#define PIPELINES_WORK_OBJECTS_H

#include "pipelines/plan.h"

/* Asks for each of a task's inputs that is an address, and that a former run has been through, what tells its state (http_state):
 * a request each, over up to 16 connections.  Where the server gave nothing to tell it by, nothing is asked.  ERR_ARG names one
 * that has changed, with both states; else errors as of http_open. */
int work_objects_check(const struct plan *p, int task, int tasks, struct err *e);
/* Whether any input is an address: what says that it is through is then needed for as long as the work folder. */
bool work_objects_any(const struct plan *p);
#endif
