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
#include "curate/dedup_bands.h"
#include "curate/dedup_clusters.h"
#include "curate/dedup_exact.h"
#include "curate/dedup_fuzzy.h"
#include "curate/minhash_preset.h"

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
    assert_int_equal(hash_set_count(set), 40000);
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
    struct dedup_bands bands;
    struct dedup_sets *sets;
    struct dedup_fate *fate;
    struct dedup_tally tally;
};

static void collection_open(struct collection *c, int bands, int rows)
{
    struct err e;

    memset(c, 0, sizeof *c);
    assert_int_equal(minhash_init(&c->m, MINHASH_M61, bands * rows, 1), 0);
    assert_int_equal(dedup_bands_init(&c->bands, bands, rows, &e), 0);
    assert_int_equal(dedup_sets_open(&c->sets, NULL, &e), 0);
}

static void collection_add(struct collection *c, const uint64_t *hash, size_t n)
{
    uint64_t sig[MINHASH_MAX], key[MINHASH_MAX_BANDS];
    uint8_t sketch[MINHASH_MAX];
    struct band_record r = {key, sketch};
    struct err e;

    if (n) {
        minhash_signature(&c->m, hash, n, sig);
        dedup_bands_record(&c->bands, sig, &r);
    }
    assert_int_equal(dedup_bands_add(&c->bands, n ? &r : NULL, &e), 0);
    assert_int_equal(dedup_sets_put(c->sets, hash, n, &e), 0);
}

/* Counts the pairs that it hears of, and checks their order. */
struct hearer {
    uint32_t last_other, last_doc;
    size_t count;
};

static int hear(void *arg, uint32_t other, uint32_t doc, float similarity, struct err *e)
{
    struct hearer *h = arg;

    (void)e;
    assert_true(other < doc && similarity >= 0.8f);
    assert_true(doc > h->last_doc || (doc == h->last_doc && other > h->last_other) || !h->count);
    h->last_doc = doc;
    h->last_other = other;
    h->count++;
    return 0;
}

static void cluster_heard(struct collection *c, double threshold, int jobs,
                          const struct dedup_listener *l)
{
    struct err e;

    c->fate = calloc(c->bands.docs + 1, sizeof *c->fate);
    assert_int_equal(dedup_sets_flush(c->sets, &e), 0);
    assert_int_equal(dedup_bands_index(&c->bands, jobs, &e), 0);
    if (threshold > 0)
        assert_int_equal(dedup_cluster_verified(&c->bands, c->sets, threshold, jobs, l,
                                                c->fate, &c->tally, &e), 0);
    else
        assert_int_equal(dedup_cluster_united(&c->bands, c->sets, jobs, c->fate, &c->tally, &e), 0);
}

static void collection_cluster(struct collection *c, double threshold, int jobs)
{
    cluster_heard(c, threshold, jobs, NULL);
}

static void collection_close(struct collection *c)
{
    minhash_free(&c->m);
    dedup_bands_free(&c->bands);
    dedup_sets_close(c->sets);
    free(c->fate);
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
    assert_int_equal(dedup_sets_flush(k.sets, &e), 0);
    assert_int_equal(dedup_compare_new(&c, k.sets, &e), 0);
    assert_int_equal(dedup_jaccard(c, 0, 1, 0, &x, &e), 0);
    assert_true(x == 750.0 / 1250.0);
    assert_int_equal(dedup_jaccard(c, 1, 0, 0.5, &x, &e), 0);
    assert_true(x == 0.6);
    assert_int_equal(dedup_jaccard(c, 0, 0, 1, &x, &e), 0);
    assert_true(x == 1);
    assert_int_equal(dedup_jaccard(c, 2, 0, 0, &x, &e), 0);
    assert_true(x == 0.001);
    assert_int_equal(dedup_jaccard(c, 3, 0, 0, &x, &e), 0);
    assert_true(x == 0);
    assert_int_equal(dedup_jaccard(c, 4, 5, 0, &x, &e), 0);
    assert_true(x == 0.5);
    assert_int_equal(dedup_jaccard(c, 5, 4, 0, &x, &e), 0);
    assert_true(x == 0.5);
    assert_int_equal(dedup_jaccard(c, 0, 4, 0, &x, &e), 0);
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
    struct dedup_sets *sets;
    struct err e;
    double x;

    (void)s;
    for (size_t i = 0; i < n; i++)
        h[i] = shingle(3, i);
    assert_int_equal(dedup_sets_open(&sets, NULL, &e), 0);
    assert_int_equal(dedup_sets_put(sets, h, 10, &e), 0);
    assert_int_equal(dedup_sets_put(sets, h, n, &e), 0);
    assert_int_equal(dedup_sets_put(sets, h, n - 6, &e), 0);
    assert_int_equal(dedup_sets_put(sets, h, 20, &e), 0);
    assert_int_equal(dedup_sets_flush(sets, &e), 0);
    assert_int_equal(dedup_sets_docs(sets), 4);
    assert_int_equal(dedup_sets_size(sets, 2), n - 6);
    assert_int_equal(dedup_compare_new(&c, sets, &e), 0);
    assert_int_equal(dedup_jaccard(c, 0, 3, 0, &x, &e), 0);
    assert_true(x == 0.5);
    assert_int_equal(dedup_jaccard(c, 1, 2, 0, &x, &e), 0);
    assert_true(x == (double)(n - 6) / (double)n);
    dedup_compare_free(c);
    dedup_sets_close(sets);
    free(h);
    assert_int_equal(dedup_sets_open(&sets, "/nonexistent/folder", &e), ERR_IO);
    assert_non_null(strstr(e.msg, "/nonexistent/folder"));
}

/* 3,000 pages share 70 % of their shingles (J = .54): all must live. */
static void a_template_does_not_make_duplicates(void **s)
{
    enum { PAGES = 3000, SHARED = 70, OWN = 30 };
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
    assert_int_equal(c.tally.dropped, 0);
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
    assert_int_equal(c.tally.dropped, 400 - kept);
    collection_close(&c);
    chain(&c, 0, 2); /* united without verification: one cluster, as the others have it */
    assert_int_equal(c.tally.clusters, 1);
    assert_int_equal(c.tally.largest, 400);
    assert_int_equal(c.tally.dropped, 399);
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

static void batches_and_threads_change_nothing(void **s)
{
    enum { DOCS = 2000 };
    struct collection one, four, heard;
    struct hearer h = {0};
    struct dedup_listener l = {hear, &h};
    size_t pairs = 0;
    struct dedup_compare *cmp;
    struct err e;
    uint64_t *key;

    (void)s;
    random_copies(&one, DOCS);
    key = malloc(DOCS * 21 * sizeof *key);
    memcpy(key, one.bands.key, DOCS * 21 * sizeof *key);
    collection_cluster(&one, 0.8, 1);
    random_copies(&four, DOCS);
    collection_cluster(&four, 0.8, 4);
    assert_memory_equal(one.fate, four.fate, DOCS * sizeof *one.fate);
    assert_memory_equal(&one.tally, &four.tally, sizeof one.tally);
    random_copies(&heard, DOCS); /* a listener changes nothing but the work */
    cluster_heard(&heard, 0.8, 3, &l);
    assert_memory_equal(one.fate, heard.fate, DOCS * sizeof *one.fate);
    assert_true(one.tally.dropped > DOCS / 4 && one.tally.dropped < DOCS * 9 / 10);
    assert_int_equal(dedup_compare_new(&cmp, one.sets, &e), 0);
    for (uint32_t d = 0; d < DOCS; d++) { /* by the definition */
        uint32_t want = d;
        for (uint32_t o = 0; o < d; o++) {
            bool meet = false;
            double x;
            for (int k = 0; k < 21; k++)
                meet |= key[d * 21 + k] == key[o * 21 + k] && key[d * 21 + k] != BUCKET_NONE;
            if (!meet)
                continue;
            assert_int_equal(dedup_jaccard(cmp, d, o, 0.8, &x, &e), 0);
            pairs += x >= 0.8;
            if (x >= 0.8 && want == d && one.fate[o].survivor == o)
                want = o;
        }
        assert_int_equal(one.fate[d].survivor, want);
    }
    assert_int_equal(h.count, pairs);
    dedup_compare_free(cmp);
    free(key);
    collection_close(&heard);
    collection_close(&one);
    collection_close(&four);
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
        got = (double)c.tally.dropped / PAIRS;
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
        cmocka_unit_test(batches_and_threads_change_nothing),
        cmocka_unit_test(recall_follows_the_curve),
        cmocka_unit_test(sketches_never_cost_recall),
        cmocka_unit_test(impossible_settings_are_refused),
    };
    return cmocka_run_group_tests_name("dedup", tests, NULL, NULL);
}
