/* curate/crawl/crawl_select.h -- a list of the records of an index that meet its condition, by threads, in the index's order. */
#ifndef CURATE_CRAWL_SELECT_H
#define CURATE_CRAWL_SELECT_H

#include "curate/crawl/crawl_index.h"

struct crawl_counts {
    struct crawl_index_counts index; /* what threads read by ranges too */
    uint64_t entries, members, records, record_bytes, bad;
};

/* Where a list goes; one thread at a time calls these, in order. */
struct crawl_sink {
    int (*put)(void *arg, struct span lines, struct err *e);
    void (*bad)(void *arg, const struct err *why);
    void (*show)(void *arg, const struct crawl_counts *n, const char *index);
    void *arg;
};
/* The bytes and the errors are the same for any number of threads.  Memory: a piece a thread and some MiB of its lines.  Errors
 * of crawl_index_next and put. */
int crawl_select(struct crawl_index *x, const struct crawl_index_conf *c, int threads, const struct crawl_sink *sink,
                 struct crawl_counts *n, struct err *e);
#endif
