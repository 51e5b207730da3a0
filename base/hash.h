/* base/hash.h -- XXH3 and XXH64, inlined (xxHash library, header only).
 *
 * Hashes are the same on every machine and instruction set.  Not for adversaries:
 * whoever can choose inputs can make XXH3 collide.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"

struct hash128 {
    uint64_t lo, hi;
};

static inline uint64_t hash_xxh3_64(struct span s)
{
    return XXH3_64bits(s.p, s.n);
}
static inline uint64_t hash_xxh3_64_seed(struct span s, uint64_t seed)
{
    return XXH3_64bits_withSeed(s.p, s.n, seed);
}
static inline struct hash128 hash_xxh3_128(struct span s)
{
    XXH128_hash_t h = XXH3_128bits(s.p, s.n);
    struct hash128 r = {h.low64, h.high64};
    return r;
}
static inline uint64_t hash_xxh64(struct span s, uint64_t seed)
{
    return XXH64(s.p, s.n, seed);
}
/* Scrambles a 64-bit integer (the finaliser of MurmurHash3): a bijection. */
static inline uint64_t hash_mix64(uint64_t x)
{
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return x ^ (x >> 33);
}
/* The integer of which hash_mix64 makes x. */
static inline uint64_t hash_unmix64(uint64_t x)
{
    x = (x ^ (x >> 33)) * 0x9cb4b2f8129337dbULL; /* the inverses modulo 2^64 of what mixing multiplies by */
    x = (x ^ (x >> 33)) * 0x4f74430c22a54005ULL;
    return x ^ (x >> 33);
}
#endif
