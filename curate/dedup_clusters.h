/* curate/dedup_clusters.h -- which documents stay, and which stands for each other one.
 *
 * Verified (our way): in input order, a document is dropped if an earlier document that
 * stays is a candidate of it and has the similarity; the first such one is its
 * survivor.  So every dropped document is close to its survivor itself (no chains), no
 * two documents that stay are candidates with the similarity, and a document is compared
 * with survivors only: a bucket of many copies of a page costs one comparison each.
 *
 * United (as other systems do it): all documents of a bucket, and of buckets that
 * overlap, are one cluster, whose first document stays; nothing is verified.
 */
#ifndef CURATE_DEDUP_CLUSTERS_H
#define CURATE_DEDUP_CLUSTERS_H

#include "curate/dedup_bands.h"
#include "curate/dedup_sets.h"

struct dedup_fate {
    uint32_t survivor; /* the document's own number: it stays */
    float similarity;  /* with the survivor */
};

/* The same for any number of threads. */
struct dedup_tally {
    uint64_t candidates; /* pairs looked at */
    uint64_t compared;   /* of them, those whose shingles were (the sketches let through) */
    uint64_t dropped;
    uint64_t clusters;   /* survivors of at least one other document */
    uint32_t largest;    /* documents of the largest, its survivor included */
    uint32_t largest_of; /* its survivor */
};

/* Told of each pair that has the similarity, other < doc, by doc, then other; not NULL means
 * that documents are compared with all earlier candidates and not with survivors only.
 * Returns 0 or a failure. */
struct dedup_listener {
    int (*pair)(void *arg, uint32_t other, uint32_t doc, float similarity, struct err *e);
    void *arg;
};

/* Fills fate[docs of b].  b is indexed, s flushed; buckets change, so once only. */
int dedup_cluster_verified(struct dedup_bands *b, struct dedup_sets *s, double threshold, int jobs,
                           const struct dedup_listener *listener, struct dedup_fate *fate,
                           struct dedup_tally *t, struct err *e);
int dedup_cluster_united(struct dedup_bands *b, struct dedup_sets *s, int jobs,
                         struct dedup_fate *fate, struct dedup_tally *t, struct err *e);
#endif
