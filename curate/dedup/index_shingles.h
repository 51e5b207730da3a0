/* curate/dedup/index_shingles.h -- the shingles of documents of an index: made again from their texts, or read from a set
 * file. */
#ifndef CURATE_INDEX_SHINGLES_H
#define CURATE_INDEX_SHINGLES_H

#include "curate/dedup/dedup_index.h"
#include "curate/dedup/minhash_text.h"

/* Reads what index x needs.  ERR_IO: a file that it names is not there, with what to do. */
int index_sources_check(const struct dedup_index *x, struct err *e);

struct index_shingles;
/* The shingler outlives it. */
int index_shingles_new(struct index_shingles **s, struct shingler *shingler, struct err *e);
void index_shingles_free(struct index_shingles *s);
/* Those of d, valid until the next call.  Cheap in the order of the index: then a file is read once from its beginning, or,
 * if it is not compressed, here and there.  ERR_FORMAT: they are other ones than when the index was made, with file and
 * byte. */
int index_shingles_of(struct index_shingles *s, const struct dedup_index *x, const struct index_doc *d, const uint64_t **hash,
                      struct err *e);
#endif
