/* kernels/minhash_window.h -- hashes of windows that slide over words. */
#ifndef KERNELS_MINHASH_WINDOW_H
#define KERNELS_MINHASH_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes behind the last window that must be readable (their values do not matter). */
enum { WINDOW_PADDING = 8 };

/* hash[i], i < count: XXH64 with seed 0 of text[start[i] .. start[i + width] - 1), words
 * that stand with one byte between them: start has count + width places.  The same
 * values for every instruction set. */
ISA_DECLARE(void, minhash_window, (const char *text, const uint32_t *start, int width,
                                   size_t count, uint64_t *hash));
/* hash[i]: MurmurHash3_x86_32 of text[start[i] .. start[i + width]), characters of one
 * byte or more; 1 where that is 0.  start has count + width places. */
ISA_DECLARE(void, minhash_window_chars, (const char *text, const uint32_t *start, int width,
                                         size_t count, uint32_t seed, uint64_t *hash));

#ifdef __cplusplus
}
#endif
#endif
