/* curate/dedup_sets.h -- the documents' shingle sets, on disk, and their similarity.
 *
 * Sets are needed only for the few pairs that become candidates, and take more room
 * than the text: they go to a nameless temporary file, 8 bytes a shingle; 12 bytes a
 * document stay in memory.
 */
#ifndef CURATE_DEDUP_SETS_H
#define CURATE_DEDUP_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct dedup_sets;
/* dir: where the file goes; NULL: $TMPDIR or /tmp. */
int dedup_sets_open(struct dedup_sets **s, const char *dir, struct err *e);
void dedup_sets_close(struct dedup_sets *s);
/* Appends the set (each hash once) of the next document.  ERR_IO, ERR_NOMEM; ERR_LIMIT
 * beyond 2^32 - 2 documents.  One thread. */
int dedup_sets_put(struct dedup_sets *s, const uint64_t *hash, size_t n, struct err *e);
/* Writes out what is buffered: between the last put and the first comparison. */
int dedup_sets_flush(struct dedup_sets *s, struct err *e);
size_t dedup_sets_docs(const struct dedup_sets *s);
/* Shingles of a document. */
uint32_t dedup_sets_size(const struct dedup_sets *s, uint32_t doc);
uint64_t dedup_sets_bytes(const struct dedup_sets *s);

/* Compares one document with others.  One a thread. */
struct dedup_compare;
int dedup_compare_new(struct dedup_compare **c, struct dedup_sets *s, struct err *e);
void dedup_compare_free(struct dedup_compare *c);
/* |A and B| / |A or B| of documents a and b; 0 if either set is empty.  Cheapest when
 * a is as in the call before.  Below `floor` the answer may be any value below it. */
int dedup_jaccard(struct dedup_compare *c, uint32_t a, uint32_t b, double floor,
                  double *similarity, struct err *e);
#endif
