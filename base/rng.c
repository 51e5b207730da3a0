#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

#include "base/err.h"

void rng_mt_seed(struct rng_mt *r, uint32_t seed)
{
    r->mt[0] = seed;
    for (uint32_t i = 1; i < 624; i++)
        r->mt[i] = 1812433253u * (r->mt[i - 1] ^ (r->mt[i - 1] >> 30)) + i;
    r->at = 624;
}

void rng_mt_seed_python(struct rng_mt *r, uint64_t seed)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t n = key[1] ? 2 : 1, i = 1, *mt = r->mt;

    rng_mt_seed(r, 19650218u);
    for (uint32_t k = 0; k < 624; k++) {
        mt[i] = (mt[i] ^ (mt[i - 1] ^ mt[i - 1] >> 30) * 1664525u) + key[k % n] + k % n;
        if (++i == 624) {
            mt[0] = mt[623];
            i = 1;
        }
    }
    for (uint32_t k = 0; k < 623; k++) {
        mt[i] = (mt[i] ^ (mt[i - 1] ^ mt[i - 1] >> 30) * 1566083941u) - i;
        if (++i == 624) {
            mt[0] = mt[623];
            i = 1;
        }
    }
    mt[0] = 0x80000000u;
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

static inline uint32_t temper(uint32_t y)
{
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

uint32_t rng_mt_u32(struct rng_mt *r)
{
    if (r->at >= 624)
        refill(r);
    return temper(r->mt[r->at++]);
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

/* For elements i, i - 1, ... above 0, n of them: whom each is exchanged with, by masked rejection as
 * rng_mt_interval().  Words are accepted without a branch: which are is as good as random. */
static void draw_partners(struct rng_mt *r, uint32_t i, size_t n, uint32_t *partner)
{
    uint32_t word[64];

    while (n) {
        uint32_t mask = UINT32_MAX >> __builtin_clz(i), low = (mask >> 1) + 1;
        size_t run = i - low + 1 < n ? i - low + 1 : n, k = 0; /* those of one mask */
        while (k < run) {
            size_t m = run - k < 64 ? run - k : 64;
            if (r->at >= 624)
                refill(r);
            m = m < (size_t)(624 - r->at) ? m : (size_t)(624 - r->at);
            for (size_t j = 0; j < m; j++)
                word[j] = temper(r->mt[r->at + (int)j]) & mask;
            r->at += (int)m;
            for (size_t j = 0; j < m; j++) {
                uint32_t yes = word[j] <= i;
                partner[k] = word[j];
                k += yes;
                i -= yes;
            }
        }
        partner += run;
        n -= run;
    }
}

/* The partners of the next elements are drawn ahead and fetched into the cache: on a
 * large array nearly every exchange would wait for memory. */
enum { AHEAD = 128 };
#define SHUFFLE(type)                                                          \
    do {                                                                       \
        uint32_t at[2][AHEAD];                                                 \
        size_t k = 0, next;                                                    \
        for (; n > (size_t)UINT32_MAX + 1; n--) {                              \
            size_t j = (size_t)rng_mt_interval(r, n - 1);                      \
            type t = a[n - 1];                                                 \
            a[n - 1] = a[j];                                                   \
            a[j] = t;                                                          \
        }                                                                      \
        for (int turn = 0; n > 1 || k; turn = !turn, k = next) {               \
            next = n < 2 ? 0 : n - 1 < AHEAD ? n - 1 : AHEAD;                  \
            if (next)                                                          \
                draw_partners(r, (uint32_t)(n - 1), next, at[turn]);           \
            for (size_t b = 0; b < next; b++)                                  \
                __builtin_prefetch(&a[at[turn][b]], 1);                        \
            for (size_t b = 0; b < k; b++) {                                   \
                type t = a[n + k - 1 - b];                                     \
                a[n + k - 1 - b] = a[at[!turn][b]];                            \
                a[at[!turn][b]] = t;                                           \
            }                                                                  \
            n -= next;                                                         \
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

void rng_mt_skip_shuffle(struct rng_mt *r, size_t n)
{
    uint32_t at[AHEAD];

    for (; n > (size_t)UINT32_MAX + 1; n--)
        rng_mt_interval(r, n - 1);
    while (n > 1) {
        size_t k = n - 1 < AHEAD ? n - 1 : AHEAD;
        draw_partners(r, (uint32_t)(n - 1), k, at);
        n -= k;
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

/* A number below n as Python draws it: its bits until they are one. */
static uint32_t below(struct rng_mt *r, uint32_t n)
{
    int bits = 32 - __builtin_clz(n);
    uint32_t v;

    do
        v = rng_mt_u32(r) >> (32 - bits);
    while (v >= n);
    return v;
}

int rng_mt_sample(struct rng_mt *r, uint32_t n, uint32_t k, uint32_t *out)
{
    uint64_t few = 21, power = 1;
    uint32_t *pool;

    while (k > 5 && power < 3 * (uint64_t)k)
        power *= 4;
    few += k > 5 ? power : 0;
    if (n > few) { /* drawn again where it was drawn before */
        for (uint32_t i = 0; i < k; i++) {
            uint32_t before = 0;

            out[i] = below(r, n);
            while (before < i)
                if (out[before++] == out[i]) {
                    out[i] = below(r, n);
                    before = 0;
                }
        }
        return 0;
    }
    pool = malloc(n * sizeof *pool);
    if (!pool)
        return ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        pool[i] = i;
    for (uint32_t i = 0; i < k; i++) {
        uint32_t at = below(r, n - i);

        out[i] = pool[at];
        pool[at] = pool[n - i - 1];
    }
    free(pool);
    return 0;
}
