#include "base/rng.h"

#include <math.h>

void rng_mt_seed(struct rng_mt *r, uint32_t seed)
{
    r->mt[0] = seed;
    for (uint32_t i = 1; i < 624; i++)
        r->mt[i] = 1812433253u * (r->mt[i - 1] ^ (r->mt[i - 1] >> 30)) + i;
    r->at = 624;
}

static void refill(struct rng_mt *r)
{
    for (int i = 0; i < 624; i++) {
        uint32_t y = (r->mt[i] & 0x80000000u) | (r->mt[(i + 1) % 624] & 0x7fffffffu);
        r->mt[i] = r->mt[(i + 397) % 624] ^ (y >> 1) ^ ((y & 1u) ? 0x9908b0dfu : 0u);
    }
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

void rng_mt_shuffle_u32(struct rng_mt *r, uint32_t *a, size_t n)
{
    for (size_t i = n; i-- > 1;) {
        size_t j = (size_t)rng_mt_interval(r, i);
        uint32_t t = a[i];
        a[i] = a[j];
        a[j] = t;
    }
}

void rng_mt_shuffle_u64(struct rng_mt *r, uint64_t *a, size_t n)
{
    for (size_t i = n; i-- > 1;) {
        size_t j = (size_t)rng_mt_interval(r, i);
        uint64_t t = a[i];
        a[i] = a[j];
        a[j] = t;
    }
}

void rng_normal2(uint32_t w0, uint32_t w1, double out[2])
{
    double u = (w0 + 1.0) * (1.0 / 4294967296.0); /* (0, 1]: log is finite */
    double a = w1 * (6.283185307179586476925287 / 4294967296.0);
    double m = sqrt(-2.0 * log(u));

    out[0] = m * cos(a);
    out[1] = m * sin(a);
}
