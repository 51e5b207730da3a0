/* kernels/set_common.h -- how many elements two sets share, for a list of pairs. */
#ifndef KERNELS_SET_COMMON_H
#define KERNELS_SET_COMMON_H

#include "base/err.h"
#include "kernels/ragged.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device;

struct set_common {
    struct ragged sets;
    const uint64_t *hash; /* each element once, in any order */
    int64_t pairs;
    const uint32_t *a, *b; /* numbers of sets; on the CPU cheapest when pairs with one a follow one another */
    uint32_t *common;      /* pairs: |A and B| */
};

/* Jaccard's similarity is common / (|A| + |B| - common), divided in double by the caller.
 * ERR_NOMEM (on a GPU 32 bytes of scratch an element), ERR_DEVICE. */
typedef int set_common_fn(struct device *dev, const struct set_common *p, struct err *e);
set_common_fn set_common_cpu, set_common_cuda;

#ifdef __cplusplus
}
#endif
#endif
