/* tokenize/train_write.h -- the trainer's result as files. */
#ifndef TOKENIZE_TRAIN_WRITE_H
#define TOKENIZE_TRAIN_WRITE_H

#include "tokenize/merges.h"
#include "tokenize/train.h"
#include "tokenize/vocab.h"

/* True if the i-th special token is one before it too. */
bool train_is_repeated(const struct train_options *x, int i);

/* Writes what the options ask for, of the tokens in v (as they stand in tokenizer.json), the tokens of the
 * 256 bytes, and n merges.  No file appears before all are written out. */
int train_write(const struct train_options *x, const struct vocab *v, const uint32_t byte_id[256],
                const struct merge *m, size_t n, struct err *e);

#endif
