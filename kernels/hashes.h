/* kernels/hashes.h -- hash functions that host and device code share, written once.
 *
 * XXH64 and XXH3 by Y. Collet's specification of xxHash, MurmurHash3_x86_32 by A. Appleby's
 * code; held against those libraries in tests/unit/twins_test.c.  Plain C that is also CUDA
 * C++: a .cu file gets device functions (with SIMT, tests/simt.h, compiled for the CPU),
 * everything else host functions.  Little endian.
 * base/hash.h has the library's, which are faster on a CPU.
 */
#ifndef KERNELS_HASHES_H
#define KERNELS_HASHES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define HASH_FN static __device__ __forceinline__
#else
#define HASH_FN static inline __attribute__((unused))
#endif

#define XXH64_P1 0x9E3779B185EBCA87ull
#define XXH64_P2 0xC2B2AE3D27D4EB4Full
#define XXH64_P3 0x165667B19E3779F9ull
#define XXH64_P4 0x85EBCA77C2B2AE63ull
#define XXH64_P5 0x27D4EB2F165667C5ull
#define XXH32_P1 0x9E3779B1u
#define XXH32_P2 0x85EBCA77u
#define XXH32_P3 0xC2B2AE3Du

HASH_FN uint32_t hash_rotl32(uint32_t x, int n) { return x << n | x >> (32 - n); }
HASH_FN uint64_t hash_rotl64(uint64_t x, int n) { return x << n | x >> (64 - n); }

/* Any alignment. */
HASH_FN uint32_t hash_read32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
HASH_FN uint64_t hash_read64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* ---- MurmurHash3_x86_32: h = seed; add each 4 bytes; add the 0 to 3 that are left; end ---- */

HASH_FN uint32_t murmur3_mixed(uint32_t k) { return hash_rotl32(k * 0xcc9e2d51u, 15) * 0x1b873593u; }
HASH_FN uint32_t murmur3_add(uint32_t h, uint32_t k)
{
    return hash_rotl32(h ^ murmur3_mixed(k), 13) * 5 + 0xe6546b64u;
}
HASH_FN uint32_t murmur3_end(uint32_t h, uint32_t n)
{
    h ^= n;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}
HASH_FN uint32_t murmur3(const unsigned char *p, uint32_t n, uint32_t seed)
{
    uint32_t h = seed, k = 0, i = 0;

    for (; i + 4 <= n; i += 4)
        h = murmur3_add(h, hash_read32(p + i));
    for (uint32_t j = n; j-- > i;)
        k = k << 8 | p[j];
    return murmur3_end(h ^ murmur3_mixed(k), n);
}

/* ---- XXH64, seed 0 ---- */

HASH_FN uint64_t xxh64_round(uint64_t acc, uint64_t in)
{
    return hash_rotl64(acc + in * XXH64_P2, 31) * XXH64_P1;
}
HASH_FN uint64_t xxh64_merge(uint64_t h, uint64_t acc)
{
    return (h ^ xxh64_round(0, acc)) * XXH64_P1 + XXH64_P4;
}
HASH_FN uint64_t xxh64_avalanche(uint64_t h)
{
    h = (h ^ h >> 33) * XXH64_P2;
    h = (h ^ h >> 29) * XXH64_P3;
    return h ^ h >> 32;
}
HASH_FN uint64_t xxh64(const unsigned char *p, size_t n)
{
    uint64_t h = XXH64_P5;
    size_t left = n;

    if (n >= 32) {
        uint64_t a = XXH64_P1 + XXH64_P2, b = XXH64_P2, c = 0, d = 0 - XXH64_P1;
        for (; left >= 32; p += 32, left -= 32) {
            a = xxh64_round(a, hash_read64(p));
            b = xxh64_round(b, hash_read64(p + 8));
            c = xxh64_round(c, hash_read64(p + 16));
            d = xxh64_round(d, hash_read64(p + 24));
        }
        h = hash_rotl64(a, 1) + hash_rotl64(b, 7) + hash_rotl64(c, 12) + hash_rotl64(d, 18);
        h = xxh64_merge(xxh64_merge(xxh64_merge(xxh64_merge(h, a), b), c), d);
    }
    h += n;
    for (; left >= 8; p += 8, left -= 8)
        h = hash_rotl64(h ^ xxh64_round(0, hash_read64(p)), 27) * XXH64_P1 + XXH64_P4;
    for (; left >= 4; p += 4, left -= 4)
        h = hash_rotl64(h ^ hash_read32(p) * XXH64_P1, 23) * XXH64_P2 + XXH64_P3;
    for (; left; p++, left--)
        h = hash_rotl64(h ^ *p * XXH64_P5, 11) * XXH64_P1;
    return xxh64_avalanche(h);
}

/* ---- XXH3, seed 0: 64 bits of n >= 1 whole words of 64 bits ---- */

/* The 8 bytes of the default secret that begin at byte `at`. */
HASH_FN uint64_t xxh3_secret(int at)
{
    static const uint64_t secret[24] = {
        0xbe4ba423396cfeb8ull, 0x1cad21f72c81017cull, 0xdb979083e96dd4deull, 0x1f67b3b7a4a44072ull,
        0x78e5c0cc4ee679cbull, 0x2172ffcc7dd05a82ull, 0x8e2443f7744608b8ull, 0x4c263a81e69035e0ull,
        0xcb00c391bb52283cull, 0xa32e531b8b65d088ull, 0x4ef90da297486471ull, 0xd8acdea946ef1938ull,
        0x3f349ce33f76faa8ull, 0x1d4f0bc7c7bbdcf9ull, 0x3159b4cd4be0518aull, 0x647378d9c97e9fc8ull,
        0xc3ebd33483acc5eaull, 0xeb6313faffa081c5ull, 0x49daf0b751dd0d17ull, 0x9e68d429265516d3ull,
        0xfca1477d58be162bull, 0xce31d07ad1b8f88full, 0x280416958f3acb45ull, 0x7e404bbbcafbd7afull,
    };
    int shift = at % 8 * 8;
    uint64_t low = secret[at / 8] >> shift;

    return shift ? low | secret[at / 8 + 1] << (64 - shift) : low;
}
HASH_FN uint64_t hash_high64(uint64_t a, uint64_t b)
{
#if defined(__CUDACC__) || defined(SIMT)
    return __umul64hi(a, b);
#else
    return (uint64_t)((unsigned __int128)a * b >> 64);
#endif
}
HASH_FN uint64_t xxh3_fold(uint64_t a, uint64_t b) { return a * b ^ hash_high64(a, b); }
HASH_FN uint64_t xxh3_avalanche(uint64_t h)
{
    h = (h ^ h >> 37) * 0x165667919E3779F9ull;
    return h ^ h >> 32;
}
/* Two words against 16 bytes of the secret. */
HASH_FN uint64_t xxh3_mix(const uint64_t *w, int at)
{
    return xxh3_fold(w[0] ^ xxh3_secret(at), w[1] ^ xxh3_secret(at + 8));
}
HASH_FN uint64_t xxh3_one(uint64_t w)
{
    uint64_t h = (w >> 32 | w << 32) ^ xxh3_secret(8) ^ xxh3_secret(16);

    h ^= hash_rotl64(h, 49) ^ hash_rotl64(h, 24);
    h *= 0x9FB21C651E98DF25ull;
    h = (h ^ ((h >> 35) + 8)) * 0x9FB21C651E98DF25ull;
    return h ^ h >> 28;
}
HASH_FN uint64_t hash_swap64(uint64_t x)
{
    x = (x & 0x00ff00ff00ff00ffull) << 8 | (x >> 8 & 0x00ff00ff00ff00ffull);
    x = (x & 0x0000ffff0000ffffull) << 16 | (x >> 16 & 0x0000ffff0000ffffull);
    return x << 32 | x >> 32;
}
HASH_FN uint64_t xxh3_two(const uint64_t *w)
{
    uint64_t lo = w[0] ^ xxh3_secret(24) ^ xxh3_secret(32);
    uint64_t hi = w[1] ^ xxh3_secret(40) ^ xxh3_secret(48);

    return xxh3_avalanche(16 + hash_swap64(lo) + hi + xxh3_fold(lo, hi));
}
/* One stripe of 64 bytes against the secret from `at` on. */
HASH_FN void xxh3_stripe(uint64_t *acc, const uint64_t *w, int at)
{
    for (int i = 0; i < 8; i++) {
        uint64_t key = w[i] ^ xxh3_secret(at + 8 * i);
        acc[i ^ 1] += w[i];
        acc[i] += (key & 0xffffffffu) * (key >> 32);
    }
}
HASH_FN uint64_t xxh3_long(const uint64_t *w, int n)
{
    uint64_t acc[8] = {XXH32_P3, XXH64_P1, XXH64_P2, XXH64_P3, XXH64_P4, XXH32_P2, XXH64_P5, XXH32_P1};
    uint64_t h = (uint64_t)n * 8 * XXH64_P1;

    for (int s = 0; s < (n - 1) / 8; s++) { /* 16 stripes a block */
        xxh3_stripe(acc, w + 8 * s, s % 16 * 8);
        if (s % 16 == 15)
            for (int i = 0; i < 8; i++)
                acc[i] = (acc[i] ^ acc[i] >> 47 ^ xxh3_secret(128 + 8 * i)) * XXH32_P1;
    }
    xxh3_stripe(acc, w + n - 8, 121);
    for (int i = 0; i < 4; i++)
        h += xxh3_fold(acc[2 * i] ^ xxh3_secret(11 + 16 * i), acc[2 * i + 1] ^ xxh3_secret(19 + 16 * i));
    return xxh3_avalanche(h);
}
HASH_FN uint64_t xxh3_words(const uint64_t *w, int n)
{
    uint64_t h = (uint64_t)n * 8 * XXH64_P1;

    if (n <= 2)
        return n == 1 ? xxh3_one(w[0]) : xxh3_two(w);
    if (n > 30)
        return xxh3_long(w, n);
    if (n <= 16) { /* from both ends inwards */
        for (int i = (n - 1) / 4; i >= 0; i--)
            h += xxh3_mix(w + 2 * i, 32 * i) + xxh3_mix(w + n - 2 - 2 * i, 32 * i + 16);
        return xxh3_avalanche(h);
    }
    for (int i = 0; i < 8; i++)
        h += xxh3_mix(w + 2 * i, 16 * i);
    h = xxh3_avalanche(h);
    for (int i = 8; i < n / 2; i++)
        h += xxh3_mix(w + 2 * i, 16 * (i - 8) + 3);
    return xxh3_avalanche(h + xxh3_mix(w + n - 2, 119));
}
#endif
