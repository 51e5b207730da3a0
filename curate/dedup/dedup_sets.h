/* curate/dedup/dedup_sets.h -- the similarity of documents whose shingle sets are on disk.
 *
 * Sets are needed only for the few pairs that become candidates, and take more room
 * than the text: they are in a temporary file, 8 bytes a shingle.
 */
#ifndef CURATE_DEDUP_SETS_H
#define CURATE_DEDUP_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/spill.h"
#include "kernels/device.h"

/* A set, each hash once: where it begins in the file, and how many; both in hashes. */
struct set_ref {
    uint64_t at, size;
};

/* Two sets of an array, and |A and B| / |A or B|: 0 if either is empty. */
struct set_pair {
    uint32_t a, b;
    double similarity;
};

/* Compares sets.  One a thread. */
struct dedup_compare;
/* sets is flushed and outlives it, as does the GPU; NULL: on the CPU, by the calling thread.  hashes: about so
 * many are in memory at a time, 8 bytes each, or two sets if these are larger. */
int dedup_compare_new(struct dedup_compare **c, const struct spill *sets, struct device *gpu, size_t hashes, struct err *e);
void dedup_compare_free(struct dedup_compare *c);
/* Fills in the similarities.  Cheapest when pairs with one a follow one another.  Below `floor` a similarity
 * may be any value below it. */
int dedup_compare_run(struct dedup_compare *c, const struct set_ref *set, double floor, struct set_pair *pair, size_t n,
                      struct err *e);
#endif
