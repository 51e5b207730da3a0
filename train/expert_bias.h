/* train/expert_bias.h -- experts kept evenly used without a loss (arXiv:2408.15664): each has a bias, which is added to its
 * sigmoid for the choice alone.
 *
 * Biases are fp32 and have no gradient.  How many tokens of a step chose an expert is counted in backward, those too that a
 * capacity drops, and added up over all ranks that have the layer: integers, so a bias is the same to the last bit however the
 * work is divided.  A checkpoint has them beside the weights, decoder.layers.N.mlp.router.expert_bias.
 */
#ifndef TRAIN_EXPERT_BIAS_H
#define TRAIN_EXPERT_BIAS_H

#include "train/checkpoint.h"
#include "train/layout.h"
#include "train/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* After a step: each bias grows by rate where its expert was chosen less often than the mean, falls by it where more often; 0:
 * the counts are forgotten.  All ranks call it. */
int expert_bias_end_step(const struct layout *l, struct train_part *parts, int n, double rate, struct err *e);

/* Appends the biases, of the host's memory or the device's, to *v, of *n pieces, which it reallocates.  ERR_NOMEM. */
int expert_bias_pieces(const struct train_part *parts, int n_parts, bool host, struct piece **v, int *n, struct err *e);

/* Takes up a checkpoint's. */
int expert_bias_load(struct model *m, const struct checkpoint *ck, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
