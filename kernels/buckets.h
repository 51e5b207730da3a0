/* kernels/buckets.h -- who shares a key: the buckets of one band. */
#ifndef KERNELS_BUCKETS_H
#define KERNELS_BUCKETS_H

#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device;

struct buckets {
    int64_t docs;        /* < 2^31 */
    const uint64_t *key; /* of document d: key[d * stride]; BAND_KEY_NONE meets nobody */
    int64_t stride;
    uint32_t *member;    /* room for docs: the documents that share their key with another,
                            by key, then by number */
    uint32_t *start;     /* room for docs / 2 + 1: where each bucket begins in member; one
                            more place says where the last ends */
    int64_t buckets, members; /* come back, on the host */
};

/* On a GPU this waits for the result.  ERR_ARG, ERR_NOMEM (scratch: 32 bytes a document; on a GPU 24
 * and what the sort asks for), ERR_DEVICE. */
typedef int buckets_fn(struct device *dev, struct buckets *p, struct err *e);
buckets_fn buckets_cpu, buckets_cuda;

#ifdef __cplusplus
}
#endif
#endif
