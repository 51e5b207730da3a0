/* tokenize/word_hash.h -- keys and hashes of word_table.h's entries. */
#ifndef TOKENIZE_WORD_HASH_H
#define TOKENIZE_WORD_HASH_H

#include <stdint.h>
#include <string.h>

/* The low 52 bits of a product, which AVX-512 has for eight numbers at once; the upper of them are
 * the hash. */
#define WORD_HASH_LO UINT64_C(0x9E3779B97F4A7)
#define WORD_HASH_HI UINT64_C(0xC2B2AE3D27D4F)
enum { WORD_HASH_FOLD = 29 };

static inline uint64_t word_hash_mix(uint64_t x, uint64_t by)
{
    x = (x ^ x >> WORD_HASH_FOLD) & ((UINT64_C(1) << 52) - 1);
    return x * by & ((UINT64_C(1) << 52) - 1);
}

static inline uint64_t word_load(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}

/* The key of a piece of 1 to 15 bytes: the piece, zeros, its length. */
struct word_key {
    uint64_t lo, hi;
};
static inline struct word_key word_key_of(const uint8_t *p, size_t n)
{
    struct word_key k = {0, (uint64_t)n << 56};
    uint32_t a, b;

    if (n >= 8) {
        unsigned half = (unsigned)(16 - n) * 4; /* of a shift by up to 64 */
        k.lo = word_load(p);
        k.hi |= word_load(p + n - 8) >> half >> half;
    } else if (n >= 4) {
        memcpy(&a, p, 4);
        memcpy(&b, p + n - 4, 4);
        k.lo = a | (uint64_t)b << 8 * (n - 4);
    } else {
        k.lo = p[0] | (uint64_t)p[n / 2] << 8 * (n / 2) | (uint64_t)p[n - 1] << 8 * (n - 1);
    }
    return k;
}

/* 52 bits. */
static inline uint64_t word_hash_key(uint64_t lo, uint64_t hi)
{
    return word_hash_mix(lo, WORD_HASH_LO) ^ word_hash_mix(hi, WORD_HASH_HI);
}

/* Where the set of a key with this hash begins, in bytes: sets have 2^WORD_SET_SHIFT, and there are at most 2^18. */
enum { WORD_SET_SHIFT = 6, WORD_HASH_SHIFT = 52 - 18 - WORD_SET_SHIFT };
static inline uint64_t word_set(uint64_t hash, uint64_t set_mask)
{
    return hash >> WORD_HASH_SHIFT & set_mask;
}

/* Of a piece of 16 bytes and more. */
static inline uint64_t word_hash_long(const uint8_t *p, size_t n)
{
    uint64_t h = n;

    for (size_t i = 0; i + 8 < n; i += 8)
        h = (h ^ word_load(p + i)) * UINT64_C(0x9E3779B97F4A7C15), h ^= h >> 29;
    h = (h ^ word_load(p + n - 8)) * UINT64_C(0xC2B2AE3D27D4EB4F);
    return __builtin_bswap64(h); /* a product's last bits do not know the first ones of what was multiplied */
}

#endif
