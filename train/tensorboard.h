/* train/tensorboard.h -- event files that TensorBoard reads: scalars by step.
 *
 * A file is a row of records: u64 length, u32 masked CRC-32C of it, the bytes, u32 masked CRC-32C
 * of them (little-endian).  The bytes are a protocol buffer Event: 1 wall time (double), 2 step
 * (int64), 3 file version (first record), 5 Summary of 1 Value of 1 tag, 2 value (float).
 * Source: tensorflow/core/lib/io/record_writer.h, core/util/event.proto.
 */
#ifndef TRAIN_TENSORBOARD_H
#define TRAIN_TENSORBOARD_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tensorboard;

/* Begins a file events.out.tfevents.SECONDS.HOST.PID in dir (made if it is missing). */
int tensorboard_open(struct tensorboard **t, const char *dir, struct err *e);
void tensorboard_close(struct tensorboard *t); /* NULL is fine */

/* Collects a scalar for the event that tensorboard_step writes. */
int tensorboard_scalar(struct tensorboard *t, const char *tag, double value, struct err *e);
/* Writes what was collected as one event of step. */
int tensorboard_step(struct tensorboard *t, int64_t step, struct err *e);

/* One record around an event, appended to b.  For tests. */
int tensorboard_record(struct buf *b, struct span event);

#ifdef __cplusplus
}
#endif
#endif
