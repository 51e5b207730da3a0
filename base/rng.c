#include "base/rng.h"

#include <math.h>

void rng_mt_seed(struct rng_mt *r, uint32_t seed)
{
    r->mt[0] = seed;
    for (uint32_t i = 1; i < 624; i++)
        r->mt[i] = 1812433253u * (r->mt[i - 1] ^ (r->mt[i - 1] >> 30)) + i;
    r->at = 624;
}

static inline uint32_t twist(uint32_t high, uint32_t low)
{
    uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return y >> 1 ^ (-(y & 1u) & 0x9908b0dfu);
}

/* In three pieces, so that no index wraps and the compiler can use vectors. */
static void refill(struct rng_mt *r)
{
    uint32_t *mt = r->mt;

    for (int i = 0; i < 227; i++)
        mt[i] = mt[i + 397] ^ twist(mt[i], mt[i + 1]);
    for (int i = 227; i < 623; i++)
        mt[i] = mt[i - 227] ^ twist(mt[i], mt[i + 1]);
    mt[623] = mt[396] ^ twist(mt[623], mt[0]);
    r->at = 0;
}

uint32_t rng_mt_u32(struct rng_mt *r)
{
    uint32_t y;

    if (r->at >= 624)
        refill(r);
    y = r->mt[r->at++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

uint64_t rng_mt_u64(struct rng_mt *r)
{
    uint64_t hi = rng_mt_u32(r);
    return hi << 32 | rng_mt_u32(r);
}

uint64_t rng_mt_interval(struct rng_mt *r, uint64_t max)
{
    uint64_t mask, v;

    if (max == 0)
        return 0;
    mask = UINT64_MAX >> __builtin_clzll(max);
    do
        v = (max <= 0xffffffffu ? rng_mt_u32(r) : rng_mt_u64(r)) & mask;
    while (v > max);
    return v;
}

double rng_mt_double(struct rng_mt *r)
{
    uint32_t a = rng_mt_u32(r) >> 5, b = rng_mt_u32(r) >> 6;
    return (a * 67108864.0 + b) / 9007199254740992.0;
}

/* The partners of the next elements are drawn ahead and fetched into the cache: on a
 * large array nearly every exchange would wait for memory. */
enum { AHEAD = 64 };
#define SHUFFLE(type)                                                          \
    do {                                                                       \
        size_t at[AHEAD];                                                      \
        while (n > 1) {                                                        \
            size_t k = n - 1 < AHEAD ? n - 1 : AHEAD;                          \
            for (size_t b = 0; b < k; b++) {                                   \
                at[b] = (size_t)rng_mt_interval(r, n - 1 - b);                 \
                __builtin_prefetch(&a[at[b]], 1);                              \
            }                                                                  \
            for (size_t b = 0; b < k; b++) {                                   \
                type t = a[n - 1 - b];                                         \
                a[n - 1 - b] = a[at[b]];                                       \
                a[at[b]] = t;                                                  \
            }                                                                  \
            n -= k;                                                            \
        }                                                                      \
    } while (0)

void rng_mt_shuffle_u32(struct rng_mt *r, uint32_t *a, size_t n)
{
    SHUFFLE(uint32_t);
}

void rng_mt_shuffle_u64(struct rng_mt *r, uint64_t *a, size_t n)
{
    SHUFFLE(uint64_t);
}

void rng_normal2(uint32_t w0, uint32_t w1, double out[2])
{
    double u = (w0 + 1.0) * (1.0 / 4294967296.0); /* (0, 1]: log is finite */
    double a = w1 * (6.283185307179586476925287 / 4294967296.0);
    double m = sqrt(-2.0 * log(u));

    out[0] = m * cos(a);
    out[1] = m * sin(a);
}
