/* curate/dedup/dedup_keep.h -- of documents that are alike, which one stays: the rule as options, and as
 * a rank, of which the highest stays (of equal ones the first). */
#ifndef CURATE_DEDUP_KEEP_H
#define CURATE_DEDUP_KEEP_H

#include "curate/stream/doc.h"

enum dedup_keep { KEEP_FIRST, KEEP_LAST, KEEP_LONGEST, KEEP_BEST, KEEP_NONE };

/* by: for KEEP_BEST a field of numbers, such as "score" or "signals.x"; else NULL.  ERR_ARG. */
int dedup_keep_check(int keep, const char *by, struct err *e);
/* A document's rank: the bytes of its text, or the order of its number (without one the last).
 * By the other rules every rank is 0. */
int dedup_keep_rank(int keep, const char *by, struct doc *d, uint64_t *rank, struct err *e);
#endif
