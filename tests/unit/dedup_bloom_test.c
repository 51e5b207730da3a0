/* The Bloom filter: nothing forgotten, mistakes as often as theory says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "curate/dedup/dedup_bloom.h"

static struct hash128 some_key(struct rng_mt *r)
{
    uint64_t lo = rng_mt_u64(r);

    return (struct hash128){lo, rng_mt_u64(r)};
}

/* Fills a filter for n keys and asks for others. */
static void check(uint64_t n, double rate, uint32_t seed)
{
    enum { ASKED = 400000 };
    struct dedup_bloom b;
    struct rng_mt r;
    struct err e;
    double want = 0, theory;
    uint64_t mistaken = 0, late = 0;

    assert_int_equal(dedup_bloom_open(&b, n, rate, &e), 0);
    assert_true(fabs((double)b.bits / (double)n * M_LN2 * M_LN2 + log(rate)) < .01);
    rng_mt_seed(&r, seed);
    for (uint64_t i = 0; i < n; i++) {
        want += pow(1 - exp(-(double)b.functions * (double)i / (double)b.bits), b.functions);
        mistaken += dedup_bloom_has(&b, some_key(&r));
    }
    assert_true(fabs((double)mistaken - want) < 4 * sqrt(want) + 1);
    assert_int_equal(b.keys, n - mistaken);
    theory = pow(1 - exp(-(double)b.functions * (double)n / (double)b.bits), b.functions);
    assert_true(theory < 1.1 * rate); /* functions are a whole number */
    assert_true(fabs(dedup_bloom_rate(&b) - theory) < .05 * theory);
    rng_mt_seed(&r, seed);
    for (uint64_t i = 0; i < n; i++)
        assert_true(dedup_bloom_has(&b, some_key(&r)));
    for (int i = 0; i < ASKED; i++) {
        struct dedup_bloom before = b; /* nothing is to be added */
        struct hash128 key = some_key(&r);
        bool has = true;
        uint64_t h = key.lo;

        for (int k = 0; k < before.functions; k++, h += key.hi | 1) {
            uint64_t bit = (uint64_t)((unsigned __int128)h * before.bits >> 64);
            has &= before.word[bit / 64] >> (bit & 63) & 1;
        }
        late += has;
    }
    assert_true(fabs((double)late - ASKED * theory) < 4 * sqrt(ASKED * theory) + 2);
    dedup_bloom_close(&b);
}

static void mistakes_are_as_often_as_theory_says(void **s)
{
    (void)s;
    check(30000, 0.1, 1);
    check(30000, 0.01, 2);
    check(100000, 0.001, 3);
    check(50000, 1e-6, 4);
    check(20000, 0.5, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_as_often_as_theory_says),
    };
    return cmocka_run_group_tests_name("dedup_bloom", tests, NULL, NULL);
}
