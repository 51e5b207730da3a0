/* indexed_dataset/idx_copy.h -- documents of one dataset into others, streaming.
 *
 * Documents keep their order and their sequences; memory is bounded whatever their number.  The
 * parts must have one dtype, and none may be what is written (ERR_ARG); what lies wrong in a part is
 * ERR_FORMAT, modes of a multimodal dataset are ERR_UNSUPPORTED.  A loss mask beside a part (loss_mask.h) is copied likewise;
 * of parts to merge all have one, or none (ERR_ARG).
 */
#ifndef INDEXED_DATASET_IDX_COPY_H
#define INDEXED_DATASET_IDX_COPY_H

#include "base/err.h"
#include "indexed_dataset/idx_read.h"

/* Writes PREFIX from the n parts behind one another. */
int idx_merge(const char *prefix, const char *const *part, int n, struct err *e);

/* Which documents are wanted: all that meet every condition that is set. */
struct idx_wanted {
    int64_t min_tokens, max_tokens; /* max < 0: no bound */
    const char *keep, *drop; /* files with the number of a document, from 0, on each line; NULL: none */
};
/* Writes PREFIX from the wanted documents of the part; *kept: how many.  ERR_FORMAT names the line of a
 * file that is no number of a document. */
int idx_filter(const char *prefix, const char *part, const struct idx_wanted *want, uint64_t *kept, struct err *e);

/* Writes PREFIX from the documents of the part that are not in the list, as its ledger knows them.  PREFIX.sum.json says of the
 * tokens what the part's does, and how many documents went.  *kept, *gone: how many stayed and went.  ERR_ARG: the part has no
 * ledger. */
struct page_list;
int idx_forget(const char *prefix, const char *part, struct page_list *pages, uint64_t *kept, uint64_t *gone, struct err *e);

enum { IDX_SPLITS_MAX = 64 };
/* Divides the part's documents among n datasets: prefix[k] gets round(D * (share[0] + ... + share[k])) less what
 * those before it got, chosen by the seed: the same whatever the machine.  The shares, at least 0, are divided
 * by their sum. */
int idx_split(const char *const *prefix, const double *share, int n, const char *part, uint64_t seed, struct err *e);
#endif
