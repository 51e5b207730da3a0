/* curate/dedup/dedup_best.h -- of documents with equal keys, which one stays.
 *
 * Documents are numbered in the order in which they are added.  Everything goes to disk: keys
 * apart by their first bits, and each part is sorted by itself, with as much of it in memory at
 * a time as is allowed.  So the answer is exact for any bound on memory, and the same for any
 * number of threads.  72 bytes of disk a document, and its id.
 */
#ifndef CURATE_DEDUP_BEST_H
#define CURATE_DEDUP_BEST_H

#include "base/err.h"
#include "base/hash.h"

struct dedup_best;
/* memory: bytes that it may take.  dir: for temporary files (NULL: $TMPDIR or /tmp). */
int dedup_best_open(struct dedup_best **b, const char *dir, int64_t memory, struct err *e);
void dedup_best_close(struct dedup_best *b);
/* The next document.  Of those with its key the one of the highest rank stays, of these the first. */
int dedup_best_add(struct dedup_best *b, struct hash128 key, uint64_t rank, struct span id, struct err *e);
uint64_t dedup_best_count(const struct dedup_best *b);
/* Once, after the last.  none: of documents with equal keys not even one stays, unless its rank is
 * UINT64_MAX. */
int dedup_best_resolve(struct dedup_best *b, bool none, int jobs, struct err *e);
/* After that: the document for which n goes, or n itself if it stays.  Cheap only in the order of
 * the numbers. */
int dedup_best_survivor(struct dedup_best *b, uint64_t n, uint64_t *survivor, struct err *e);
/* After dedup_best_survivor has said that n stays: how many documents have its key. */
uint64_t dedup_best_size(const struct dedup_best *b, uint64_t n);
/* The key of document n, and its id, in a. */
int dedup_best_key(struct dedup_best *b, uint64_t n, struct hash128 *key, struct err *e);
int dedup_best_id(struct dedup_best *b, uint64_t n, struct arena *a, struct span *id, struct err *e);
#endif
