/* curate/crawl/crawl_prune.h -- which row groups of a columnar index can hold what a condition asks for, by their statistics. */
#ifndef CURATE_CRAWL_PRUNE_H
#define CURATE_CRAWL_PRUNE_H

#include "base/parquet_table.h"
#include "curate/crawl/crawl_key.h"

struct crawl_prune {
    const struct where *where; /* or NULL: all can */
    const struct crawl_keys *keys;
};
/* Whether a row group can: by each of its columns that is a field, and by the keys that the condition bounds. */
bool crawl_prune_wants(const struct crawl_prune *p, const struct parquet_table *t, size_t group);
#endif
