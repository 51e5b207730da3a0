/* tokenize/train_spm.h -- a trained tokenizer as a SentencePiece model.
 */
#ifndef TOKENIZE_TRAIN_SPM_H
#define TOKENIZE_TRAIN_SPM_H

#include "tokenize/train_symbols.h"

/* Appends the bytes of a .model (sentencepiece_model.proto): Unigram, or BPE with byte fallback, whose pieces join in the
 * order of their ids.  ERR_NOMEM. */
int train_spm_put(struct buf *b, const struct train_options *x, const struct train_symbols *s, struct err *e);

#endif
