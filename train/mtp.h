/* train/mtp.h -- tokens behind the next one are predicted too (multi-token prediction, arXiv:2412.19437, 2.2), in training alone.
 *
 * Depth k = 1 .. D has a layer of its own, as the last of the model.  With h_i^0 what the output layer takes, e the embedding,
 *     x_i = eh_proj [enorm(e(t_{i+k})); hnorm(h_i^{k-1})],      h_i^k = final_layernorm(layer(x_i)),
 * and the output layer makes of h_i^k the logits of t_{i+k+1}.  Embedding and output layer are the model's.  Where a sequence,
 * or a document that is told apart, has no such token there is no loss, and token 0 is embedded.  The mean loss of each depth
 * over a micro-batch's tokens counts 1 / D of --mtp-loss-scaling-factor beside the main one's.
 *
 * All of it runs when a micro-batch goes back, between the output layer and the final norm: depths forward one after the other,
 * then each backward from its logits.  So what they keep lives no longer than that, and evaluation has none of it.
 */
#ifndef TRAIN_MTP_H
#define TRAIN_MTP_H

#include "train/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements of int32_t or float that mtp_rows() fills for each depth: so many of each token of whole sequences. */
enum { MTP_ROWS = 4 };

/* Tokens and targets of batch, whole sequences, to those of all depths: rows gets them, lying in room, and weight[k] how much
 * each loss of depth k counts in the mean of them that is logged. */
void mtp_rows(const struct model *m, const struct model_batch *batch, int32_t *room, struct mtp_rows *rows, double *weight);
/* Queues them for the device. */
int mtp_take(struct model *m, const struct mtp_depth *d, const struct mtp_rows *rows, struct err *e);
/* Forward and backward of all depths.  *dy: the gradient of what the output layer takes, of the rows that are here, which becomes
 * that by way of all depths too. */
int mtp_back(struct model *m, const struct pass *p, void **dy, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
