/* train/host_copy.h -- a slab of a device as the host sees it: itself on the CPU, else a copy in pinned memory. */
#ifndef TRAIN_HOST_COPY_H
#define TRAIN_HOST_COPY_H

#include "kernels/device.h"

struct host_copy {
    struct device *dev;
    float *on, *host;
    size_t bytes;
};

/* h->host holds what the slab does if it is to be read, else anything (on the CPU the slab itself).  ERR_NOMEM, ERR_DEVICE;
 * to be closed also then. */
int host_copy_open(struct host_copy *h, struct device *dev, float *slab, size_t bytes, bool read, struct err *e);
/* With write the slab becomes what h->host holds.  All zero is fine. */
int host_copy_close(struct host_copy *h, bool write, struct err *e);

#endif
