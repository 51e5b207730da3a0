/* curate/dedup/dedup_sign.h -- shingles put aside and signed, many documents at once, by each thread for itself.
 *
 * On the CPU a document is signed as it comes.  For a GPU a thread collects those of several blocks, in pinned memory;
 * while the GPU signs them the thread writes their shingles to its file, then fills another batch.  It looks for the records of
 * a batch when the next one is full, so it does not wait unless the GPU is slower than it.  Records go to the store then:
 * documents must have their numbers by that time.
 */
#ifndef CURATE_DEDUP_SIGN_H
#define CURATE_DEDUP_SIGN_H

#include "curate/dedup/dedup_device.h"
#include "curate/dedup/dedup_laps.h"
#include "curate/dedup/dedup_store.h"
#include "curate/dedup/minhash_long.h"
#include "kernels/minhash.h"

/* One document's record of its hashes, on a device of the CPU. */
int dedup_sign_one(struct device *cpu, const struct minhash *m, const struct dedup_bands *shape, const struct shingle_set *set,
                   const struct band_record *r, struct err *e);

/* All outlive the signers. */
struct dedup_sign_conf {
    struct dedup_gpu *gpu; /* NULL: the CPU signs */
    const struct minhash *m;
    const struct dedup_bands *shape;
    struct dedup_store *store;
    size_t docs, hashes; /* a batch is full with so many of either */
    struct laps *laps;   /* by enum dedup_lap, or NULL */
    bool no_sets;        /* shingles are signed only, not put aside */
    uint64_t on_gpu;     /* comes back: documents that it signed */
};

/* One document, as a signer knows it; plain bytes. */
struct dedup_signer;
struct signed_doc {
    struct dedup_signer *signer; /* NULL: it had no shingles */
    struct set_ref set;
    uint32_t batch, at;
};

int dedup_signer_new(struct dedup_signer **s, struct dedup_sign_conf *c, struct err *e);
void dedup_signer_close(struct dedup_signer *s); /* NULL is fine */
/* Of a document with these hashes, of which there may be none. */
int dedup_signer_add(struct dedup_signer *s, const struct shingle_set *set, struct signed_doc *d, struct err *e);
/* Its number in the store; one without stays without a record. */
void dedup_signer_number(const struct signed_doc *d, uint64_t number);
/* Between blocks: documents added before the last call have their numbers. */
int dedup_signer_turn(struct dedup_signer *s, struct err *e);
/* All have; their records are in the store, their hashes in its files. */
int dedup_signer_finish(struct dedup_signer *s, struct err *e);
#endif
