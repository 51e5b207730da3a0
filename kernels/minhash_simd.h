/* kernels/minhash_simd.h -- inside minhash.c: the loops, once for each instruction set. */
#ifndef KERNELS_MINHASH_SIMD_H
#define KERNELS_MINHASH_SIMD_H

#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"

/* For j < padded: min[j] becomes the least of itself and, over all hashes,
 *     t = a[j] h + b1[j];  ((t + (t >> 61)) mod 2^61
 * where b1 = b + 1.  minhash.c says what that is good for. */
ISA_DECLARE(void, minhash_m61_min, (const uint64_t *a, const uint64_t *b1, int padded,
                                    const uint64_t *hash, size_t count, uint64_t *min));
/* min[j] becomes the least of itself and all (a[j] h + b[j]) mod 2^32. */
ISA_DECLARE(void, minhash_u32_min, (const uint32_t *a, const uint32_t *b, int padded,
                                    const uint64_t *hash, size_t count, uint32_t *min));
/* min[j] becomes the least of itself and the low 32 bits of all ((a[j] h + b[j]) mod 2^64) mod (2^61 - 1). */
ISA_DECLARE(void, minhash_low32_min, (const uint64_t *a, const uint64_t *b, int padded,
                                      const uint64_t *hash, size_t count, uint64_t *min));
#endif
