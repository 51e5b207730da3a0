/* curate/dedup/dedup_sets.h -- the similarity of documents whose shingle sets are on disk.
 *
 * Sets are needed only for the few pairs that become candidates, and take more room
 * than the text: they are in temporary files, 8 bytes a shingle, one a thread that writes.
 */
#ifndef CURATE_DEDUP_SETS_H
#define CURATE_DEDUP_SETS_H

#include <stddef.h>
#include <stdint.h>

#include "base/spill.h"

/* A set, each hash once: where it begins, and how many; both in hashes. */
struct set_ref {
    uint64_t at, size; /* at: the number of the file << SET_FILE_SHIFT, and the place in it */
};
enum { SET_FILE_SHIFT = 48 };

/* The files. */
struct set_files {
    struct spill **file;
    size_t n, cap;
};
/* The hashes of a set to `hash`, of flushed files; any thread. */
int set_files_read(const struct set_files *f, struct set_ref set, uint64_t *hash, struct err *e);

/* Two sets of an array, and |A and B| / |A or B|: 0 if either is empty. */
struct set_pair {
    uint32_t a, b;
    double similarity;
};

/* Compares sets.  One a thread. */
struct dedup_compare;
/* sets outlives it. */
int dedup_compare_new(struct dedup_compare **c, const struct set_files *sets, struct err *e);
void dedup_compare_free(struct dedup_compare *c);
/* Fills in the similarities.  Cheapest when pairs with one a follow one another.  Below `floor` a similarity
 * may be any value below it. */
int dedup_compare_run(struct dedup_compare *c, const struct set_ref *set, double floor, struct set_pair *pair, size_t n,
                      struct err *e);
#endif
