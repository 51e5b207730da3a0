/* curate/dedup/dedup_blocks.h -- near-duplicates of a collection that need not fit in memory.
 *
 * Documents that bands link (curate/dedup/dedup_links.h) are independent of all others, so they are
 * decided a block at a time: as many groups of linked documents as fit.  A group that is larger
 * than the memory is cut, in order; each piece is held against the survivors of those before it,
 * then against itself.  What comes out is the same for any bound on memory and any number of threads:
 * what one document after the other would give, by falling rank, then by number.
 */
#ifndef CURATE_DEDUP_BLOCKS_H
#define CURATE_DEDUP_BLOCKS_H

#include "curate/dedup/dedup_clusters.h"
#include "curate/dedup/dedup_store.h"

struct dedup_plan {
    struct dedup_store *store; /* flushed */
    int bands, rows;
    double threshold;
    bool verify;    /* false: all that are linked are one cluster, of which the highest rank stays */
    bool no_similarity; /* of those: how similar they are is not found out, and 1 */
    int64_t memory; /* bytes, beside the 8 a document of the answer */
    int jobs;
    const char *dir; /* for temporary files, as spill_open has it */
    /* verify only, may be NULL: told of all pairs of candidates that have the similarity, by their numbers, in no order
     * that can be relied on; of a pair the lesser is first, or one that always stays */
    const struct dedup_listener *listener;
    struct laps *laps; /* or NULL */
};

/* fate[documents of the store]: filled. */
int dedup_blocks_decide(const struct dedup_plan *p, struct dedup_fate *fate, struct dedup_tally *t, struct err *e);
#endif
