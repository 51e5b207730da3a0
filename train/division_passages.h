/* train/division_passages.h -- sections of a divided store on their way through its buffers; for division.c. */
#ifndef TRAIN_DIVISION_PASSAGES_H
#define TRAIN_DIVISION_PASSAGES_H

#include "train/division.h"

/* Whether weights pass through buffers. */
static inline bool passages_of_weights(const struct division *d)
{
    return store_shares(&d->store->conf, SHARD_OPTIM_GRADS_PARAMS);
}

/* As the division's functions of like names. */
int passages_read(struct division *d, int section, bool back, struct err *e);
int passages_left(struct division *d, int section, struct err *e);
int passages_settle(struct division *d, struct err *e);
/* The share has new weights: what is in the buffers is old.  begin: forward's first sections are on their way. */
int passages_forget(struct division *d, bool begin, struct err *e);

int passages_write(struct division *d, int section, struct err *e);
int passages_wrote(struct division *d, int section, int64_t i, int64_t n, struct err *e);
int passages_reduce(struct division *d, struct err *e);

#endif
