/* kernels/text_hash.h -- XXH3-128 (seed 0) of many texts: what tells texts apart where only copies count. */
#ifndef KERNELS_TEXT_HASH_H
#define KERNELS_TEXT_HASH_H

#include "base/err.h"
#include "base/isa.h"
#include "kernels/ragged.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device;

enum { TEXT_HASH_PADDING = 8 };

struct text_hash {
    struct ragged docs; /* bytes */
    const char *text;   /* 4-byte aligned, TEXT_HASH_PADDING readable bytes behind it */
    uint64_t *hash;     /* docs x 2: the low half, the high half */
};

typedef int text_hash_fn(struct device *dev, const struct text_hash *p, struct err *e);
text_hash_fn text_hash_cpu, text_hash_cuda;

/* One text, on the CPU; text_hash_cpu calls it, and asks for no alignment or padding. */
ISA_DECLARE(void, text_hash_one, (const void *p, uint64_t n, uint64_t hash[2]));

#ifdef __cplusplus
}
#endif
#endif
