/* Documents of crowded buckets, found by the rare shingles that they share, against every pair looked at. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/rng.h"
#include "curate/dedup/dedup_blocks.h"
#include "curate/dedup/dedup_fuzzy_note.h"
#include "curate/dedup/dedup_prefix.h"
#include "curate/dedup/dedup_sign.h"
#include "curate/dedup/rank_group.h"

enum { DOCS = 600, SIZE = 120 };

/* Shingle sets, each sorted, and how they are decided. */
struct sets {
    uint64_t hash[DOCS][SIZE];
    size_t n[DOCS];
    uint64_t rank[DOCS];
    size_t bytes; /* of a hash on disk */
};

static uint64_t below(struct rng_mt *r, uint64_t n)
{
    return rng_mt_interval(r, n - 1);
}

static int up(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;

    return *a < *b ? -1 : *a > *b;
}

/* Number i of a source of shingles. */
static uint64_t shingle(uint64_t source, uint64_t i)
{
    return hash_mix64(source << 32 | (i + 1));
}

static void add(struct sets *s, int d, uint64_t hash)
{
    if (s->n[d] < SIZE)
        s->hash[d][s->n[d]++] = hash;
}

/* ---- kinds of collections ---- */

/* Pages of which `own` shingles, more or less, are theirs alone, and a few of the template's are missing. */
static void template_page(struct sets *s, int d, struct rng_mt *r, size_t own, uint64_t missing)
{
    size_t shared = 96 - below(r, 8);

    for (size_t i = 0; i < shared; i++)
        if (!missing || below(r, 100) >= missing)
            add(s, d, shingle(1, i));
    own += below(r, 3);
    for (size_t i = 0; i < own; i++)
        add(s, d, shingle(100 + (uint64_t)d, i));
}

static void make_page(struct sets *s, int d, int kind, struct rng_mt *r)
{
    static const size_t own[] = {60, 24, 13, 11, 9};
    uint64_t from = below(r, 400), of = d ? below(r, (uint64_t)d) : 0;

    switch (kind) {
    case 0: case 1: case 2: case 3: case 4: /* a template, from .4 to over .8 */
        template_page(s, d, r, own[kind], 0);
        break;
    case 5: /* with holes */
        template_page(s, d, r, 8, 4);
        break;
    case 6: /* a chain: windows of one long text */
        for (uint64_t i = 0; i < 80; i++)
            add(s, d, shingle(2, from + i));
        break;
    case 7: /* mirrors: some pages are earlier ones with one change */
        if (d && below(r, 3) == 0) {
            memcpy(s->hash[d], s->hash[of], sizeof s->hash[d]);
            s->n[d] = s->n[of];
            if (s->n[d])
                s->hash[d][below(r, s->n[d])] = shingle(3, (uint64_t)d);
        } else {
            template_page(s, d, r, 20, 0);
        }
        break;
    case 8: /* optional blocks, nothing of its own */
        for (uint64_t b = 0; b < 24; b++)
            for (uint64_t i = 0; i < 5 && below(r, 3) + (i > 0) >= 1 + (i > 0); i++)
                add(s, d, shingle(4, b * 5 + i));
        break;
    case 9: /* tiny sets of few shingles, empty ones too */
        for (uint64_t i = 0, n = below(r, 6); i < n; i++)
            add(s, d, shingle(5, below(r, 9)));
        break;
    case 10: /* few sets, very many times */
        for (uint64_t i = 0, of_ten = below(r, 10); i < 40; i++)
            add(s, d, shingle(6, of_ten + i));
        break;
    case 11: /* pages of one template, of which the rest is a chain: like some in crowded buckets, and some in others */
        for (uint64_t i = 0; i < 80; i++)
            add(s, d, shingle(8, i));
        for (uint64_t i = 0; i < 40; i++)
            add(s, d, shingle(9, 12 * from + i));
        break;
    default: /* sizes of all kinds: beginnings of one text, most of them long */
        for (uint64_t i = 0, n = SIZE - below(r, 1 + below(r, SIZE)); i < n; i++)
            add(s, d, shingle(7, i < 4 ? (uint64_t)d * 4 + i : i));
    }
}
enum { KINDS = 13 };

/* kind KINDS: all of them mixed. */
static void make_sets(struct sets *s, int kind, uint32_t seed, bool narrow)
{
    struct rng_mt r;

    memset(s, 0, sizeof *s);
    s->bytes = narrow ? 4 : 8;
    rng_mt_seed(&r, seed);
    for (int d = 0; d < DOCS; d++) {
        size_t n = 0;

        make_page(s, d, kind < KINDS ? kind : (int)below(&r, KINDS), &r);
        for (size_t i = 0; i < s->n[d] && narrow; i++)
            s->hash[d][i] &= UINT32_MAX;
        qsort(s->hash[d], s->n[d], sizeof *s->hash[d], up);
        for (size_t i = 0; i < s->n[d]; i++)
            if (!n || s->hash[d][i] != s->hash[d][n - 1])
                s->hash[d][n++] = s->hash[d][i];
        s->n[d] = n;
        s->rank[d] = seed % 2 ? 0 : (uint64_t)d < seed % 5 * 20 ? UINT64_MAX : below(&r, 4);
    }
}

/* |A and B| / |A or B| by merging. */
static double jaccard(const struct sets *s, int a, int b)
{
    size_t i = 0, j = 0, both = 0;

    while (i < s->n[a] && j < s->n[b]) {
        uint64_t x = s->hash[a][i], y = s->hash[b][j];
        both += x == y;
        i += x <= y;
        j += y <= x;
    }
    return both ? (double)both / (double)(s->n[a] + s->n[b] - both) : 0;
}

/* ---- the index by itself ---- */

/* Sets as they are on disk. */
struct on_disk {
    struct spill file;
    struct set_ref ref[DOCS];
};

static void to_disk(const struct sets *s, struct on_disk *t)
{
    struct err e;

    assert_int_equal(spill_open(&t->file, NULL, 1 << 16, &e), 0);
    for (int d = 0; d < DOCS; d++) {
        t->ref[d] = (struct set_ref){t->file.size / s->bytes, s->n[d]};
        assert_int_equal(set_put(&t->file, s->bytes, s->hash[d], s->n[d], &e), 0);
    }
    assert_int_equal(spill_flush(&t->file, &e), 0);
}

/* Puts all documents in, in turn; each must find all earlier ones that it is like.  Counts those that it finds. */
static size_t all_are_found(const struct sets *s, double threshold, size_t memory)
{
    struct on_disk t;
    struct spill *file = &t.file;
    struct set_files files;
    struct prefix_index *p;
    struct prefix x = {0};
    struct prefix_found f = {0};
    size_t hashes = 0, looked = 0;
    bool enough;
    struct err e;

    to_disk(s, &t);
    files = (struct set_files){.file = &file, .n = 1, .bytes = s->bytes};
    for (int d = 0; d < DOCS; d++)
        hashes += s->n[d];
    assert_int_equal(prefix_index_new(&p, t.ref, &files, threshold, hashes, memory, &e), 0);
    for (int d = 0; d < DOCS; d++)
        assert_int_equal(prefix_index_count(p, (uint32_t)d, &e), 0);
    for (int d = 0, from = 0; d < DOCS; d++) {
        bool is_found[DOCS] = {false};

        assert_int_equal(prefix_of(p, (uint32_t)d, &x, &e), 0);
        assert_int_equal(prefix_index_find(p, &x, UINT64_MAX, &f, &enough, &e), 0);
        assert_true(enough);
        looked += f.n;
        for (size_t i = 0; i < f.n; i++) {
            assert_true(f.doc[i] < (uint32_t)d && !is_found[f.doc[i]]);
            is_found[f.doc[i]] = true;
        }
        for (int o = from; o < d; o++)
            assert_true(is_found[o] || jaccard(s, d, o) < threshold);
        assert_int_equal(prefix_index_put(p, (uint32_t)d, &x, &e), 0);
        if (prefix_index_full(p)) {
            prefix_index_clear(p);
            from = d + 1;
        }
    }
    prefix_free(&x);
    prefix_found_close(&f);
    prefix_index_free(p);
    spill_close(&t.file);
    return looked;
}

static void the_index_finds_all_that_are_similar(void **state)
{
    static const double thresholds[] = {0.3, 0.5, 0.7, 0.8, 0.9, 1};
    struct sets *s = malloc(sizeof *s);

    (void)state;
    for (int kind = 0; kind <= KINDS; kind++) {
        make_sets(s, kind, 1 + (uint32_t)kind, false);
        for (int i = kind % 3; i < 6; i += 3)
            all_are_found(s, thresholds[i], i % 2 ? 1 << 20 : 1 << 14);
    }
    make_sets(s, 2, 1, false); /* pages of a template with an eighth of their own: hardly any is looked at */
    assert_true(all_are_found(s, 0.8, 1 << 20) < DOCS);
    free(s);
}

/* ---- decisions ---- */

/* What is to be, by the definition: who is whose survivor; and how many pairs there are. */
static size_t by_definition(const struct sets *s, const uint64_t *key, int bands, double threshold, uint32_t *survivor)
{
    uint32_t order[DOCS];
    size_t pairs = 0;

    for (uint32_t i = 0, at; i < DOCS; i++) { /* by falling rank, then by number */
        for (at = i; at > 0 && s->rank[order[at - 1]] < s->rank[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (uint32_t i = 0; i < DOCS; i++) {
        uint32_t d = order[i];
        survivor[d] = d;
        for (uint32_t j = 0; j < i; j++) {
            uint32_t o = order[j];
            bool meet = false;

            for (int k = 0; k < bands && s->n[d] && s->n[o]; k++)
                meet |= key[d * (size_t)bands + (size_t)k] == key[o * (size_t)bands + (size_t)k];
            if (!meet || s->rank[d] == UINT64_MAX || jaccard(s, (int)d, (int)o) < threshold)
                continue;
            pairs++;
            if (survivor[d] == d && survivor[o] == o)
                survivor[d] = o;
        }
    }
    return pairs;
}

/* Counts the pairs that it hears of. */
static int hear(void *arg, uint32_t other, uint32_t doc, float similarity, struct err *e)
{
    size_t *count = arg;

    (void)e;
    assert_true(other < doc && similarity > 0);
    ++*count;
    return 0;
}

struct run {
    int bands, rows;
    double threshold;
    int jobs;
    int64_t memory;
    bool pairs;
};

/* A document for those that all ranks decide together, whose id is its number. */
static void add_to_group(struct rank_group *g, const struct sets *s, uint32_t d, const struct dedup_bands *shape,
                         const struct band_record *r)
{
    struct fuzzy_note head = {.count = s->n[d], .id_n = sizeof d, .rank = s->rank[d]};
    struct arena a = {0};
    struct fuzzy_parts p;
    struct span note;
    struct err e;

    assert_non_null(fuzzy_note_new(shape, &a, &head, true, &p, &note, &e));
    set_pack(p.hash, shape->hash_bytes, s->hash[d], s->n[d]);
    memcpy(p.record.key, r->key, (size_t)shape->bands * sizeof *p.record.key);
    memcpy(p.record.sketch, r->sketch, shape->sketch_bytes);
    memcpy(p.id, &d, sizeof d);
    assert_int_equal(rank_group_add(g, note, s->rank[d] == UINT64_MAX, d, &e), 0);
    arena_free(&a);
}

/* The documents that have shingles, in their order, as ranks would decide them. */
static void check_group(struct rank_group *g, const struct sets *s, const uint32_t *want)
{
    struct rank_group_counts counts;
    struct rank_fate f;
    uint64_t sent = 0, n = 0, size[DOCS] = {0}, clusters = 0;
    struct arena a = {0};
    struct err e;

    assert_int_equal(rank_group_decide(g, &sent, &e), 0);
    for (int d = 0; d < DOCS; d++)
        clusters += size[want[d]]++ == 1;
    for (uint32_t d = 0; d < DOCS; d++) {
        uint32_t id = d;

        if (!s->n[d])
            continue;
        assert_int_equal(rank_group_fate(g, n++, &f, &a, &e), 0);
        if (!f.stays)
            memcpy(&id, f.survivor.p, sizeof id);
        assert_int_equal(id, want[d]);
        if (f.stays)
            assert_int_equal(f.size, size[d]);
        else
            assert_true(f.similarity == (float)jaccard(s, (int)d, (int)id));
    }
    rank_group_counts(g, &counts);
    assert_int_equal(counts.documents, n);
    assert_int_equal(counts.clusters, clusters);
    assert_int_equal(sent, 0);
    arena_free(&a);
}

static void decide_as_defined(const struct sets *s, const struct run *run)
{
    struct minhash m;
    struct device *cpu;
    struct dedup_bands shape;
    struct dedup_store store;
    struct set_ref set;
    uint64_t packed[SIZE], *key = calloc((size_t)DOCS * (size_t)run->bands, sizeof *key);
    uint8_t sketch[MINHASH_MAX];
    uint32_t want[DOCS];
    struct dedup_fate fate[DOCS] = {0};
    struct dedup_tally tally;
    size_t heard = 0, pairs;
    struct dedup_listener l = {hear, &heard};
    struct span none = {0};
    struct comm *self;
    struct rank_group *group;
    struct rank_group_conf conf = {.hash_bytes = s->bytes, .bands = run->bands, .rows = run->rows, .threshold = run->threshold,
                                   .memory = run->memory};
    struct err e;

    assert_int_equal(comm_open_self(&self, &e), 0);
    conf.c = self;
    assert_int_equal(rank_group_open(&group, &conf, &e), 0);
    assert_int_equal(minhash_init(&m, MINHASH_M61, run->bands * run->rows, 1), 0);
    assert_int_equal(device_open_dedup(&cpu, "cpu", 1, NULL, &e), 0);
    assert_int_equal(dedup_bands_init(&shape, run->bands, run->rows, &e), 0);
    shape.hash_bytes = s->bytes;
    assert_int_equal(dedup_store_open(&store, &shape, NULL, 1 << 20, &e), 0);
    for (int d = 0; d < DOCS; d++) {
        struct band_record r = {key + d * run->bands, sketch};
        struct shingle_set set_of = {.hash = s->hash[d], .count = s->n[d]};

        if (s->n[d])
            assert_int_equal(dedup_sign_one(cpu, &m, &shape, &set_of, &r, &e), 0);
        set_pack(packed, s->bytes, s->hash[d], s->n[d]);
        assert_int_equal(dedup_store_put_set(&store, packed, s->n[d], &set, &e), 0);
        assert_int_equal(dedup_store_put_records(&store, &store.n, s->n[d] > 0, &r, &e), 0);
        assert_int_equal(dedup_store_add(&store, set, s->rank[d], none, none, &e), 0);
        if (s->n[d])
            add_to_group(group, s, (uint32_t)d, &shape, &r);
    }
    assert_int_equal(dedup_store_flush(&store, &e), 0);
    pairs = by_definition(s, key, run->bands, run->threshold, want);
    assert_int_equal(dedup_blocks_decide(&(struct dedup_plan){.store = &store, .bands = run->bands, .rows = run->rows,
                                                              .threshold = run->threshold, .verify = true,
                                                              .memory = run->memory, .jobs = run->jobs,
                                                              .listener = run->pairs ? &l : NULL},
                                         fate, &tally, &e),
                     0);
    for (uint32_t d = 0; d < DOCS; d++) {
        assert_int_equal(fate[d].survivor, want[d]);
        assert_true(want[d] == d || fate[d].similarity == (float)jaccard(s, (int)d, (int)want[d]));
    }
    assert_int_equal(heard, run->pairs ? pairs : 0);
    check_group(group, s, want);
    rank_group_close(group);
    comm_close(self);
    minhash_free(&m);
    device_close(cpu);
    dedup_bands_free(&shape);
    dedup_store_close(&store);
    free(key);
}

/* DEDUP_SEEDS: how many times as many. */
static void decisions_are_as_defined(void **state)
{
    static const struct run runs[] = {
        {21, 6, 0.8, 1, 1 << 24, false}, {42, 3, 0.5, 2, 1 << 24, false}, {14, 8, 0.7, 1, 1 << 18, false},
        {20, 13, 0.8, 2, 1 << 24, true}, {14, 9, 0.9, 1, 1 << 19, false}, {25, 10, 0.7, 3, 1 << 21, false},
        {32, 4, 0.7, 1, 1 << 20, true},  {42, 3, 0.8, 1, 1 << 19, true},  {42, 3, 0.6, 2, 1 << 20, false},
        {64, 1, 0.8, 1, 1 << 24, false}, {64, 1, 0.3, 2, 1 << 19, false},
    };
    enum { RUNS = sizeof runs / sizeof *runs };
    const char *seeds = getenv("DEDUP_SEEDS");
    struct sets *s = malloc(sizeof *s);

    (void)state;
    for (uint32_t seed = 0; seed < (seeds ? (uint32_t)atoi(seeds) : 1); seed++)
        for (uint32_t kind = 0; kind <= KINDS; kind++) {
            make_sets(s, (int)kind, seed * 100 + kind, kind % 2);
            for (uint32_t i = 0; i < RUNS; i += seeds ? 1 : 6)
                decide_as_defined(s, &runs[(i + kind) % RUNS]);
        }
    free(s);
}

/* What was held against an index that is then cleared may be like an earlier document of a bucket that is not crowded; and it
 * may meet one of the index again, which another bucket has put there. */
static void sweeps_change_nothing(void **state)
{
    struct sets *s = malloc(sizeof *s);

    (void)state;
    for (uint32_t seed = 1; seed < 6; seed += 2) {
        make_sets(s, 11, seed, false);
        decide_as_defined(s, &(struct run){20, 1, 0.8, 2, 3 << 18, false});
    }
    make_sets(s, 4, 4, false);
    decide_as_defined(s, &(struct run){32, 4, 0.7, 1, 1 << 20, true});
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_finds_all_that_are_similar),
        cmocka_unit_test(decisions_are_as_defined),
        cmocka_unit_test(sweeps_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
