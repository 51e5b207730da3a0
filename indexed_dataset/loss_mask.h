/* indexed_dataset/loss_mask.h -- which tokens of a dataset have a loss.
 *
 * Beside PREFIX.bin and .idx may stand a dataset PREFIX_loss_mask of the same documents and sequences, one u8 a token: 1 where
 * the token is to be predicted, 0 where it is only read.  So any reader of indexed datasets reads it, and one that does not know
 * of it reads the tokens as before.
 */
#ifndef INDEXED_DATASET_LOSS_MASK_H
#define INDEXED_DATASET_LOSS_MASK_H

#include "base/err.h"
#include "indexed_dataset/idx_read.h"

#define LOSS_MASK_SUFFIX "_loss_mask"

/* Opens the mask of x; *mask is NULL when there is none.  ERR_FORMAT: it is not of the same sequences. */
int loss_mask_open(struct idx **mask, const struct idx *x, struct err *e);
#endif
