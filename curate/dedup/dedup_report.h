/* curate/dedup/dedup_report.h -- clusters of very many documents, and what text they share. */
#ifndef CURATE_DEDUP_REPORT_H
#define CURATE_DEDUP_REPORT_H

#include "curate/dedup/dedup_blocks.h"

/* Gives the clusters of more than `over` documents, each by its survivor, as JSON lines: "survivor",
 * "documents"; "sample", ids of up to 8 others, from first to last; "share" of the survivor's text that all of
 * these have as well, and the longest such "passages" (curate/dedup/dedup_shared.h).  The store has texts;
 * fate[].size of each survivor is its cluster's. */
int dedup_report_give(const struct dedup_store *s, const struct dedup_fate *fate, uint64_t over,
                      const struct dedup_taker *to, struct err *e);
#endif
