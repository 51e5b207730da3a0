/* train/division_host.h -- a division whose optimizer state is on the host; for division.c.
 *
 * Gradients of the share come down in pieces, the host's AdamW updates master weights and moments, and what the
 * model computes with goes up: a piece of gradients is on its way while the one before it is updated.  Of
 * the two devices one may be the CPU for a test.
 */
#ifndef TRAIN_DIVISION_HOST_H
#define TRAIN_DIVISION_HOST_H

#include "train/division.h"

/* Bytes of pinned memory for what is on its way. */
size_t host_stage_bytes(void);
int host_open(struct division *d, struct err *e);
void host_close(struct division *d);

/* The master weights were written: the store's, or the share that is sent, follow. */
int host_weights_changed(struct division *d, struct err *e);
/* AdamW; a->grad_scale is in the host's memory. */
int host_update(struct division *d, const struct adamw *a, double weight_decay, struct err *e);

#endif
