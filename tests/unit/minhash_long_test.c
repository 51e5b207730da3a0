/* Long texts: in pieces and through disk they have the shingles, records and similarities of those that are taken whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "curate/dedup/dedup_sign.h"
#include "curate/dedup/minhash_long.h"
#include "curate/dedup/minhash_preset.h"
#include "curate/dedup/minhash_repeats.h"

/* What texts are made of: letters and what stands between them in several scripts, and what rules look at across characters. */
static const char *const some[] = {
    " ", " ", " ", "\n", "\n\n", " a", " b", "the", "sea", "ΣΑΣ", "σ ", "i\u0307", "İ", "1,000", " 2", ".", ", ", "don't ",
    "U.S. ", "e\u0301", " \u0301a", "\u0301", "漢字", "かな", "हिन्दी", "ไทย", "한국", "\u1112\u1161", "\u00ad", "\u200d",
    "_x", "-y ", "١٢", " z", "\t", "q",
};

static size_t make_text(struct rng_mt *r, char *text, int parts)
{
    size_t n = 0;

    for (int i = 0; i < parts; i++) {
        const char *s = some[rng_mt_u64(r) % (sizeof some / sizeof *some)];
        memcpy(text + n, s, strlen(s));
        n += strlen(s);
    }
    return n;
}

/* The hashes of a text in pieces of `least` bytes or more, each once. */
static size_t in_pieces(struct shingler *s, struct span text, size_t least, uint64_t *to, size_t *pieces)
{
    struct repeats r = {0};
    size_t n = 0;
    bool first = true;
    struct err e;

    assert_int_equal(repeats_begin(&r, text.n + 1), 0);
    *pieces = 0;
    for (size_t at = 0; first || at < text.n; first = false, ++*pieces) {
        struct span left = {text.p + at, text.n - at};
        size_t next, end = shingler_cut(s, left, least, &next), count;
        const uint64_t *hash;
        assert_true(end <= left.n && next <= left.n && (next || !left.n));
        assert_int_equal(shingler_piece(s, (struct span){left.p, end}, first, next == left.n, &hash, &count, &e), 0);
        for (size_t i = 0; i < count; i++)
            if (!repeats_next(&r, hash[i]))
                to[n++] = hash[i];
        at += next;
    }
    repeats_free(&r);
    return n;
}

static void pieces_have_the_shingles_of_the_whole(void **state)
{
    static char text[4096];
    static uint64_t want[4096], got[4096];
    const struct minhash_preset *p;
    struct rng_mt r;
    struct err e;

    (void)state;
    rng_mt_seed(&r, 3);
    for (int k = 0; (p = minhash_preset_at(k)); k++) {
        struct shingler *s;
        size_t most = 0;
        assert_int_equal(shingler_new(&s, p, 7, &e), 0);
        for (int round = 0; round < 2000; round++) {
            struct span t = {text, make_text(&r, text, (int)(rng_mt_u64(&r) % 90))};
            const uint64_t *hash;
            size_t n, pieces, count;
            assert_int_equal(shingler_run(s, t, &hash, &count, &e), 0);
            memcpy(want, hash, count * sizeof *want);
            n = in_pieces(s, t, 1 + rng_mt_u64(&r) % 40, got, &pieces);
            if (n != count || memcmp(want, got, n * sizeof *got) != 0)
                fail_msg("%s: %zu, not %zu of '%.*s' in %zu pieces", p->name, n, count, (int)t.n, text, pieces);
            most = pieces > most ? pieces : most;
        }
        assert_true(most > 5);
        shingler_free(s);
    }
}

/* 5 MB, of which some words come twice. */
static char *make_long(size_t *n)
{
    enum { WORDS = 650000 };
    char *text = malloc(WORDS * 8 + 1);
    struct rng_mt r;

    assert_non_null(text);
    rng_mt_seed(&r, 5);
    for (size_t i = 0; i < WORDS; i++)
        snprintf(text + i * 8, 9, "w%05d%c ", (int)(i % 3 ? rng_mt_u64(&r) % 30000 : i / 3 % 3000), i % 2 ? 'a' : 'b');
    *n = WORDS * 8;
    return text;
}

static void a_long_set_and_its_record_are_those_of_the_whole(void **state)
{
    static const char *const presets[] = {"quern2", "nemo"};
    enum { SETS = 3 }; /* one text: in a file, in memory, packed there */
    struct span text, none = {0};
    char *made = make_long(&text.n);
    struct err e;

    (void)state;
    text.p = made;
    for (int k = 0; k < 2; k++) {
        const struct minhash_preset *p = minhash_preset_find(presets[k]);
        uint64_t key[SETS][MINHASH_MAX_BANDS], *copy;
        void *bytes;
        uint8_t sketch[SETS][MINHASH_MAX];
        struct dedup_bands shape;
        struct dedup_store store;
        struct dedup_signer *signer;
        struct minhash m;
        struct dedup_sign_conf conf = {.m = &m, .shape = &shape, .store = &store, .docs = 8, .hashes = 1 << 18};
        struct shingle_set set, whole = {0}, packed = {0};
        struct spill file = {.fd = -1};
        struct shingler *s, *other;
        struct signed_doc d[SETS];
        assert_int_equal(minhash_init(&m, p->family, 20, 1), 0);
        assert_int_equal(dedup_bands_init(&shape, 5, 4, &e), 0);
        shape.hash_bytes = minhash_hash_bytes(p);
        assert_int_equal(dedup_store_open(&store, &shape, NULL, 1 << 20, &e), 0);
        assert_int_equal(dedup_signer_new(&signer, &conf, &e), 0);
        assert_int_equal(shingler_new(&s, p, 7, &e), 0);
        assert_int_equal(shingler_new(&other, p, 7, &e), 0);
        for (int i = 0; i < 2; i++) /* the second one lies behind the first */
            assert_int_equal(shingle_set_of(&set, s, text, &file, NULL, &e), 0);
        assert_int_equal(set.file.at, set.file.n);
        assert_int_equal(shingler_run(other, text, &whole.hash, &whole.count, &e), 0);
        assert_null(set.hash);
        assert_int_equal(set.count, whole.count);
        copy = malloc(set.count * sizeof *copy);
        assert_non_null(copy);
        assert_int_equal(shingle_set_copy(&set, 0, copy, set.count, &e), 0);
        assert_memory_equal(copy, whole.hash, set.count * sizeof *copy);
        assert_int_equal(set.bytes, k ? 4 : 8);
        bytes = malloc(set.count * set.bytes);
        assert_non_null(bytes);
        assert_int_equal(shingle_set_pack(&set, bytes, &e), 0);
        packed = (struct shingle_set){.count = set.count, .packed = bytes, .bytes = set.bytes};
        for (int i = 0; i < SETS; i++) {
            assert_int_equal(dedup_signer_add(signer, (const struct shingle_set *[]){&set, &whole, &packed}[i], &d[i], &e), 0);
            assert_int_equal(dedup_store_add(&store, d[i].set, 0, none, none, &e), 0);
            dedup_signer_number(&d[i], (uint64_t)i);
        }
        assert_int_equal(dedup_signer_finish(signer, &e), 0);
        assert_int_equal(dedup_store_flush(&store, &e), 0);
        for (int i = 0; i < SETS; i++) {
            memset(copy, 0, set.count * sizeof *copy);
            assert_int_equal(set_files_read(&store.sets, d[i].set, copy, &e), 0);
            assert_memory_equal(copy, whole.hash, set.count * sizeof *copy);
            assert_int_equal(dedup_store_record(&store, (uint64_t)i, &(struct band_record){key[i], sketch[i]}, &e), 0);
            assert_memory_equal(key[0], key[i], 5 * sizeof **key);
            assert_memory_equal(sketch[0], sketch[i], 20);
        }
        free(bytes);
        free(copy);
        spill_close(&file);
        shingler_free(s);
        shingler_free(other);
        dedup_signer_close(signer);
        dedup_store_close(&store);
        dedup_bands_free(&shape);
        minhash_free(&m);
    }
    free(made);
}

/* Sets of which the first has to be looked at in parts; all hashes of a third one belong to one part.  bytes: of a hash. */
static void compare_large_sets(size_t bytes)
{
    enum { N = 1500000, SHARED = 1000000, STEP = 1 << 11, MULTIPLES = (N - 1) / STEP + 1 };
    struct spill file = {.fd = -1}, *files[] = {&file};
    struct set_files sets = {files, 1, 1, bytes};
    struct set_ref set[] = {{0, N}, {N, N}, {2 * (uint64_t)N, N}, {3 * (uint64_t)N, 7}};
    struct set_pair pair[] = {{0, 1, 0}, {0, 0, 0}, {2, 0, 0}, {2, 2, 0}, {0, 3, 0}, {3, 0, 0}};
    struct dedup_compare *c;
    struct err e;

    assert_int_equal(spill_open(&file, NULL, 1 << 16, &e), 0);
    for (uint64_t k = 0; k < 3; k++)
        for (uint64_t i = 0; i < N; i++) {
            uint64_t h = k < 2 ? (i < SHARED ? i : i + k * N) : i * STEP; /* 0 is of all three */
            assert_int_equal(set_put(&file, bytes, &h, 1, &e), 0);
        }
    for (uint64_t i = 0; i < 7; i++)
        assert_int_equal(set_put(&file, bytes, &(uint64_t){i * 100}, 1, &e), 0);
    assert_int_equal(spill_flush(&file, &e), 0);
    assert_int_equal(dedup_compare_new(&c, &sets, &e), 0);
    assert_int_equal(dedup_compare_run(c, set, 0, pair, sizeof pair / sizeof *pair, &e), 0);
    assert_true(pair[0].similarity == (double)SHARED / (2 * N - SHARED));
    assert_true(pair[1].similarity == 1);
    assert_true(pair[2].similarity == (double)MULTIPLES / (2 * N - MULTIPLES));
    assert_true(pair[3].similarity == 1);
    assert_true(pair[4].similarity == 7. / N && pair[5].similarity == 7. / N);
    dedup_compare_free(c);
    spill_close(&file);
}

static void large_sets_are_compared_exactly(void **state)
{
    (void)state;
    compare_large_sets(8);
    compare_large_sets(4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_have_the_shingles_of_the_whole),
        cmocka_unit_test(a_long_set_and_its_record_are_those_of_the_whole),
        cmocka_unit_test(large_sets_are_compared_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
