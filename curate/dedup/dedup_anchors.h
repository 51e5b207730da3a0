/* curate/dedup/dedup_anchors.h -- a text's passages in groups that can be told apart by one hash.
 *
 * Every passage of `length` elements is put under the smallest hash of the shorter passages
 * within it (Schleimer, Wilkerson, Aiken 2003, winnowing).  Two equal passages thus have
 * the same hash, and consecutive passages mostly share one: about four hashes for `length`
 * passages.  Where a hash comes once in the corpus, none of its passages is repeated.
 */
#ifndef CURATE_DEDUP_ANCHORS_H
#define CURATE_DEDUP_ANCHORS_H

#include "base/err.h"
#include "base/hash.h"

/* The next `starts` passages have the hash.  starts 0 says that the one before may have
 * equal passages within itself, so that its hash counts twice. */
struct anchor {
    uint64_t hash, starts;
};

/* One a thread; start with zeroes. */
struct anchors {
    struct anchor *a;
    size_t n, cap;
    uint64_t *ring;
    size_t ring_cap;
};
/* The anchors of p[0..n), elements of `width` bytes (1 or 4), into as->a[0..as->n): their
 * starts add up to n - length + 1, or to 0 if n < length.  length >= 2.  ERR_NOMEM. */
int anchors_find(struct anchors *as, const void *p, size_t n, int width, size_t length);
void anchors_free(struct anchors *as);
#endif
