/* curate/dedup/dedup_sets.h -- the similarity of documents whose shingle sets are on disk.
 *
 * Sets are needed only for the few pairs that become candidates, and take more room
 * than the text: they are in temporary files, one a thread that writes, packed: 4 bytes a shingle where hashes have 32 bits,
 * else 8.
 */
#ifndef CURATE_DEDUP_SETS_H
#define CURATE_DEDUP_SETS_H

#include <stddef.h>
#include <stdint.h>

#include "base/spill.h"

/* n hashes of `bytes` bytes each (4 or 8), as they are on disk; set_unpack: from may be the last n * bytes of to's. */
void set_pack(void *to, size_t bytes, const uint64_t *hash, size_t n);
void set_unpack(uint64_t *to, size_t bytes, const void *from, size_t n);
int set_read(const struct spill *from, uint64_t offset, size_t bytes, uint64_t *to, size_t n, struct err *e);
int set_put(struct spill *to, size_t bytes, const uint64_t *hash, size_t n, struct err *e);

/* A set, each hash once: where it begins, and how many; both in hashes. */
struct set_ref {
    uint64_t at, size; /* at: the number of the file << SET_FILE_SHIFT, and the place in it */
};
enum { SET_FILE_SHIFT = 48 };

/* The files, and the bytes of each hash there. */
struct set_files {
    struct spill **file;
    size_t n, cap, bytes;
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
