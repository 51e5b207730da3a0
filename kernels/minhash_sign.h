/* kernels/minhash_sign.h -- signatures of a batch of documents (kernels/minhash.h). */
#ifndef KERNELS_MINHASH_SIGN_H
#define KERNELS_MINHASH_SIGN_H

#include "base/err.h"
#include "kernels/minhash.h"
#include "kernels/ragged.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device;

/* What a document without shingles has in all places of its signature. */
#define MINHASH_EMPTY UINT64_MAX

/* A copy of m whose coefficients are the device's; minhash_take_back frees it.
 * ERR_NOMEM, ERR_DEVICE.  m->n and m->family are the host's in both. */
int minhash_to_device(struct device *dev, const struct minhash *m, struct minhash *on, struct err *e);
void minhash_take_back(struct device *dev, struct minhash *on);

/* sig[d * m->n + j], d < docs->n: what minhash_signature gives for the hashes of document
 * d, or MINHASH_EMPTY.  All pointers (m's too) are the device's. */
typedef int minhash_sign_fn(struct device *dev, const struct minhash *m, const struct ragged *docs,
                            const uint64_t *hash, uint64_t *sig, struct err *e);
minhash_sign_fn minhash_sign_cpu, minhash_sign_cuda;

#ifdef __cplusplus
}
#endif
#endif
