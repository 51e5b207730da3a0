/* tests/bare/xxhash.h -- stands for xxHash in the programs of make gpu-check and gpu-bench on a machine without it: other
 * numbers, for seeds alone. */
#ifndef TESTS_BARE_XXHASH_H
#define TESTS_BARE_XXHASH_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t XXH64_hash_t;
typedef struct {
    uint64_t low64, high64;
} XXH128_hash_t;

static inline uint64_t XXH64(const void *p, size_t n, uint64_t seed)
{
    uint64_t h = seed ^ 14695981039346656037ull;

    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)p)[i]) * 1099511628211ull;
    return h ^ h >> 32;
}
static inline uint64_t XXH3_64bits_withSeed(const void *p, size_t n, uint64_t seed) { return XXH64(p, n, seed + 1); }
static inline uint64_t XXH3_64bits(const void *p, size_t n) { return XXH64(p, n, 1); }

static inline XXH128_hash_t XXH3_128bits_withSeed(const void *p, size_t n, uint64_t seed)
{
    XXH128_hash_t h = {XXH64(p, n, seed + 2), XXH64(p, n, seed + 3)};
    return h;
}
static inline XXH128_hash_t XXH3_128bits(const void *p, size_t n) { return XXH3_128bits_withSeed(p, n, 0); }

#endif
