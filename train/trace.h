/* train/trace.h -- a timeline of a run, in the format of Chrome's tracing (chrome://tracing, Perfetto): a JSON array of
 * complete events, one file a rank.  Rows: phases, layers, and as many of collectives as are under way at once. */
#ifndef TRAIN_TRACE_H
#define TRAIN_TRACE_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct trace;

enum trace_row { TRACE_PROFILER = -1, TRACE_PHASES, TRACE_LAYERS, TRACE_CALLS };

/* Whether there is anybody to tell: a profiler is attached (base/nvtx.h). */
bool trace_wanted(void);
/* Writes to path (NULL: to no file, for a profiler alone) or, of several ranks of world, to path.RANK.  From here on calls of
 * world, and of the groups that are split from it, are events from their start until they were found done.  ERR_IO. */
int trace_open(struct trace **t, const char *path, struct comm *world, struct err *e);
/* An event by log_seconds; n >= 0 becomes part of the name.  t NULL: nothing. */
void trace_span(struct trace *t, enum trace_row row, const char *name, int64_t n, double from, double to);
/* A range for the profiler, inside those that are open, and an event: trace_begin gives the time for `from`, and both get the
 * same name and n.  TRACE_PROFILER: no event, for phases tell it. */
double trace_begin(const struct trace *t, const char *name, int64_t n);
void trace_end(struct trace *t, enum trace_row row, const char *name, int64_t n, double from);
/* Of the time in which gradients or weights were on their way among replicas: seconds, and for how many of them the
 * rank stood waiting. */
void trace_replicas(const struct trace *t, double *under_way, double *waited);
/* ERR_IO: not all could be written.  NULL is fine. */
int trace_close(struct trace *t, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
