/* indexed_dataset/idx_merge.h -- several datasets behind one another as one. */
#ifndef INDEXED_DATASET_IDX_MERGE_H
#define INDEXED_DATASET_IDX_MERGE_H

#include "base/err.h"

/* Writes PREFIX from the n parts, documents in order; streams, in bounded memory.  The
 * parts must have one dtype, and none may be PREFIX (ERR_ARG); what lies wrong in a part
 * is ERR_FORMAT. */
int idx_merge(const char *prefix, const char *const *part, int n, struct err *e);
#endif
