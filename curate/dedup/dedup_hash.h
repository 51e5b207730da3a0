/* curate/dedup/dedup_hash.h -- XXH3-128 of texts, one at a time or many at once, on a device (kernels/text_hash.h). */
#ifndef CURATE_DEDUP_HASH_H
#define CURATE_DEDUP_HASH_H

#include "base/hash.h"
#include "kernels/device.h"

/* On a device of the CPU. */
int dedup_hash_one(struct device *cpu, struct span text, struct hash128 *key, struct err *e);

/* Texts are collected; when a batch is full, each is told its hash, in order. */
struct dedup_hash;
typedef int hash_taker(void *to, struct hash128 key, uint64_t rank, struct span id, struct err *e);
/* A batch is of at most so many texts and bytes, or of one.  dev outlives it. */
int dedup_hash_open(struct dedup_hash **h, struct device *dev, size_t texts, size_t bytes, hash_taker *take, void *to,
                    struct err *e);
/* rank and id come back with the hash; all bytes are copied. */
int dedup_hash_add(struct dedup_hash *h, struct span text, uint64_t rank, struct span id, struct err *e);
/* Hashes what has been collected. */
int dedup_hash_finish(struct dedup_hash *h, struct err *e);
void dedup_hash_close(struct dedup_hash *h);
#endif
