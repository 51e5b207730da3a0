/* Repeated passages against brute force, and the numbered keys that they and lines rest on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "curate/dedup/dedup_repeats.h"
#include "curate/dedup/dedup_units.h"

/* Keys that come too often, as they are told: the first unit of each, how often it comes. */
struct told {
    const uint16_t *key;
    uint32_t *times;
    uint64_t *unit;
};

static int take_key(void *to, uint64_t unit, uint32_t count, struct err *e)
{
    struct told *t = to;

    (void)e;
    assert_int_equal(t->times[t->key[unit]], 0); /* once */
    t->times[t->key[unit]] = count;
    t->unit[t->key[unit]] = unit;
    return 0;
}

static void keys_are_told_of(void **state)
{
    enum { N = 60000, KEYS = 25000 };
    static uint16_t key[N], count[KEYS];
    static uint32_t times[KEYS];
    static uint64_t first[KEYS], unit[KEYS];
    struct told told = {key, times, unit};
    struct rng_mt r;
    struct err e;

    (void)state;
    rng_mt_seed(&r, 4);
    for (uint64_t i = 0; i < N; i++)
        if (!count[key[i] = (uint16_t)(rng_mt_u64(&r) % KEYS)]++)
            first[key[i]] = i;
    for (int over = 1; over < 5; over++)
        for (int jobs = 1; jobs <= 3; jobs += 2) {
            struct dedup_units *u;

            assert_int_equal(dedup_units_open(&u, NULL, jobs == 1 ? 1 << 12 : 1 << 24, &e), 0);
            for (int i = 0; i < N; i++)
                assert_int_equal(dedup_units_add(u, (struct hash128){hash_mix64(key[i]), hash_mix64(key[i] + 77u)}, &e), 0);
            memset(times, 0, sizeof times);
            dedup_units_tell(u, take_key, &told);
            assert_int_equal(dedup_units_resolve(u, DEDUP_NONE, (uint32_t)over, jobs, &e), 0);
            for (int i = 0; i < N; i++) {
                uint8_t mark;

                dedup_units_next(u, 1, &mark);
                assert_int_equal(mark, count[key[i]] > over);
            }
            for (int k = 0; k < KEYS; k++) {
                assert_int_equal(times[k], count[k] > over ? count[k] : 0);
                assert_true(!times[k] || unit[k] == first[k]);
            }
            dedup_units_close(u);
        }
}

static void marks_are_those_of_a_table(void **state)
{
    enum { N = 60000, KEYS = 25000 };
    static uint8_t mark[N], first[KEYS];
    static uint16_t key[N], count[KEYS];
    struct rng_mt r;
    struct err e;

    (void)state;
    rng_mt_seed(&r, 3);
    for (int i = 0; i < N; i++)
        count[key[i] = (uint16_t)(rng_mt_u64(&r) % KEYS)]++;
    for (int how = 0; how < 6; how++) { /* of keys that come more than 1, 2, 4 times all but the first, or all */
        int all = how % 2, over = how < 2 ? 1 : 1 + how / 2 + (how > 3);
        for (int jobs = 1; jobs <= 3; jobs += 2) {
            struct dedup_units *u;
            /* little memory: many slices of a part */
            assert_int_equal(dedup_units_open(&u, NULL, jobs == 1 ? 1 << 12 : 1 << 24, &e), 0);
            for (int i = 0; i < N; i++) {
                struct hash128 h = {hash_mix64(key[i]), hash_mix64(key[i] + 77u) & ~(key[i] % 3 ? 0ULL : 31ULL << 58)};
                if (i % 1000 == 7)
                    assert_int_equal(dedup_units_add_unmarked(u, &e), 0);
                else
                    assert_int_equal(dedup_units_add(u, h, &e), 0);
            }
            for (int i = 7; i < N && jobs == 1; i += 1000)
                count[key[i]] -= how == 0; /* that is no key */
            assert_int_equal(dedup_units_count(u), N);
            assert_int_equal(dedup_units_resolve(u, all ? DEDUP_NONE : DEDUP_FIRST, (uint32_t)over, jobs, &e), 0);
            assert_int_equal(dedup_units_counted(u), N - N / 1000);
            memset(first, 0, sizeof first);
            for (int i = 0; i < N; i += 1000)
                dedup_units_next(u, 1000, mark + i);
            for (int i = 0; i < N; i++) {
                if (i % 1000 == 7)
                    assert_int_equal(mark[i], 0);
                else if (all)
                    assert_int_equal(mark[i], count[key[i]] > over);
                else
                    assert_int_equal(mark[i], first[key[i]]++ > 0 && count[key[i]] > over);
            }
            dedup_units_close(u);
        }
    }
}

/* Documents of which many have a key more than once, and what they have is seen again in several slices of a part. */
static void keys_are_counted_once_a_document(void **state)
{
    enum { N = 60000, KEYS = 9000 };
    static uint8_t mark[N];
    static uint16_t key[N], docs[KEYS];
    static int doc[N], last[KEYS];
    struct rng_mt r;
    struct err e;
    uint64_t counted = 0;

    (void)state;
    rng_mt_seed(&r, 6);
    for (int i = 0, d = 0; i < N; i++) {
        d += rng_mt_u64(&r) % 40 == 0;
        doc[i] = d + 1;
        key[i] = rng_mt_u64(&r) % 3 && i ? key[i - 1] : (uint16_t)(rng_mt_u64(&r) % KEYS);
        counted += last[key[i]] != doc[i];
        docs[key[i]] += last[key[i]] != doc[i];
        last[key[i]] = doc[i];
    }
    for (int how = 0; how < 12; how++) { /* with one job in slices; told of or not; keys of more than one document, or more */
        bool one = how & 1, tells = how & 2;
        uint32_t over = 1 + (uint32_t)how / 4;

        for (int jobs = 1; jobs <= 3; jobs += 2) {
            static uint32_t times[KEYS];
            static uint64_t unit[KEYS];
            struct told told = {key, times, unit};
            struct dedup_units *u;

            memset(times, 0, sizeof times);
            memset(last, 0, sizeof last);
            assert_int_equal(dedup_units_open(&u, NULL, jobs == 1 ? 1 << 12 : 1 << 24, &e), 0);
            for (int i = 0; i < N; i++) {
                if (i && doc[i] != doc[i - 1])
                    dedup_units_next_doc(u);
                assert_int_equal(dedup_units_add(u, (struct hash128){hash_mix64(key[i]), hash_mix64(key[i] + 77u)}, &e), 0);
            }
            if (tells)
                dedup_units_tell(u, take_key, &told);
            assert_int_equal(dedup_units_resolve(u, one ? DEDUP_DOCS_ONE : DEDUP_DOCS_NONE, over, jobs, &e), 0);
            assert_int_equal(dedup_units_counted(u), counted);
            dedup_units_next(u, N, mark);
            for (int i = 0; i < N; i++) {
                bool again = last[key[i]] == doc[i];

                last[key[i]] = doc[i];
                assert_int_equal(mark[i], docs[key[i]] > over || (one && again));
            }
            for (int k = 0; k < KEYS && tells; k++)
                assert_int_equal(times[k], docs[k] > over ? docs[k] : 0);
            dedup_units_close(u);
        }
    }
}

/* ---- passages ---- */

enum { MOST = 1 << 15, TEXTS = 64 };
struct corpus {
    uint32_t e[MOST]; /* elements; of width 1 the low bytes */
    size_t text[TEXTS + 1];
    int texts;
};

/* Texts of few letters, which repeat passages of themselves and of one another. */
static void make_corpus(struct corpus *c, struct rng_mt *r, int letters, size_t n)
{
    size_t at = 0;

    c->texts = 0;
    while (at < n && c->texts < TEXTS) {
        size_t end = at + rng_mt_u64(r) % (2 * n / TEXTS);
        c->text[c->texts++] = at;
        end = end > n || c->texts == TEXTS ? n : end;
        while (at < end) {
            size_t run = rng_mt_u64(r) % 60 + 1, from = at ? rng_mt_u64(r) % at : 0;
            int kind = (int)(rng_mt_u64(r) % 4);
            uint32_t period = (uint32_t)(rng_mt_u64(r) % 5) + 1;
            for (size_t i = 0; i < run && at < end; i++, at++)
                c->e[at] = kind == 0 && at ? c->e[from + i < at ? from + i : at - 1]
                           : kind == 1 && at >= period ? c->e[at - period]
                                                       : (uint32_t)(rng_mt_u64(r) % (uint32_t)letters) * 0x01010101u;
        }
    }
    c->text[c->texts] = at;
}

/* What is to be struck, an element a byte. */
static void brute_force(const struct corpus *c, size_t length, bool all, uint8_t *struck)
{
    static size_t start[MOST];
    size_t n = 0;

    memset(struck, 0, MOST);
    for (int t = 0; t < c->texts; t++)
        for (size_t i = c->text[t]; i + length <= c->text[t + 1]; i++)
            start[n++] = i;
    for (size_t i = 0; i < n; i++) {
        bool hit = false;
        for (size_t k = 0; k < (all ? n : i) && !hit; k++) {
            if (k == i || c->e[start[k]] != c->e[start[i]] ||
                memcmp(&c->e[start[k]], &c->e[start[i]], length * sizeof *c->e) != 0)
                continue;
            hit = all || start[k] + length <= start[i];
            if (!all)
                break; /* only the first counts */
        }
        if (hit)
            memset(struck + start[i], 1, length);
    }
}

static void found(const struct corpus *c, const struct repeats_conf *conf, int jobs, uint8_t *struck,
                  struct repeats_tally *tally)
{
    static uint8_t bytes[MOST];
    struct anchors as = {0};
    struct repeats *r;
    struct buf ranges = {0};
    struct err e;

    for (size_t i = 0; i < c->text[c->texts]; i++)
        bytes[i] = (uint8_t)c->e[i];
    assert_int_equal(repeats_open(&r, conf, &e), 0);
    for (int t = 0; t < c->texts; t++) {
        size_t at = c->text[t], n = c->text[t + 1] - at;
        const void *p = conf->width == 1 ? (const void *)(bytes + at) : c->e + at;
        assert_int_equal(anchors_find(&as, p, n, conf->width, conf->length), 0);
        assert_int_equal(repeats_add(r, p, n, as.a, as.n, &e), 0);
    }
    assert_int_equal(repeats_resolve(r, jobs, &e), 0);
    memset(struck, 0, MOST);
    for (int t = 0; t < c->texts; t++) {
        const uint64_t *range;
        buf_clear(&ranges);
        assert_int_equal(repeats_next(r, &ranges, &e), 0);
        range = (const void *)ranges.p;
        for (size_t i = 0; i < ranges.n / 16; i++) {
            assert_true(range[2 * i] < range[2 * i + 1] && range[2 * i + 1] <= c->text[t + 1] - c->text[t]);
            memset(struck + c->text[t] + range[2 * i], 1, range[2 * i + 1] - range[2 * i]);
        }
    }
    *tally = repeats_tally(r);
    repeats_close(r);
    anchors_free(&as);
    buf_free(&ranges);
}

static void repeats_are_those_of_brute_force(void **state)
{
    static struct corpus c;
    static uint8_t want[MOST], got[MOST];
    struct repeats_tally tally;
    struct rng_mt r;
    int slices = 0, parts = 0;

    (void)state;
    rng_mt_seed(&r, 11);
    for (int round = 0; round < 120; round++) {
        struct repeats_conf conf = {
            .width = round % 3 == 2 ? 4 : 1, .all = round & 1, .memory = round % 4 < 2 ? 1 << 13 : 1 << 26,
        };
        conf.length = rng_mt_u64(&r) % (round % 5 ? 30 : 200) + (conf.width == 1 ? 8 : 2);
        make_corpus(&c, &r, round % 7 ? 2 + round % 20 : 1, round % 11 ? 3000 : 40);
        brute_force(&c, conf.length, conf.all, want);
        found(&c, &conf, 1 + round % 3, got, &tally);
        for (size_t i = 0; i < c.text[c.texts]; i++)
            if (got[i] != want[i])
                fail_msg("round %d, length %zu, width %d, all %d: element %zu is %d, not %d", round, conf.length,
                         conf.width, conf.all, i, got[i], want[i]);
        slices += tally.slices > tally.parts;
        parts += tally.parts > 1;
    }
    assert_true(slices > 10 && parts > 20);
}

static void repeats_of_nothing(void **state)
{
    static struct corpus c;
    static uint8_t got[MOST];
    struct repeats_conf conf = {.width = 1, .length = 100, .memory = 1 << 26};
    struct repeats_tally tally;

    (void)state;
    found(&c, &conf, 2, got, &tally);
    assert_int_equal(tally.elements, 0);
    c.texts = 3; /* empty texts */
    found(&c, &conf, 2, got, &tally);
    assert_int_equal(tally.candidates, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_told_of),
        cmocka_unit_test(marks_are_those_of_a_table),
        cmocka_unit_test(keys_are_counted_once_a_document),
        cmocka_unit_test(repeats_are_those_of_brute_force),
        cmocka_unit_test(repeats_of_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
