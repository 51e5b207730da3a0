/* indexed_dataset/idx_stats.h -- what is in an indexed dataset, from the .idx alone. */
#ifndef INDEXED_DATASET_IDX_STATS_H
#define INDEXED_DATASET_IDX_STATS_H

#include "indexed_dataset/idx_read.h"

enum { IDX_BINS = 65 };

struct idx_stats {
    uint64_t documents, sequences, tokens;
    uint64_t shortest, longest; /* document, in tokens; 0 when there is none */
    /* Documents by length: bin 0 those of no tokens, bin k those of 2^(k-1) to 2^k - 1. */
    uint64_t histogram[IDX_BINS];
};
/* One pass over lengths and documents.  ERR_FORMAT as idx_document(). */
int idx_stats(struct idx_stats *s, const struct idx *x, struct err *e);
#endif
