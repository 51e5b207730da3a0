/* train/saver.h -- how ranks save a checkpoint, beside training or not.
 *
 * Each rank writes a share of the pieces that it holds (train/pieces.h) to files of its own; the
 * first commits when all have finished (train/checkpoint.h).  A thread of each rank writes, one
 * checkpoint at a time.  Beside training it writes from a copy in a buffer that is allocated once;
 * else from where the pieces are, and the caller waits for it.
 *
 * All ranks make the same calls.  None of the threads uses the group.
 */
#ifndef TRAIN_SAVER_H
#define TRAIN_SAVER_H

#include "kernels/device.h"
#include "train/checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

struct saver;

/* Elements of the buffer through which goes, without async, what cannot be written from where it is. */
enum { SAVER_STAGE = 1 << 20 };

/* v[0..n): what this rank holds, the same at every save; what they point to and group, dev (NULL: v is in
 * host memory) and dir must outlive it.  keep: which older ones stay (NULL: all).  async: beside training, with a buffer as
 * large as this rank's share. */
int saver_open(struct saver **s, struct comm *group, struct device *dev, const char *dir, const struct checkpoint_keep *keep,
               const struct piece *v, int n, bool async, struct err *e);
/* Waits for this rank's writer.  What has not been committed is lost. */
void saver_close(struct saver *s); /* NULL is fine */

/* Begins to save; nothing may be being saved (saver_done with wait).  What info points to must stay
 * until it is done; so must the pieces as they are, unless beside training.  < 0: group or device
 * failed; that the checkpoint cannot be written is for saver_done to say. */
int saver_start(struct saver *s, const struct checkpoint_info *info, struct err *e);

enum saver_state { SAVER_NOTHING, SAVER_SAVED, SAVER_FAILED };
/* What has become of the checkpoint since the last call, the same on all ranks: nothing new; that of
 * *step is on disk; or it could not be written, e says why, and the earlier ones stand.
 * wait: until nothing is being saved.  < 0: the group failed. */
int saver_done(struct saver *s, bool wait, int64_t *step, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
