/* pipelines/plan_read.h -- inside plans only: what reading and checking them share. */
#ifndef PIPELINES_PLAN_READ_H
#define PIPELINES_PLAN_READ_H

#include "pipelines/plan.h"

/* ERR_FORMAT with the plan's file, the line, and what is wrong there. */
int plan_wrong(const struct plan *p, int line, struct err *e, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static inline int plan_no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for the plan");
}
#endif
