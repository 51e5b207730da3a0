/* tokenize/train_write.h -- the trainer's result as files. */
#ifndef TOKENIZE_TRAIN_WRITE_H
#define TOKENIZE_TRAIN_WRITE_H

#include "tokenize/merges.h"
#include "tokenize/train_symbols.h"

/* True if the i-th special token is one before it too. */
bool train_is_repeated(const struct train_options *x, int i);

/* What cuts text into words; NULL: the kind's steps. */
const char *train_pattern(const struct train_options *x);
/* Appends a tokenizer.json of the symbols' tokens and n merges; pattern: what cuts text there, NULL: the kind's steps. */
int train_write_json(struct buf *b, const char *pattern, const struct train_options *x, const struct train_symbols *s,
                     const struct merge *m, size_t n, struct err *e);
/* Writes what the options ask for, of the symbols' tokens and n merges.  No file appears before all are written out. */
int train_write(const struct train_options *x, const struct train_symbols *s, const struct merge *m, size_t n, struct err *e);

#endif
