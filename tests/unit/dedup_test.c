/* Duplicates: the set, shingle sets on disk, buckets, clusters, the traps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "curate/dedup/dedup_blocks.h"
#include "curate/dedup/dedup_exact.h"
#include "curate/dedup/dedup_fuzzy.h"
#include "curate/dedup/dedup_set.h"
#include "curate/dedup/dedup_sign.h"
#include "curate/dedup/minhash_preset.h"

static void a_set_keeps_the_first_value(void **s)
{
    struct hash_set *set = hash_set_new();
    struct rng_mt r;
    uint64_t v;

    (void)s;
    rng_mt_seed(&r, 1);
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t lo = rng_mt_u64(&r), hi = rng_mt_u64(&r);
        v = i;
        assert_int_equal(hash_set_add(set, lo, hi, &v), 1);
        v = i;
        assert_int_equal(hash_set_add(set, lo, hi + 1, &v), 1);
    }
    rng_mt_seed(&r, 1);
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t lo = rng_mt_u64(&r), hi = rng_mt_u64(&r);
        v = 77;
        assert_int_equal(hash_set_add(set, lo, hi, &v), 0);
        assert_int_equal(v, i);
    }
    v = 5; /* keys of zeroes, and equal low halves */
    assert_int_equal(hash_set_add(set, 0, 0, &v), 1);
    v = 6;
    assert_int_equal(hash_set_add(set, 0, 1, &v), 1);
    assert_int_equal(hash_set_add(set, 0, 0, &v), 0);
    assert_int_equal(v, 5);
    hash_set_free(set);
    hash_set_free(NULL);
}

/* A collection of shingle sets, all that clustering needs. */
struct collection {
    struct minhash m;
    struct device *cpu;
    struct dedup_bands shape;
    struct dedup_store store;
    struct dedup_fate *fate;
    struct dedup_tally tally;
    uint64_t dropped, clusters, largest;
};

static void collection_open(struct collection *c, int bands, int rows)
{
    struct err e;

    memset(c, 0, sizeof *c);
    assert_int_equal(minhash_init(&c->m, MINHASH_M61, bands * rows, 1), 0);
    assert_int_equal(device_open_dedup(&c->cpu, "cpu", 1, NULL, &e), 0);
    assert_int_equal(dedup_bands_init(&c->shape, bands, rows, &e), 0);
    assert_int_equal(dedup_store_open(&c->store, &c->shape, NULL, 1 << 20, &e), 0);
}

static void collection_rank(struct collection *c, const uint64_t *hash, size_t n, uint64_t rank)
{
    uint64_t key[MINHASH_MAX_BANDS];
    uint8_t sketch[MINHASH_MAX];
    struct band_record r = {key, sketch};
    struct span none = {0};
    struct set_ref set;
    struct err e;

    if (n)
        assert_int_equal(dedup_sign_one(c->cpu, &c->m, &c->shape, &(struct shingle_set){.hash = hash, .count = n}, &r, &e), 0);
    assert_int_equal(dedup_store_put_set(&c->store, hash, n, &set, &e), 0);
    assert_int_equal(dedup_store_put_records(&c->store, &c->store.n, n > 0, &r, &e), 0);
    assert_int_equal(dedup_store_add(&c->store, set, rank, none, none, &e), 0);
}

static void collection_add(struct collection *c, const uint64_t *hash, size_t n)
{
    collection_rank(c, hash, n, 0);
}

/* Counts the pairs that it hears of. */
static int hear(void *arg, uint32_t other, uint32_t doc, float similarity, struct err *e)
{
    size_t *count = arg;

    (void)e;
    assert_true(other < doc && similarity >= 0.8f);
    ++*count;
    return 0;
}

/* threshold 0: united without verification. */
static void cluster_within(struct collection *c, double threshold, int jobs, int64_t memory,
                           const struct dedup_listener *l)
{
    struct dedup_plan p = {.store = &c->store, .bands = c->shape.bands, .rows = c->shape.rows, .threshold = threshold,
                           .verify = threshold > 0, .memory = memory, .jobs = jobs, .listener = l};
    uint32_t *size = calloc(c->store.n + 1, sizeof *size);
    struct err e;

    c->fate = calloc(c->store.n + 1, sizeof *c->fate);
    assert_int_equal(dedup_store_flush(&c->store, &e), 0);
    assert_int_equal(dedup_blocks_decide(&p, c->fate, &c->tally, &e), 0);
    for (uint64_t i = 0; i < c->store.n; i++) {
        uint32_t to = c->fate[i].survivor;
        c->dropped += to != i;
        c->clusters += ++size[to] == 2;
        c->largest = size[to] > c->largest ? size[to] : c->largest;
    }
    free(size);
}

static void collection_cluster(struct collection *c, double threshold, int jobs)
{
    cluster_within(c, threshold, jobs, 1 << 24, NULL);
}

static void collection_close(struct collection *c)
{
    minhash_free(&c->m);
    device_close(c->cpu);
    dedup_bands_free(&c->shape);
    dedup_store_close(&c->store);
    free(c->fate);
}

static int jaccard(const struct collection *c, struct dedup_compare *cmp, uint64_t a, uint64_t b, double floor, double *x)
{
    struct store_doc d[2];
    struct set_ref set[2];
    struct set_pair pair = {.a = 0, .b = 1};
    struct err e;
    int rc;

    assert_int_equal(dedup_store_doc(&c->store, a, &d[0], &e), 0);
    assert_int_equal(dedup_store_doc(&c->store, b, &d[1], &e), 0);
    set[0] = d[0].set;
    set[1] = d[1].set;
    rc = dedup_compare_run(cmp, set, floor, &pair, 1, &e);
    *x = pair.similarity;
    return rc;
}

static uint64_t shingle(uint64_t kind, uint64_t i)
{
    uint64_t x = kind * 0x9E3779B97F4A7C15u + i;

    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

static void similarity_is_exact(void **s)
{
    uint64_t a[1000], b[1000], zero[1] = {0}, two[2] = {7, 0};
    struct dedup_compare *c;
    struct collection k;
    struct err e;
    double x;

    (void)s;
    collection_open(&k, 4, 2);
    for (uint64_t i = 0; i < 1000; i++) {
        a[i] = shingle(1, i);
        b[i] = shingle(1, i + 250);
    }
    collection_add(&k, a, 1000);
    collection_add(&k, b, 1000);
    collection_add(&k, a, 1);
    collection_add(&k, NULL, 0);
    collection_add(&k, zero, 1);
    collection_add(&k, two, 2);
    assert_int_equal(dedup_store_flush(&k.store, &e), 0);
    assert_int_equal(dedup_compare_new(&c, &k.store.sets, &e), 0);
    assert_int_equal(jaccard(&k, c, 0, 1, 0, &x), 0);
    assert_true(x == 750.0 / 1250.0);
    assert_int_equal(jaccard(&k, c, 1, 0, 0.5, &x), 0);
    assert_true(x == 0.6);
    assert_int_equal(jaccard(&k, c, 0, 0, 1, &x), 0);
    assert_true(x == 1);
    assert_int_equal(jaccard(&k, c, 2, 0, 0, &x), 0);
    assert_true(x == 0.001);
    assert_int_equal(jaccard(&k, c, 3, 0, 0, &x), 0);
    assert_true(x == 0);
    assert_int_equal(jaccard(&k, c, 4, 5, 0, &x), 0);
    assert_true(x == 0.5);
    assert_int_equal(jaccard(&k, c, 5, 4, 0, &x), 0);
    assert_true(x == 0.5);
    assert_int_equal(jaccard(&k, c, 0, 4, 0, &x), 0);
    assert_true(x == 0);
    dedup_compare_free(c);
    collection_close(&k);
}

/* Sets larger than the write buffer, and around it. */
static void sets_come_back_from_disk(void **s)
{
    size_t n = (1 << 17) + 5;
    uint64_t *h = malloc(n * sizeof *h);
    struct dedup_compare *c;
    struct collection k;
    struct err e;
    double x;

    (void)s;
    for (size_t i = 0; i < n; i++)
        h[i] = shingle(3, i);
    collection_open(&k, 2, 2);
    collection_add(&k, h, 10);
    collection_add(&k, h, n);
    collection_add(&k, h, n - 6);
    collection_add(&k, h, 20);
    assert_int_equal(dedup_store_flush(&k.store, &e), 0);
    assert_int_equal(k.store.n, 4);
    assert_int_equal(dedup_compare_new(&c, &k.store.sets, &e), 0);
    assert_int_equal(jaccard(&k, c, 0, 3, 0, &x), 0);
    assert_true(x == 0.5);
    assert_int_equal(jaccard(&k, c, 1, 2, 0, &x), 0);
    assert_true(x == (double)(n - 6) / (double)n);
    dedup_compare_free(c);
    collection_close(&k);
    free(h);
    collection_open(&k, 2, 2);
    dedup_store_close(&k.store);
    assert_int_equal(dedup_store_open(&k.store, &k.shape, "/nonexistent/folder", 1 << 20, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "/nonexistent/folder"));
    collection_close(&k);
}

/* 10,000 pages share 70 % of their shingles (J = .54): all must live. */
static void a_template_does_not_make_duplicates(void **s)
{
    enum { PAGES = 10000, SHARED = 70, OWN = 30 };
    struct collection c;
    uint64_t h[SHARED + OWN];

    (void)s;
    collection_open(&c, 21, 6);
    for (uint64_t p = 0; p < PAGES; p++) {
        for (uint64_t i = 0; i < SHARED; i++)
            h[i] = shingle(1, i);
        for (uint64_t i = 0; i < OWN; i++)
            h[SHARED + i] = shingle(2 + p, i);
        collection_add(&c, h, SHARED + OWN);
    }
    collection_cluster(&c, 0.8, 2);
    assert_int_equal(c.dropped, 0);
    assert_true(c.tally.candidates > PAGES * 100);          /* the trap was there */
    assert_true(c.tally.compared < c.tally.candidates / 5); /* and cost little */
    collection_close(&c);
}

/* Document i has shingles i..i+99: neighbours have J = .92, the ends nothing in common. */
static void chain(struct collection *c, double threshold, int jobs)
{
    uint64_t h[100];

    collection_open(c, 21, 6);
    for (uint64_t p = 0; p < 400; p++) {
        for (uint64_t i = 0; i < 100; i++)
            h[i] = shingle(1, 4 * p + i);
        collection_add(c, h, 100);
    }
    collection_cluster(c, threshold, jobs);
}

static double overlap(uint32_t a, uint32_t b)
{
    double d = 4.0 * (a > b ? a - b : b - a);
    return d >= 100 ? 0 : (100 - d) / (100 + d);
}

static void a_chain_is_split_not_swallowed(void **s)
{
    struct collection c;
    uint32_t kept = 0;

    (void)s;
    chain(&c, 0.8, 2);
    for (uint32_t i = 0; i < 400; i++) {
        uint32_t to = c.fate[i].survivor;
        kept += to == i;
        assert_true(to <= i && c.fate[to].survivor == to);
        assert_true(fabs(overlap(i, to) - c.fate[i].similarity) < 1e-6);
        assert_true(c.fate[i].similarity >= 0.8 - 1e-6);
    }
    assert_true(kept >= 100 && kept <= 200); /* J >= .8 reaches two places on */
    assert_int_equal(c.dropped, 400 - kept);
    collection_close(&c);
    chain(&c, 0, 2); /* united without verification: one cluster, as the others have it */
    assert_int_equal(c.clusters, 1);
    assert_int_equal(c.largest, 400);
    assert_int_equal(c.dropped, 399);
    for (uint32_t i = 0; i < 400; i++)
        assert_true(fabs(overlap(i, 0) - c.fate[i].similarity) < 1e-6);
    collection_close(&c);
}

/* Random near-copies; what one document at a time gives, the batches must give. */
static void random_copies(struct collection *c, uint32_t docs)
{
    struct rng_mt r;
    uint64_t h[60];

    collection_open(c, 21, 6);
    rng_mt_seed(&r, 9);
    for (uint32_t d = 0; d < docs; d++) {
        uint64_t source = rng_mt_interval(&r, docs / 8), edits = rng_mt_interval(&r, 12);
        for (uint64_t i = 0; i < 60; i++)
            h[i] = shingle(source, i);
        for (uint64_t i = 0; i < edits; i++)
            h[rng_mt_interval(&r, 59)] = shingle(1000000 + d, i);
        collection_add(c, h, rng_mt_interval(&r, 99) ? 60 : 0);
    }
}

/* By the definition: in the order of rank and number, the first that stays. */
static size_t by_definition(const struct collection *c, const uint64_t *key, uint32_t docs, const uint32_t *order,
                            uint64_t outside, uint32_t *want)
{
    struct dedup_compare *cmp;
    struct err e;
    size_t pairs = 0;

    assert_int_equal(dedup_compare_new(&cmp, &c->store.sets, &e), 0);
    for (uint32_t i = 0; i < docs; i++) {
        uint32_t d = order[i];
        want[d] = d;
        for (uint32_t j = 0; j < i; j++) {
            uint32_t o = order[j];
            bool meet = false;
            double x;
            for (int k = 0; k < 21; k++)
                meet |= key[d * 21 + k] == key[o * 21 + k] && key[d * 21 + k] != 0;
            if (!meet || (d < outside && o < outside))
                continue;
            assert_int_equal(jaccard(c, cmp, d, o, 0.8, &x), 0);
            pairs += x >= 0.8;
            if (x >= 0.8 && want[d] == d && want[o] == o)
                want[d] = o;
        }
    }
    dedup_compare_free(cmp);
    return pairs;
}

static uint64_t *all_keys(const struct collection *c)
{
    uint64_t *key = calloc(c->store.n * 21, sizeof *key);
    uint8_t sketch[MINHASH_MAX];
    struct err e;

    for (uint64_t d = 0; d < c->store.n; d++) {
        struct band_record r = {key + d * 21, sketch};
        assert_int_equal(dedup_store_record(&c->store, d, &r, &e), 0);
    }
    return key;
}

static void assert_same_fates(const struct collection *c, const struct collection *other, const uint32_t *want)
{
    for (uint64_t d = 0; d < c->store.n; d++) {
        assert_int_equal(c->fate[d].survivor, other->fate[d].survivor);
        assert_true(c->fate[d].similarity == other->fate[d].similarity);
        assert_int_equal(c->fate[d].survivor, want[d]);
    }
}

static const struct {
    int jobs;
    int64_t memory;
} bounds[] = {{1, 1 << 24}, {4, 1 << 24}, {1, 400000}, {4, 100000}, {2, 1}};
enum { BOUNDS = sizeof bounds / sizeof *bounds };

static void bounds_and_threads_change_nothing(void **s)
{
    enum { DOCS = 2000 };
    struct collection one, other;
    uint32_t order[DOCS], want[DOCS];
    size_t pairs = 0, heard;
    uint64_t *key;

    (void)s;
    random_copies(&one, DOCS);
    collection_cluster(&one, 0.8, 1);
    assert_true(one.dropped > DOCS / 4 && one.dropped < DOCS * 9 / 10);
    key = all_keys(&one);
    for (uint32_t i = 0; i < DOCS; i++)
        order[i] = i;
    pairs = by_definition(&one, key, DOCS, order, 0, want);
    for (size_t i = 0; i < 2 * BOUNDS; i++) { /* a listener changes nothing but the work */
        struct dedup_listener l = {hear, &heard};
        heard = 0;
        random_copies(&other, DOCS);
        cluster_within(&other, 0.8, bounds[i / 2].jobs, bounds[i / 2].memory, i % 2 ? &l : NULL);
        assert_same_fates(&other, &one, want);
        assert_int_equal(heard, i % 2 ? pairs : 0);
        if (bounds[i / 2].memory == 1 << 24 && i % 2 == 0)
            assert_memory_equal(&one.tally, &other.tally, sizeof one.tally);
        collection_close(&other);
    }
    free(key);
    collection_close(&one);
}

/* One group of all: pages of a template, each near some others, ranks, and some that stay in any case. */
static void ranked_chain(struct collection *c, uint32_t docs)
{
    struct rng_mt r;
    uint64_t h[80];

    collection_open(c, 21, 6);
    rng_mt_seed(&r, 5);
    for (uint32_t d = 0; d < docs; d++) {
        uint64_t at = rng_mt_interval(&r, docs);
        for (uint64_t i = 0; i < 80; i++)
            h[i] = shingle(1, at + i);
        collection_rank(c, h, 80, d < docs / 10 ? UINT64_MAX : rng_mt_interval(&r, 9));
    }
}

static void a_group_larger_than_memory_is_cut(void **s)
{
    enum { DOCS = 600 };
    struct collection one, other;
    uint32_t order[DOCS], want[DOCS];
    uint64_t *key, rank[DOCS];
    struct err e;

    (void)s;
    ranked_chain(&one, DOCS);
    collection_cluster(&one, 0.8, 1);
    for (uint32_t i = 0; i < DOCS; i++) { /* by falling rank */
        struct store_doc d;
        uint32_t at = i;
        assert_int_equal(dedup_store_doc(&one.store, i, &d, &e), 0);
        for (; at > 0 && rank[at - 1] < d.rank; at--) {
            rank[at] = rank[at - 1];
            order[at] = order[at - 1];
        }
        rank[at] = d.rank;
        order[at] = i;
    }
    key = all_keys(&one);
    by_definition(&one, key, DOCS, order, DOCS / 10, want);
    for (uint32_t i = 0; i < DOCS / 10; i++)
        assert_int_equal(one.fate[i].survivor, i);
    for (size_t i = 0; i < BOUNDS; i++) {
        ranked_chain(&other, DOCS);
        cluster_within(&other, 0.8, bounds[i].jobs, bounds[i].memory, NULL);
        assert_same_fates(&other, &one, want);
        collection_close(&other);
    }
    ranked_chain(&other, DOCS); /* united: what has no need to stay goes, for the first of the highest rank */
    cluster_within(&other, 0, 3, 1, NULL);
    assert_int_equal(other.clusters, 1);
    assert_int_equal(other.dropped, DOCS - DOCS / 10);
    collection_close(&one);
    ranked_chain(&one, DOCS);
    cluster_within(&one, 0, 1, 1 << 24, NULL);
    for (uint32_t i = 0; i < DOCS; i++)
        assert_int_equal(one.fate[i].survivor, other.fate[i].survivor);
    collection_close(&other);
    free(key);
    collection_close(&one);
}

/* Pairs of known similarity are found as often as theory says. */
static void recall_follows_the_curve(void **s)
{
    static const int shared[] = {30, 50, 60, 70, 80, 90}; /* of 100: J = s / (200 - s) */
    enum { PAIRS = 1500 };

    (void)s;
    for (size_t k = 0; k < sizeof shared / sizeof *shared; k++) {
        double j = shared[k] / (200.0 - shared[k]), want = minhash_meet(j, 14, 8), got;
        struct collection c;
        uint64_t h[100];

        collection_open(&c, 14, 8);
        for (uint64_t d = 0; d < 2 * PAIRS; d++) {
            for (uint64_t i = 0; i < 100; i++)
                h[i] = (int)i < shared[k] ? shingle(d / 2, i) : shingle(1000000 + d, i);
            collection_add(&c, h, 100);
        }
        collection_cluster(&c, 0, 2);
        got = (double)c.dropped / PAIRS;
        if (!(fabs(got - want) <= 4 * sqrt(want * (1 - want) / PAIRS) + 0.002))
            fail_msg("J = %.3f: %.4f met, theory says %.4f", j, got, want);
        collection_close(&c);
    }
}

static void sketches_never_cost_recall(void **s)
{
    struct dedup_bands b;
    struct err e;

    (void)s;
    assert_int_equal(dedup_bands_init(&b, 21, 6, &e), 0);
    assert_true(dedup_bands_least(&b, 0.8) > 70 && dedup_bands_least(&b, 0.8) < 90);
    assert_int_equal(dedup_bands_least(&b, 1), 126);
    assert_true(dedup_bands_least(&b, 0.01) == 0);
    dedup_bands_free(&b);
}

static void impossible_settings_are_refused(void **s)
{
    struct dedup_fuzzy_conf c = {.threshold = 0};
    struct stage st;
    struct err e;

    (void)s;
    assert_int_equal(dedup_fuzzy_stage_open(&st, &c, &e), ERR_ARG);
    c.threshold = 1.5;
    assert_int_equal(dedup_fuzzy_stage_open(&st, &c, &e), ERR_ARG);
    c.threshold = 0.8;
    c.bands = 10;
    assert_int_equal(dedup_fuzzy_stage_open(&st, &c, &e), ERR_ARG);
    c.rows = 1000;
    assert_int_equal(dedup_fuzzy_stage_open(&st, &c, &e), ERR_ARG);
    c.rows = 5;
    assert_int_equal(dedup_fuzzy_stage_open(&st, &c, &e), 0);
    st.ops->close(st.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_keeps_the_first_value),
        cmocka_unit_test(similarity_is_exact),
        cmocka_unit_test(sets_come_back_from_disk),
        cmocka_unit_test(a_template_does_not_make_duplicates),
        cmocka_unit_test(a_chain_is_split_not_swallowed),
        cmocka_unit_test(bounds_and_threads_change_nothing),
        cmocka_unit_test(a_group_larger_than_memory_is_cut),
        cmocka_unit_test(recall_follows_the_curve),
        cmocka_unit_test(sketches_never_cost_recall),
        cmocka_unit_test(impossible_settings_are_refused),
    };
    return cmocka_run_group_tests_name("dedup", tests, NULL, NULL);
}
