/* train/saver.h -- checkpoints that are written while training goes on.
 *
 * saver_start() copies weights and moments into a buffer that is allocated once and returns; a
 * thread writes the checkpoint from there, one at a time.
 */
#ifndef TRAIN_SAVER_H
#define TRAIN_SAVER_H

#include "kernels/device.h"
#include "train/checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

struct saver;

/* p, dir and what info points to must outlive it.  Its buffer is bytes long for each part. */
int saver_open(struct saver **s, struct device *dev, const char *dir, const struct params *p, struct err *e);
/* Waits for the writer. */
void saver_close(struct saver *s); /* NULL is fine */

/* Copies the slabs (the device's) and begins to write them; nothing may be being written
 * (saver_done with wait). */
int saver_start(struct saver *s, const struct checkpoint_info *info, const float *const slab[CHECKPOINT_PARTS],
                struct err *e);

/* 1: the checkpoint of *step was written since the last call; 0: nothing new; < 0: it could not be.
 * wait: until nothing is being written. */
int saver_done(struct saver *s, bool wait, int64_t *step, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
