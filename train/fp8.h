/* train/fp8.h -- the scales of FP8 (train/model_fp8.h) among ranks and in checkpoints.
 *
 * With delayed scaling all ranks that have the same weights or shares of the same layer scale alike: the largest
 * values of a step are those of all data-parallel, context and tensor ranks, of an expert those that have it.  A
 * checkpoint has, beside each weight of
 * a layer in FP8, a tensor fp8.NAME (3, 2 + history): a row for the input, the weight and the gradient of the
 * output, each the scale, its inverse, and the history.  With tensorwise scaling and by blocks there is nothing to keep.
 */
#ifndef TRAIN_FP8_H
#define TRAIN_FP8_H

#include "train/checkpoint.h"
#include "train/layout.h"
#include "train/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Behind all micro-batches of a step: new scales.  Does nothing where there are none. */
int fp8_end_step(const struct layout *l, struct train_part *parts, int n, struct err *e);

/* Appends what there is to keep to *v, of *n pieces, which it reallocates.  ERR_NOMEM. */
int fp8_pieces(const struct train_part *parts, int n_parts, struct piece **v, int *n, struct err *e);

/* Takes up a checkpoint's scales; from one without them, or with others (format, length of the history), the next step
 * begins as a first one does, and a warning says so. */
int fp8_load(struct train_part *parts, int n, const struct checkpoint *ck, const char *format, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
