/* curate/dedup/dedup_prefix.h -- of many documents, those that can have the similarity with a given one, by the rare
 * shingles that they share: pages of one template are not held against one another.
 *
 * Prefix filtering (Chaudhuri, Ganti and Kaushik 2006), with the bounds of PPJoin (Xiao, Wang, Lin and Yu 2008).  All
 * sets are put in one order, in which shingles that few documents have come first.  Sets of n and m shingles with
 * |A and B| / |A or B| >= t share at least t (n + m) / (1 + t).  If the first that they share stands at place i of one
 * and j of the other, counted from 0, they share at most n - i and at most m - j.  So
 *
 *     m <= (n - (1 + t) i) / t   and   n <= (m - (1 + t) j) / t.
 *
 * The right side is the room of a place: the largest set that can be met there.  Nobody is met beyond place (1 - t) n;
 * the shingles up to there are the prefix.  A list of the documents that have a shingle in their prefixes is kept by
 * falling room, and read only as far as the room is enough.  With t = .8, pages of equal size of which each has a
 * ninth for itself alone are never met by way of what they share.
 *
 * Any order will do, so counts are of a sample, and may be those of several shingles: memory decides, and what comes
 * out is the same.
 */
#ifndef CURATE_DEDUP_PREFIX_H
#define CURATE_DEDUP_PREFIX_H

#include <stdbool.h>

#include "curate/dedup/dedup_sets.h"

/* The first shingles of a set: keys by which they are ordered, ascending; equal keys are taken for one shingle. */
struct prefix {
    uint64_t *key;
    size_t n, cap;
    uint32_t size; /* of the set */
};
void prefix_free(struct prefix *x);

struct prefix_index;
/* For documents of which the sets are set[]; hashes: of all that will be counted together.  About `memory` bytes. */
int prefix_index_new(struct prefix_index **p, const struct set_ref *set, const struct set_files *sets, double threshold,
                     uint64_t hashes, size_t memory, struct err *e);
void prefix_index_free(struct prefix_index *p);
/* All documents that will be asked for, one after the other, before the first prefix. */
int prefix_index_count(struct prefix_index *p, uint32_t doc, struct err *e);
/* What was counted, to be added up among ranks of which each counts its own; no count is over UINT16_MAX.  The index's. */
uint16_t *prefix_index_counts(struct prefix_index *p, size_t *n);

/* Fills x, which begins as zeros and may be used again.  Any thread. */
int prefix_of(const struct prefix_index *p, uint32_t doc, struct prefix *x, struct err *e);
/* True if only one document has the shingle of this key. */
bool prefix_alone(const struct prefix_index *p, uint64_t key);
/* The room of place i of a set of that size. */
uint32_t prefix_room(const struct prefix_index *p, uint32_t size, size_t i);
/* Puts a document in.  One thread, and nobody looks. */
int prefix_index_put(struct prefix_index *p, uint32_t doc, const struct prefix *x, struct err *e);
/* Puts it into one list: that of the low half of a key. */
int prefix_index_put_key(struct prefix_index *p, uint32_t tag, uint32_t doc, uint32_t room, struct err *e);
/* It has reached its memory: to be cleared, and filled again. */
bool prefix_index_full(const struct prefix_index *p);
void prefix_index_clear(struct prefix_index *p);

/* What a thread finds; begins as zeros. */
struct prefix_found {
    uint32_t *doc;
    size_t n, cap;
    size_t docs;
    uint32_t *seen; /* of each document, the last `asked` that found it */
    uint32_t asked;
};
void prefix_found_close(struct prefix_found *f);
/* All documents of the index that can have the similarity with x, each once, in any order.  *enough: false if that
 * takes more than `most` looks; then some are left out.  Any thread. */
int prefix_index_find(const struct prefix_index *p, const struct prefix *x, uint64_t most, struct prefix_found *f,
                      bool *enough, struct err *e);
/* The same a key at a time, by rising place: first begin, then for each adds those of the list that have room for a set
 * of that size.  *most falls by the looks that it took, and at 0 there is no further one.  It is for the caller to leave
 * out sets that are larger than the room of the place at which they were found. */
int prefix_found_begin(const struct prefix_index *p, struct prefix_found *f, struct err *e);
int prefix_index_find_key(const struct prefix_index *p, uint32_t tag, uint32_t size, uint64_t *most, struct prefix_found *f,
                          struct err *e);
#endif
