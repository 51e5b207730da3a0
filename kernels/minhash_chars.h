/* kernels/minhash_chars.h -- from text to signatures: shingles of some consecutive characters,
 * hashed with MurmurHash3_x86_32, 1 where that is 0 (cuDF's nvtext::minhash, which NeMo
 * Curator calls with 24 characters and 260 functions). */
#ifndef KERNELS_MINHASH_CHARS_H
#define KERNELS_MINHASH_CHARS_H

#include <stdbool.h>

#include "kernels/minhash_sign.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MINHASH_CHARS_MAX = 256, MINHASH_CHARS_PADDING = 8 };

struct minhash_chars {
    struct ragged docs; /* bytes of valid UTF-8 (else the signatures mean nothing) */
    const char *text;   /* 4-byte aligned, MINHASH_CHARS_PADDING readable bytes behind it */
    int width;          /* characters in a shingle, 1..MINHASH_CHARS_MAX */
    bool short_whole;   /* a document shorter than that is one shingle; else it has none */
    uint32_t seed;
};

/* sig as in minhash_sign.h; m is of MINHASH_U32.  ERR_ARG. */
typedef int minhash_chars_fn(struct device *dev, const struct minhash *m, const struct minhash_chars *p,
                             uint64_t *sig, struct err *e);
minhash_chars_fn minhash_chars_cpu, minhash_chars_cuda;

#ifdef __cplusplus
}
#endif
#endif
