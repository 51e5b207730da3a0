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
/* zero_momentum. */
int zero_host_momentum(struct zero_shard *z, const struct optim_momentum *m, double grad_scale, struct err *e);
/* Of zero_shard.c: the momentum m (n) takes up gradients (n), which become what the update is to be made of; both are dev's. */
int zero_take_up(struct device *dev, const struct optim_momentum *p, double grad_scale, float *m, float *grad, size_t n,
                 struct err *e);
/* s->grad_scale is in the host's memory. */
int zero_host_update(struct zero_shard *z, const struct optim_step *s, struct err *e);

#endif
