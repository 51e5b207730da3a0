/* train/zero_host.h -- a shard whose optimizer state is on the host; for zero_shard.c.
 *
 * Gradients of the shard come down in parts, the host updates main weights and state, and what the model computes
 * with goes up: a part of the gradients is on its way while the one before it is updated.  Of the two devices one may be the CPU
 * for a test.
 */
#ifndef TRAIN_ZERO_HOST_H
#define TRAIN_ZERO_HOST_H

#include "train/zero_shard.h"

/* Bytes of pinned memory for what is on its way. */
size_t zero_host_stage_bytes(void);
int zero_host_open(struct zero_shard *z, struct err *e);
void zero_host_close(struct zero_shard *z);

/* The main weights were written: the buffer's, or those that are sent, follow. */
int zero_host_weights_changed(struct zero_shard *z, struct err *e);
/* s->grad_scale is in the host's memory. */
int zero_host_update(struct zero_shard *z, const struct optim_step *s, struct err *e);

#endif
