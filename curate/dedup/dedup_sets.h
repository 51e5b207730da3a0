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

#include "base/err.h"
#include "base/spill.h"

/* A set, each hash once: where it begins in the file, and how many; both in hashes. */
struct set_ref {
    uint64_t at, size;
};

/* Compares one document with others.  One a thread. */
struct dedup_compare;
/* sets is flushed and outlives it. */
int dedup_compare_new(struct dedup_compare **c, const struct spill *sets, struct err *e);
void dedup_compare_free(struct dedup_compare *c);
/* |A and B| / |A or B|; 0 if either set is empty.  Cheapest when a is as in the call
 * before.  Below `floor` the answer may be any value below it. */
int dedup_jaccard(struct dedup_compare *c, struct set_ref a, struct set_ref b, double floor,
                  double *similarity, struct err *e);
#endif
