/* tests/bare/xxhash.h -- stands for xxHash in the programs of make gpu-check and gpu-bench on a machine without it.  XXH3_128bits
 * is the real one, for what a GPU hashes is held against it; the others give other numbers, for seeds alone. */
#ifndef TESTS_BARE_XXHASH_H
#define TESTS_BARE_XXHASH_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/hashes.h"

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

/* Two sums each folded with the secret from byte `at` on, all added up. */
static inline uint64_t bare_merge(const uint64_t sum[8], int at, uint64_t all)
{
    for (int i = 0; i < 8; i += 2)
        all += xxh3_fold(sum[i] ^ xxh3_secret(at + 8 * i), sum[i + 1] ^ xxh3_secret(at + 8 * i + 8));
    return xxh3_avalanche(all);
}

static inline void bare_stripe(uint64_t sum[8], const unsigned char *p, int at)
{
    uint64_t w[8];

    memcpy(w, p, sizeof w);
    xxh3_stripe(sum, w, at);
}

static inline XXH128_hash_t XXH3_128bits(const void *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    uint64_t sum[8] = {XXH32_P3, XXH64_P1, XXH64_P2, XXH64_P3, XXH64_P4, XXH32_P2, XXH64_P5, XXH32_P1}, stripes = (n - 1) / 64;
    XXH128_hash_t h;

    if (n <= 240) {
        struct xxh3_128 r = xxh3_128_short(p, (uint32_t)n);

        h.low64 = r.lo;
        h.high64 = r.hi;
        return h;
    }
    for (uint64_t k = 0; k < stripes; k++) {
        bare_stripe(sum, p + 64 * k, (int)(k % 16) * 8);
        for (int i = 0; i < 8 && k % 16 == 15; i++)
            sum[i] = (sum[i] ^ sum[i] >> 47 ^ xxh3_secret(128 + 8 * i)) * XXH32_P1;
    }
    bare_stripe(sum, p + n - 64, 121);
    h.low64 = bare_merge(sum, 11, n * XXH64_P1);
    h.high64 = bare_merge(sum, 117, ~(n * XXH64_P2));
    return h;
}

static inline XXH128_hash_t XXH3_128bits_withSeed(const void *p, size_t n, uint64_t seed)
{
    XXH128_hash_t h = {XXH64(p, n, seed + 2), XXH64(p, n, seed + 3)};
    return h;
}

#endif
