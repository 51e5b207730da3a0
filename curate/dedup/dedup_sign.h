/* curate/dedup/dedup_sign.h -- signatures of many documents at once, on a device.
 *
 * Two batches: while the device signs one, the other is filled.
 */
#ifndef CURATE_DEDUP_SIGN_H
#define CURATE_DEDUP_SIGN_H

#include "curate/dedup/dedup_store.h"
#include "kernels/minhash.h"

/* One document's record of its hashes, on a device of the CPU; sig: room for m->n. */
int dedup_sign_one(struct device *cpu, const struct minhash *m, const struct dedup_bands *shape, const uint64_t *hash,
                   size_t count, uint64_t *sig, const struct band_record *r, struct err *e);

struct dedup_sign;
/* Records go to the store.  All outlive it.  A batch is of at most so many documents, and takes at most so many
 * bytes of the host's memory, or what one document takes. */
int dedup_sign_open(struct dedup_sign **s, struct device *dev, const struct minhash *m, const struct dedup_bands *shape,
                    struct dedup_store *store, size_t docs, size_t bytes, struct err *e);
/* The next document of the store; count may be 0. */
int dedup_sign_add(struct dedup_sign *s, const uint64_t *hash, size_t count, struct err *e);
/* Waits until all documents have their records. */
int dedup_sign_finish(struct dedup_sign *s, struct err *e);
void dedup_sign_close(struct dedup_sign *s);
#endif
