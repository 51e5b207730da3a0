/* tokenize/train_write.h -- the trainer's result as a file. */
#ifndef TOKENIZE_TRAIN_WRITE_H
#define TOKENIZE_TRAIN_WRITE_H

#include "tokenize/merges.h"
#include "tokenize/split.h"
#include "tokenize/train.h"
#include "tokenize/vocab.h"

/* Writes a tokenizer.json of the tokens in v (as they stand in the file) and the n merges
 * that were found; *n_merges: how many are left without repetitions.  Atomic. */
int train_write(const char *path, const struct train_options *x, const struct vocab *v, const struct merge *m,
                size_t n, uint32_t *n_merges, struct err *e);

#endif
