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
    const uint64_t *hash; /* each set ascending, each element once */
    int64_t pairs;
    const uint32_t *a, *b; /* numbers of sets */
    uint32_t *common;      /* pairs: |A and B| */
};

/* Jaccard's similarity is common / (|A| + |B| - common), divided in double by the caller. */
typedef int set_common_fn(struct device *dev, const struct set_common *p, struct err *e);
set_common_fn set_common_cpu, set_common_cuda;

#ifdef __cplusplus
}
#endif
#endif
