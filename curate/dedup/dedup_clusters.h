/* curate/dedup/dedup_clusters.h -- of documents in memory, which stay, and which stands for each other one.
 *
 * In order, a document is dropped if an earlier document that stays is a candidate of it
 * and has the similarity; the first such one is its survivor.  So every dropped document
 * is close to its survivor itself (no chains), no two documents that stay are candidates
 * with the similarity, and a document is compared with survivors only: a bucket of many
 * copies of a page costs one comparison each.
 */
#ifndef CURATE_DEDUP_CLUSTERS_H
#define CURATE_DEDUP_CLUSTERS_H

#include "curate/dedup/dedup_bands.h"
#include "curate/dedup/dedup_laps.h"
#include "curate/dedup/dedup_sets.h"

/* The documents of bands, which is indexed; buckets change, so once only. */
struct dedup_block {
    struct dedup_bands *bands;
    const struct set_ref *set; /* of each */
    const struct set_files *sets;
    uint32_t fixed;  /* the fate of the first so many is settled: nobody compares them with one another */
    bool fixed_only; /* the others are compared with those alone */
    size_t index_memory; /* bytes for the index of crowded buckets */
    struct laps *laps;   /* or NULL */
};

struct dedup_fate {
    uint32_t survivor; /* the document's own number: it stays */
    union {
        float similarity; /* with the survivor */
        uint32_t size;    /* for others to use: of one that stays, the documents of its cluster */
    };
};

/* The same for any number of threads. */
struct dedup_tally {
    uint64_t candidates; /* pairs looked at */
    uint64_t compared;   /* of them, those whose shingles were (the sketches let through) */
};

/* Told of each pair that has the similarity, other < doc, in no order, by one thread at a time; not NULL means
 * that documents are compared with all earlier candidates and not with survivors only.
 * Returns 0 or a failure. */
struct dedup_listener {
    int (*pair)(void *arg, uint32_t other, uint32_t doc, float similarity, struct err *e);
    void *arg;
};

/* fate[documents], each its own survivor at first unless it is dropped already, changes to what
 * becomes of them; the tally grows. */
int dedup_cluster(const struct dedup_block *k, double threshold, int jobs, const struct dedup_listener *listener,
                  struct dedup_fate *fate, struct dedup_tally *t, struct err *e);
#endif
