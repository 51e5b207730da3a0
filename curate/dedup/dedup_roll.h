/* curate/dedup/dedup_roll.h -- a hash of so many elements that rolls along a text (Karp and Rabin 1987, modulo 2^64).
 * Elements are bytes or 32-bit numbers.  What it finds equal may not be: compare, or take care that it does no harm.
 */
#ifndef CURATE_DEDUP_ROLL_H
#define CURATE_DEDUP_ROLL_H

#include "base/hash.h"

struct roll {
    uint64_t table[256], out; /* of bytes; what the first of the elements was multiplied by, once more */
    uint64_t quarter;         /* what a hash is multiplied by for a quarter of them to come behind it */
    size_t n;
    int width;
};

#define ROLL_BASE 0x9e6c63d0876a3f35ULL /* odd, and random */

/* For n elements of width bytes, 1 or 4. */
static inline void roll_init(struct roll *r, int width, size_t n)
{
    r->width = width;
    r->n = n;
    r->out = r->quarter = 1;
    for (uint64_t i = 0; i < 256; i++)
        r->table[i] = hash_mix64(i + 1);
    for (size_t i = 0; i < n; i++)
        r->out *= ROLL_BASE;
    for (size_t i = 0; i < n / 4; i++)
        r->quarter *= ROLL_BASE;
}

static inline uint64_t roll_element(const struct roll *r, const void *p, size_t i)
{
    return r->width == 1 ? r->table[((const uint8_t *)p)[i]] : hash_mix64(((const uint32_t *)p)[i] + 1ULL);
}

/* h and element i of p behind it; h is 0 before the first. */
static inline uint64_t roll_in(const struct roll *r, uint64_t h, const void *p, size_t i)
{
    return h * ROLL_BASE + roll_element(r, p, i);
}

/* The hash that has come to hold n + 1 elements, without its first, i. */
static inline uint64_t roll_out(const struct roll *r, uint64_t h, const void *p, size_t i)
{
    return h - roll_element(r, p, i) * r->out;
}

/* Of the n elements of roll_init from `at` on: by quarters, which do not wait for one another. */
static inline uint64_t roll_start(const struct roll *r, const void *p, size_t at)
{
    size_t q = r->n / 4;
    uint64_t a = 0, b = 0, c = 0, d = 0;

    for (size_t i = at; i < at + q; i++) {
        a = roll_in(r, a, p, i);
        b = roll_in(r, b, p, i + q);
        c = roll_in(r, c, p, i + 2 * q);
        d = roll_in(r, d, p, i + 3 * q);
    }
    d += ((a * r->quarter + b) * r->quarter + c) * r->quarter;
    for (size_t i = at + 4 * q; i < at + r->n; i++)
        d = roll_in(r, d, p, i);
    return d;
}
#endif
