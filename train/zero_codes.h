/* train/zero_codes.h -- moments of eight bits (kernels/eight_bit.h) of a shard, in checkpoints; for zero_shard.c and optimizer.c.
 *
 * A block is 256 elements of a logical tensor, row by row.  So that nobody has part of one, parameters and shards begin at
 * multiples of 256 of a flat buffer, and tensor ranks whose share of a parameter would begin or end within a block are refused:
 * codes and scales then do not depend on who has which.  In files a moment is what its codes stand for, in fp32, and its scales
 * are a tensor beside it: [rows, columns / 256] where that is a whole number, else [blocks].  From both the codes come back as
 * they were; where there are no scales, new codes are made.
 */
#ifndef TRAIN_ZERO_CODES_H
#define TRAIN_ZERO_CODES_H

#include "train/checkpoint.h"
#include "train/zero_shard.h"

/* Of which state the scales are of this part of a checkpoint; CHECKPOINT_WEIGHTS: it is none of scales. */
enum checkpoint_part zero_scaled(enum checkpoint_part part);
/* The scales of a range of the i-th state, as pieces of that part; v has room for 3 * PIECES_PER_PARAM.  How many. */
int zero_scale_pieces(const struct zero_shard *z, int i, enum checkpoint_part part, const struct shard_range *r, struct piece *v);
/* Loads all moments of eight bits, from a checkpoint whose scales have been loaded if there are any. */
int zero_codes_load(struct zero_shard *z, const struct checkpoint *ck, struct err *e);

#endif
