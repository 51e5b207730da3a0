/* curate/dedup/dedup_device.h -- --device: on what documents are signed.
 *
 * Starting CUDA takes a part of a second.  A thread of its own does it; what comes before it is ready the CPU does.
 */
#ifndef CURATE_DEDUP_DEVICE_H
#define CURATE_DEDUP_DEVICE_H

#include "kernels/device.h"

enum dedup_device { DEDUP_CPU, DEDUP_CUDA, DEDUP_AUTO };
#define DEDUP_DEVICES "cpu|cuda|auto"
/* Documents of a batch at most, unless told otherwise. */
enum { DEDUP_BATCH = 16384 };

struct dedup_gpu;
/* Begins to open the GPU; NULL for the CPU. */
int dedup_gpu_open(struct dedup_gpu **g, int which, struct err *e);
void dedup_gpu_close(struct dedup_gpu *g); /* NULL is fine */
/* For a thread: its own handle, with a stream of its own, to be closed before g.  *dev stays NULL while the GPU is being
 * opened, for the first time or for another thread (with $QUERN_GPU_WAIT it is waited for), and for auto if there is none,
 * which is logged.  ERR_UNSUPPORTED: why cuda cannot be. */
int dedup_gpu_device(struct dedup_gpu *g, struct device **dev, struct err *e);
void dedup_gpu_device_close(struct device *dev); /* NULL is fine */
/* Waits until it is known whether there is a GPU; fails as above. */
int dedup_gpu_settle(struct dedup_gpu *g, struct err *e);
/* Nanoseconds that opening took; 0 until then. */
uint64_t dedup_gpu_opening(const struct dedup_gpu *g);
#endif
