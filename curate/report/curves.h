/* curate/report/curves.h -- a page of curves from the logs of training (quern train --log-file).
 *
 * A function of the files alone, as the report on documents is.  However long a run, a curve keeps
 * at most CURVE_POINTS means over equal stretches of steps.
 */
#ifndef CURATE_CURVES_H
#define CURATE_CURVES_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum { CURVE_POINTS = 1024, CURVE_RUNS = 6 };

/* Appends the page of the logs file[0..n), each a run, n <= CURVE_RUNS.  Lines that are no step are logged and
 * counted in *bad.  ERR_FORMAT names a file without a step; errors of the files; ERR_NOMEM. */
int curves_put(struct buf *b, char *const *file, int n, const char *title, uint64_t *bad, struct err *e);

#endif
