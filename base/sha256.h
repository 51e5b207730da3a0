/* base/sha256.h -- SHA-256 (FIPS 180-4), by nettle. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

enum { SHA256_SUM = 32 };

/* Whether this build has nettle; without it sums are all zero. */
bool sha256_is_built(void);
/* Of n spans, one after another. */
void sha256_of(const struct span *part, int n, uint8_t sum[SHA256_SUM]);
/* As 64 hexadecimal digits and a NUL. */
void sha256_hex(const uint8_t sum[SHA256_SUM], char hex[2 * SHA256_SUM + 1]);
#endif
