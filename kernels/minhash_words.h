/* kernels/minhash_words.h -- hashes of windows of words, of a batch of documents at once. */
#ifndef KERNELS_MINHASH_WORDS_H
#define KERNELS_MINHASH_WORDS_H

#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device;

/* hash[i], i < count: XXH64 with seed 0 of text[start[i] .. start[i + width] - 1), words with
 * one byte between them.  start has count + width places and ascends.  The words of
 * many documents may follow one another: the windows that reach from one into the next
 * are hashed too, and left out by the gaps of the ragged array.  WINDOW_PADDING readable bytes
 * (kernels/minhash_window.h) behind the text.  width >= 1. */
typedef int minhash_words_fn(struct device *dev, const char *text, const uint32_t *start, int width,
                             int64_t count, uint64_t *hash, struct err *e);
minhash_words_fn minhash_words_cpu, minhash_words_cuda;

#ifdef __cplusplus
}
#endif
#endif
