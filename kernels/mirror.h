/* kernels/mirror.h -- a block of the host's memory and its image on a device; on the CPU they are one. */
#ifndef KERNELS_MIRROR_H
#define KERNELS_MIRROR_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All zero: nothing yet. */
struct mirror {
    void *host; /* pinned where that helps */
    void *on;   /* the device's */
    size_t bytes;
};

/* At least bytes of both; what they held is lost if they grow.  ERR_NOMEM, ERR_DEVICE. */
int mirror_room(struct device *dev, struct mirror *m, size_t bytes, struct err *e);
/* The first bytes to the device, or back.  Queued in dev->stream: until that is synchronised, leave host alone. */
int mirror_put(struct device *dev, const struct mirror *m, size_t bytes, struct err *e);
int mirror_get(struct device *dev, const struct mirror *m, size_t bytes, struct err *e);
void mirror_free(struct device *dev, struct mirror *m);

#ifdef __cplusplus
}
#endif
#endif
