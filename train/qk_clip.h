/* train/qk_clip.h -- logits of attention kept from growing (QK-clip of MuonClip, arXiv:2507.20534, section 2.1).
 *
 * Forward leaves the largest logit S of each head of a step: of all its sequences, micro-batches and ranks, queries times keys by
 * their scale, before the softmax.  Behind the update, where S is above a threshold, with eta = threshold / S, what makes queries
 * is scaled by eta^alpha and what makes keys by eta^(1 - alpha): of groups of queries by the largest S of a group, since its
 * heads have one key; with latents the rows that do not turn so, and those of queries that turn by eta, since all heads have
 * one key that turns.
 */
#ifndef TRAIN_QK_CLIP_H
#define TRAIN_QK_CLIP_H

#include "train/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Before a step: no logit has been seen.  Nothing where nobody asks (struct optim_conf). */
int qk_clip_begin(struct train_part *parts, int n, struct err *e);

/* Behind its update: *most gets the largest logit of the whole model, 0 where none was above; NaN where nobody asks.  All ranks
 * call it. */
int qk_clip_end(const struct optim_conf *c, const struct layout *l, struct train_part *parts, int n, double *most, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
