/* tokenize/train_write.h -- the trainer's result as files. */
#ifndef TOKENIZE_TRAIN_WRITE_H
#define TOKENIZE_TRAIN_WRITE_H

#include "tokenize/merges.h"
#include "tokenize/train_symbols.h"

/* True if the i-th special token is one before it too. */
bool train_is_repeated(const struct train_options *x, int i);

/* Writes what the options ask for, of the symbols' tokens and n merges.  No file appears before all are written out. */
int train_write(const struct train_options *x, const struct train_symbols *s, const struct merge *m, size_t n, struct err *e);

#endif
