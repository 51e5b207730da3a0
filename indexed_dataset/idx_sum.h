/* indexed_dataset/idx_sum.h -- checksums of .bin and .idx, a chunk at a time.
 *
 * PREFIX.sum.json holds XXH3-64 (seed 0) of each chunk of 4 MiB of both files, so that
 * damage is found, and found where it is, by any number of threads.  Megatron does not
 * look at it.
 */
#ifndef INDEXED_DATASET_IDX_SUM_H
#define INDEXED_DATASET_IDX_SUM_H

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/node.h"

enum { IDX_CHUNK = 4 << 20 };

struct idx_sum {
    XXH3_state_t state;
    uint64_t bytes;
    struct buf chunks; /* uint64_t each, of the whole chunks so far */
};

void idx_sum_init(struct idx_sum *s);
int idx_sum_add(struct idx_sum *s, const void *p, size_t n);
/* Appends {"bytes":N,"chunk":4194304,"xxh3":["16 hex digits",...]} and frees s's
 * memory.  Errors of buf. */
int idx_sum_finish(struct idx_sum *s, struct buf *json);
/* Appends what idx_sum_restore() needs: {"last":"hash","chunks":"16 hex digits each"}. */
int idx_sum_save(const struct idx_sum *s, struct buf *json);
/* Goes on after `bytes` bytes, of which the last bytes % IDX_CHUNK are at p.  ERR_FORMAT when they
 * are not those that were summed. */
int idx_sum_restore(struct idx_sum *s, const struct node *saved, uint64_t bytes, const void *p, struct err *e);
/* XXH3-64 of chunk k of the n bytes at p. */
uint64_t idx_sum_chunk(const uint8_t *p, size_t n, size_t k);
#endif
