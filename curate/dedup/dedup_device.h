/* curate/dedup/dedup_device.h -- --device: on what the two kinds of duplicates of documents are found. */
#ifndef CURATE_DEDUP_DEVICE_H
#define CURATE_DEDUP_DEVICE_H

#include "kernels/device.h"

enum dedup_device { DEDUP_CPU, DEDUP_CUDA, DEDUP_AUTO };
#define DEDUP_DEVICES "cpu|cuda|auto"
/* Documents of a batch, unless told otherwise. */
enum { DEDUP_BATCH = 100000 };

/* The GPU; NULL if the CPU is to do it all, for auto because there is none (which is logged).
 * ERR_UNSUPPORTED: why cuda cannot be. */
int dedup_device_open(struct device **gpu, int which, struct err *e);
#endif
