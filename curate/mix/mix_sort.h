/* curate/mix/mix_sort.h -- documents in the order of their keys, however many there are.
 *
 * Records are dealt to 256 buckets by the first byte of their key; what does not fit into
 * half of the memory goes to a nameless temporary file.  Then bucket after bucket is read,
 * sorted and given out; one that does not fit is dealt again by the next byte.  The order
 * is that of (key, place, epoch) and depends on nothing else.
 */
#ifndef CURATE_MIX_SORT_H
#define CURATE_MIX_SORT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct mix_record {
    uint64_t key, place; /* place: source and position */
    uint32_t epoch, split;
    uint64_t n;          /* bytes of the document's line that follow */
};

struct mix_sort;
/* dir: NULL for $TMPDIR or /tmp.  compress: with zstd, level 1.  ERR_NOMEM, ERR_IO. */
int mix_sort_open(struct mix_sort **s, const char *dir, uint64_t memory, int jobs, bool compress, struct err *e);
/* Adds a record on thread 0 .. jobs-1. */
int mix_sort_put(struct mix_sort *s, int thread, const struct mix_record *r, const char *line, struct err *e);
/* Gives all records in order, one at a time; nothing can be put any more. */
int mix_sort_each(struct mix_sort *s,
                  int (*each)(void *arg, const struct mix_record *r, struct span line, struct err *e), void *arg,
                  struct err *e);
/* Bytes that were written to disk. */
uint64_t mix_sort_spilled(const struct mix_sort *s);
void mix_sort_close(struct mix_sort *s);
#endif
