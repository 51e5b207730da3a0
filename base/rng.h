/* base/rng.h -- random numbers that anyone can reproduce.
 *
 * Two generators, each for one purpose:
 * - rng_mt: MT19937 as numpy's RandomState(seed) uses it, where we must draw the
 *   same numbers as Megatron or datatrove (Matsumoto and Nishimura 1998; numpy's
 *   legacy generator), and as Python's random module, where lm-evaluation-harness
 *   draws with that.
 * - rng_philox: Philox4x32-10 (Salmon et al. 2011), a pure function of (key,
 *   counter): initial weights, dropout, sampling.  The same on CPU and GPU and for
 *   any division of the work.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rng_mt {
    uint32_t mt[624];
    int at;
};

/* numpy.random.RandomState(seed) for one 32-bit seed (init_genrand). */
void rng_mt_seed(struct rng_mt *r, uint32_t seed);
/* random.Random(seed) of Python 3 (init_by_array of the words of seed, the lowest first). */
void rng_mt_seed_python(struct rng_mt *r, uint64_t seed);
/* random.Random.sample(range(n), k), k <= n < 2^32: k different numbers below n, to out.  ERR_NOMEM (base/err.h). */
int rng_mt_sample(struct rng_mt *r, uint32_t n, uint32_t k, uint32_t *out);
/* The next 32 bits. */
uint32_t rng_mt_u32(struct rng_mt *r);
/* The next 64 bits, the high word drawn first, as numpy's legacy uint64 draws. */
uint64_t rng_mt_u64(struct rng_mt *r);
/* Uniform in [0, max], by masked rejection: numpy's random_interval.  Draws 32-bit
 * words while max < 2^32, else 64-bit ones. */
uint64_t rng_mt_interval(struct rng_mt *r, uint64_t max);
/* Uniform in [0, 1) with 53 bits: numpy's random_sample. */
double rng_mt_double(struct rng_mt *r);
/* Fisher-Yates as RandomState.shuffle does it on an array of n items of 4 or 8
 * bytes: for i = n-1 .. 1 swap with interval(i). */
void rng_mt_shuffle_u32(struct rng_mt *r, uint32_t *a, size_t n);
void rng_mt_shuffle_u64(struct rng_mt *r, uint64_t *a, size_t n);
/* Draws what a shuffle of n items would draw, for what comes after it. */
void rng_mt_skip_shuffle(struct rng_mt *r, size_t n);

/* Four words from a 64-bit key and a 128-bit counter (lo, hi). */
static inline void rng_philox(uint64_t key, uint64_t lo, uint64_t hi, uint32_t out[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)lo, c1 = (uint32_t)(lo >> 32);
    uint32_t c2 = (uint32_t)hi, c3 = (uint32_t)(hi >> 32);

    for (int i = 0; i < 10; i++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}
/* A word to [0, 1) with 24 bits: exact in float. */
static inline float rng_unit_f32(uint32_t w)
{
    return (float)(w >> 8) * (1.0f / 16777216.0f);
}
/* Two standard normal numbers from two words (Box-Muller in double). */
void rng_normal2(uint32_t w0, uint32_t w1, double out[2]);

#ifdef __cplusplus
}
#endif
#endif
