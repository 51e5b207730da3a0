/* indexed_dataset/pages_seen.h -- which checkpoints of a run have seen some pages. */
#ifndef INDEXED_DATASET_PAGES_SEEN_H
#define INDEXED_DATASET_PAGES_SEEN_H

#include "indexed_dataset/sample_trace.h"

struct pages_seen {
    const char *checkpoint; /* its folder */
    int64_t step;           /* its last */
    uint64_t documents;     /* of those asked for, that its steps saw, */
    uint64_t samples;       /* in so many samples: one that several epochs drew counts each time */
    int64_t first_step;     /* the first that saw one; 0: none */
};
typedef int pages_seen_fn(void *arg, const struct pages_seen *s, struct err *e);

/* Calls fn for each checkpoint in dir, newest first, or for dir if that is one.  Steps that were skipped do not count: they
 * changed no weight.  The samples are gone through once for checkpoints that come one from another.  The errors of
 * sample_trace. */
int pages_seen(const char *dir, int jobs, struct page_list *pages, pages_seen_fn *fn, void *arg, struct err *e);
#endif
