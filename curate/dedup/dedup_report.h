/* curate/dedup/dedup_report.h -- clusters of very many documents, and what text they share. */
#ifndef CURATE_DEDUP_REPORT_H
#define CURATE_DEDUP_REPORT_H

#include "curate/dedup/dedup_blocks.h"

/* Writes the clusters of more than `over` documents, by their survivors' numbers, as JSON lines to the
 * file: "survivor", "documents"; "sample", ids of up to 8 others, from first to last; "share" of the
 * survivor's text that all of these have as well, and the longest such "passages" (curate/dedup/dedup_shared.h).
 * The store has texts; fate[].size of each survivor is its cluster's. */
int dedup_report_write(const char *path, const struct dedup_store *s, const struct dedup_fate *fate, uint64_t over,
                       struct err *e);
#endif
