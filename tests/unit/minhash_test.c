/* Signatures: recorded ones, every instruction set, the exact modulus, presets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/rng.h"
#include "curate/stream/doc.h"
#include "curate/dedup/minhash_preset.h"
#include "curate/dedup/minhash_text.h"
#include "kernels/minhash.h"
#include "kernels/minhash_simd.h"
#include "kernels/minhash_window.h"

#define M61 0x1fffffffffffffffull

static void coefficients_are_those_of_numpy(void **s)
{
    struct minhash m;

    (void)s;
    assert_int_equal(minhash_init(&m, MINHASH_M61, 112, 1), 0);
    assert_true(m.a[0] == 775169054918279404u && m.a[1] == 1758426461858698313u);
    assert_true(m.a[111] == 223865076026037746u);
    assert_true(m.b[0] - 1 == 1062448801025099917u && m.b[111] - 1 == 1097409548522419201u);
    minhash_free(&m);
    assert_int_equal(minhash_init(&m, MINHASH_U32, 260, 42), 0);
    assert_true(m.a32[0] == 1608637543u && m.b32[0] == 1273642419u);
    assert_true(m.a32[1] == 1935803229u && m.b32[1] == 787846414u);
    minhash_free(&m);
    assert_int_equal(minhash_init(&m, MINHASH_M61, 0, 1), ERR_ARG);
    minhash_free(&m);
    assert_int_equal(minhash_init(&m, MINHASH_M61, MINHASH_MAX + 1, 1), ERR_ARG);
    minhash_free(&m);
}

/* By the definition, one value at a time. */
static void plain(const struct minhash *m, const uint64_t *h, size_t n, uint64_t *sig)
{
    for (int j = 0; j < m->n; j++) {
        sig[j] = UINT64_MAX;
        for (size_t i = 0; i < n; i++) {
            uint64_t v = m->family == MINHASH_M61   ? (m->a[j] * h[i] + (m->b[j] - 1)) % M61
                         : m->family == MINHASH_U32 ? (uint32_t)(m->a32[j] * (uint32_t)h[i] + m->b32[j])
                                                    : (uint32_t)((m->a[j] * h[i] + m->b[j]) % M61);
            sig[j] = v < sig[j] ? v : sig[j];
        }
    }
}

static void check_plain(const struct minhash *m, const uint64_t *h, size_t n)
{
    uint64_t got[MINHASH_MAX], want[MINHASH_MAX];

    minhash_signature(m, h, n, got);
    plain(m, h, n, want);
    for (int j = 0; j < m->n; j++)
        if (got[j] != want[j])
            fail_msg("family %d, %d hashes of %zu: place %d is %llu, not %llu", (int)m->family,
                     m->n, n, j, (unsigned long long)got[j], (unsigned long long)want[j]);
}

static void signatures_are_as_defined(void **s)
{
    static const int sizes[] = {1, 2, 15, 16, 17, 48, 112, 126, 260};
    static const size_t counts[] = {1, 2, 3, 100, 1023, 1024, 1025, 3000};
    uint64_t h[3000];
    struct rng_mt r;
    struct minhash m;

    (void)s;
    rng_mt_seed(&r, 11);
    for (size_t i = 0; i < 3000; i++)
        h[i] = rng_mt_u64(&r);
    for (int family = 0; family < 4; family++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            assert_int_equal(minhash_init(&m, (enum minhash_family)family, sizes[i], 7), 0);
            for (size_t j = 0; j < sizeof counts / sizeof *counts; j++)
                check_plain(&m, h, counts[j]);
            minhash_free(&m);
        }
}

/* Values around every place where the modulus, its carry or the wrap at 2^64 acts. */
static void the_modulus_is_exact_at_its_edges(void **s)
{
    uint64_t edge[600];
    uint64_t a[4] = {1, 1, 3, M61 - 1}, b[4] = {0, 1, M61 - 1, 0};
    size_t n = 0;
    struct minhash m;

    (void)s;
    for (uint64_t q = 0; q < 9; q++)
        for (uint64_t d = 0; d < 24; d++) {
            edge[n++] = q * M61 + d - 12;
            edge[n++] = (q << 61) + d - 12;
        }
    for (int low = 0; low < 2; low++) {
        assert_int_equal(minhash_init_with(&m, low ? MINHASH_LOW32 : MINHASH_M61, 4, a, b), 0);
        for (size_t i = 0; i < n; i++)
            check_plain(&m, edge + i, 1);
        for (size_t i = 0; i + 5 <= n; i++)
            check_plain(&m, edge + i, 5);
        check_plain(&m, edge, n);
        minhash_free(&m);
    }
}

#if defined(__x86_64__)
/* One family by all sets that are here, in `out`, of which all bytes are `least` at first. */
#define AGREE(min, family, a, b, least, out)                                                    \
    do {                                                                                        \
        int n = (int)(sizeof(out)[0] / sizeof(out)[0][0]);                                      \
        assert_int_equal(minhash_init(&m, family, n, 5), 0);                                    \
        memset(out, least, sizeof(out));                                                        \
        min##_base(m.a, m.b, n, h, 777, (out)[0]);                                              \
        if (isa_best() >= ISA_AVX2)                                                             \
            min##_avx2(m.a, m.b, n, h, 777, (out)[1]);                                          \
        if (isa_best() >= ISA_AVX512)                                                           \
            min##_avx512(m.a, m.b, n, h, 777, (out)[2]);                                        \
        for (int i = 1; i <= (int)isa_best(); i++)                                              \
            assert_memory_equal((out)[0], (out)[i], sizeof(out)[0]);                            \
        minhash_free(&m);                                                                       \
    } while (0)

static void instruction_sets_agree(void **s)
{
    struct rng_mt r;
    struct minhash m;
    uint64_t h[777];
    _Alignas(64) uint64_t x[3][144];
    _Alignas(64) uint32_t y[3][272];

    (void)s;
    rng_mt_seed(&r, 3);
    for (size_t i = 0; i < 777; i++)
        h[i] = rng_mt_u64(&r);
    AGREE(minhash_m61_min, MINHASH_M61, a, b, 0x1f, x);
    AGREE(minhash_u32_min, MINHASH_U32, a32, b32, 0xff, y);
    AGREE(minhash_low32_min, MINHASH_LOW32, a, b, 0x1f, x);
}
#endif

static struct span member(const struct json_field *f, int n, const char *key, struct buf *b)
{
    struct err e;

    for (int i = 0; i < n; i++)
        if (span_is(f[i].key, key)) {
            buf_clear(b);
            if (f[i].type != JSON_STRING) {
                assert_int_equal(buf_put_span(b, f[i].raw), 0);
                return buf_span(b);
            }
            assert_int_equal(json_unescape(f[i].raw, b, &e), 0);
            return b->n ? buf_span(b) : span_of("");
        }
    return (struct span){0};
}

/* One recorded text of datatrove's. */
static void check_recorded(struct shingler *sh, const struct minhash *m,
                           const struct json_field *f, int n)
{
    struct buf b = {0};
    struct span text = member(f, n, "text", &b), want;
    struct buf w = {0};
    const uint64_t *hash;
    uint64_t sig[112];
    size_t count;
    char digest[20];
    struct err e;

    assert_int_equal(shingler_run(sh, text, &hash, &count, &e), 0);
    want = member(f, n, "words", &w);
    if (!span_eq(shingler_words(sh), want))
        fail_msg("words of '%.*s' are '%.*s', not '%.*s'", (int)text.n, text.p,
                 (int)shingler_words(sh).n, shingler_words(sh).p, (int)want.n, want.p);
    assert_int_equal(count, strtoul(member(f, n, "shingles", &w).p, NULL, 10));
    want = member(f, n, "digest", &w);
    assert_true((want.p != NULL) == (count > 0));
    if (count) {
        minhash_signature(m, hash, count, sig);
        snprintf(digest, sizeof digest, "%016llx",
                 (unsigned long long)hash_xxh64((struct span){(char *)sig, sizeof sig}, 0));
        assert_string_equal(digest, want.p);
    }
    buf_free(&b);
    buf_free(&w);
}

static void signatures_equal_datatroves(void **s)
{
    const struct minhash_preset *p = minhash_preset_find("datatrove");
    struct json_reader *r = json_reader_new();
    struct buf all = {0};
    struct shingler *sh;
    struct minhash m;
    struct err e;
    int lines = 0;

    (void)s;
    assert_int_equal(file_read_all("tests/data/dedup/datatrove.jsonl", 1 << 20, &all, &e), 0);
    assert_int_equal(buf_reserve(&all, JSON_PADDING), 0);
    assert_int_equal(shingler_new(&sh, p, 0, &e), 0);
    assert_int_equal(minhash_init(&m, p->family, p->bands * p->rows, p->seed), 0);
    for (size_t at = 0; at < all.n; lines++) {
        const char *end = memchr(all.p + at, '\n', all.n - at);
        struct span line = {all.p + at, (size_t)(end - all.p) - at};
        const struct json_field *f;
        int n = json_read_object(r, line, &f, &e);
        assert_true(n > 0);
        check_recorded(sh, &m, f, n);
        at += line.n + 1;
    }
    assert_true(lines >= 20);
    minhash_free(&m);
    shingler_free(sh);
    json_reader_free(r);
    buf_free(&all);
}

/* A line of tests/record/minhash_peers.py: a choice of bands, or a text. */
static void check_peer(const struct minhash_preset *p, struct shingler *sh, const struct minhash *m,
                       const struct json_field *f, int n)
{
    struct buf b = {0}, w = {0};
    struct span text = member(f, n, "text", &b), want;
    const uint64_t *hash;
    uint64_t sig[MINHASH_MAX];
    size_t count;
    char got[40];
    struct err e;

    if (!text.p) {
        int bands, rows;
        minhash_optimal(strtod(member(f, n, "threshold", &w).p, NULL), p->hashes, &bands, &rows);
        snprintf(got, sizeof got, "[%d, %d]", bands, rows);
        want = member(f, n, "shape", &w);
    } else {
        assert_int_equal(shingler_run(sh, text, &hash, &count, &e), 0);
        want = member(f, n, "digest", &w);
        if (count)
            minhash_signature(m, hash, count, sig);
        snprintf(got, sizeof got, "%016llx", (unsigned long long)hash_xxh64((struct span){(char *)sig, (size_t)m->n * 8}, 0));
        got[count ? 16 : 0] = '\0';
    }
    if (!span_is(want, got))
        fail_msg("%s: '%s', not '%.*s', of '%.*s'", p->name, got, (int)want.n, want.p, (int)text.n, text.p ? text.p : "");
    buf_free(&b);
    buf_free(&w);
}

static void signatures_equal_those_of_others(void **s)
{
    static const char *const names[] = {"text-dedup", "rpv2"};

    (void)s;
    for (int i = 0; i < 2; i++) {
        const struct minhash_preset *p = minhash_preset_find(names[i]);
        struct json_reader *r = json_reader_new();
        struct buf all = {0};
        struct shingler *sh;
        struct minhash m;
        struct err e;
        char path[64];
        int lines = 0;

        snprintf(path, sizeof path, "tests/data/dedup/%s.jsonl", names[i]);
        assert_int_equal(file_read_all(path, 1 << 20, &all, &e), 0);
        assert_int_equal(buf_reserve(&all, JSON_PADDING), 0);
        assert_int_equal(shingler_new(&sh, p, 0, &e), 0);
        assert_int_equal(minhash_init(&m, p->family, p->hashes, p->seed), 0);
        for (size_t at = 0; at < all.n; lines++) {
            const char *end = memchr(all.p + at, '\n', all.n - at);
            struct span line = {all.p + at, (size_t)(end - all.p) - at};
            const struct json_field *f;
            int n = json_read_object(r, line, &f, &e);
            assert_true(n > 0);
            check_peer(p, sh, &m, f, n);
            at += line.n + 1;
        }
        assert_true(lines > 30);
        minhash_free(&m);
        shingler_free(sh);
        json_reader_free(r);
        buf_free(&all);
    }
}

/* With MINHASH_DOCS naming a file of documents: XXH64 over the digests of the first 2,000
 * signatures, a line each, is printed for tests/shared/dedup.sh to compare. */
static void signatures_of_real_documents(void **s)
{
    const struct minhash_preset *p = minhash_preset_find("datatrove");
    const char *path = getenv("MINHASH_DOCS");
    struct buf all = {0}, lines = {0};
    struct json_reader *r;
    struct arena a = {0};
    struct shingler *sh;
    struct minhash m;
    struct err e;
    int docs = 0;

    (void)s;
    if (!path)
        skip();
    r = json_reader_new();
    assert_int_equal(file_read_all(path, 1u << 31, &all, &e), 0);
    assert_int_equal(buf_reserve(&all, JSON_PADDING), 0);
    assert_int_equal(shingler_new(&sh, p, 0, &e), 0);
    assert_int_equal(minhash_init(&m, p->family, p->bands * p->rows, p->seed), 0);
    for (size_t at = 0; at < all.n && docs < 2000; docs++) {
        const char *end = memchr(all.p + at, '\n', all.n - at);
        struct span line = {all.p + at, (size_t)(end - all.p) - at};
        const uint64_t *hash;
        uint64_t sig[112];
        size_t count;
        struct doc d;
        doc_init(&d, &a);
        d.file = path;
        d.offset = at;
        assert_int_equal(doc_parse(&d, r, line, &e), 0);
        assert_int_equal(shingler_run(sh, d.text, &hash, &count, &e), 0);
        if (count) {
            minhash_signature(&m, hash, count, sig);
            assert_int_equal(buf_printf(&lines, "%016llx\n", (unsigned long long)hash_xxh64(
                                            (struct span){(char *)sig, sizeof sig}, 0)), 0);
        } else {
            assert_int_equal(buf_puts(&lines, "-\n"), 0);
        }
        at += line.n + 1;
    }
    printf("datatrove %d %016llx\n", docs, (unsigned long long)hash_xxh64(buf_span(&lines), 0));
    minhash_free(&m);
    shingler_free(sh);
    json_reader_free(r);
    arena_free(&a);
    buf_free(&all);
    buf_free(&lines);
}

/* The golden values of cuDF's own test of nvtext::minhash: width 4, seed 0, a = b =
 * 10, 11, 12. */
static void signatures_equal_cudfs(void **s)
{
    static const struct {
        const char *text;
        uint64_t sig[3];
    } golden[] = {
        {"doc 1", {1392101586, 394869177, 811528444}},
        {"this is doc 2", {211415830, 187088503, 130291444}},
        {"doc 3", {2098117052, 394869177, 799753544}},
        {"d", {2264583304, 2920538364, 3576493424}},
        {"The quick brown fox jump\xc3\xa9" "d over the lazy brown dog.",
         {253327882, 41747273, 302030804}},
        {"line six", {2109809594, 1017470651, 326988172}},
        {"line seven", {1303819864, 850676747, 147107852}},
        {"line eight", {736021564, 720812292, 1405158760}},
        {"line nine", {902780242, 134064807, 1613944636}},
        {"line ten", {547084870, 1748895564, 656501844}},
    };
    static const uint64_t ab[3] = {10, 11, 12};
    struct minhash_preset p = *minhash_preset_find("nemo");
    struct shingler *sh;
    struct minhash m;
    struct err e;

    (void)s;
    p.width = 4;
    assert_int_equal(shingler_new(&sh, &p, 0, &e), 0);
    assert_int_equal(minhash_init_with(&m, MINHASH_U32, 3, ab, ab), 0);
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const uint64_t *hash;
        uint64_t sig[3];
        size_t count;
        assert_int_equal(shingler_run(sh, span_of(golden[i].text), &hash, &count, &e), 0);
        minhash_signature(&m, hash, count, sig);
        assert_memory_equal(sig, golden[i].sig, sizeof sig);
    }
    minhash_free(&m);
    shingler_free(sh);
}

static uint64_t murmur3(const char *text, size_t n, uint32_t seed)
{
    uint32_t start[2] = {0, (uint32_t)n};
    uint64_t h;

    ISA_PICK(minhash_window_chars)(text, start, 1, 1, seed, &h);
    return h;
}

/* Published test vectors of MurmurHash3_x86_32. */
static void murmur3_gives_its_test_vectors(void **s)
{
    (void)s;
    assert_int_equal(murmur3("", 0, 0), 1); /* 0, which stands for "none" */
    assert_int_equal(murmur3("", 0, 1), 0x514e28b7);
    assert_int_equal(murmur3("", 0, 0xffffffff), 0x81f16f39);
    assert_int_equal(murmur3("\xff\xff\xff\xff", 4, 0), 0x76293b50);
    assert_int_equal(murmur3("!Ce\x87", 4, 0), 0xf55b516b);
    assert_int_equal(murmur3("!Ce", 3, 0), 0x7e4a8634);
    assert_int_equal(murmur3("!C", 2, 0), 0xa0f7b07a);
    assert_int_equal(murmur3("!", 1, 0), 0x72661cf4);
    assert_int_equal(murmur3("aaaa", 4, 0x9747b28c), 0x5a97808a);
    assert_int_equal(murmur3("Hello, world!", 13, 0x9747b28c), 0x24884cba);
}

/* Words of every length from 0 to beyond what the vector code takes. */
static void windows_are_hashed_one_by_one(void **s)
{
    enum { WORDS = 400, WIDTH = 3 };
    char *text = calloc(1, WORDS * 60 + WINDOW_PADDING);
    uint32_t start[WORDS + 1];
    uint64_t got[WORDS];
    struct rng_mt r;

    (void)s;
    rng_mt_seed(&r, 21);
    start[0] = 0;
    for (int i = 0; i < WORDS; i++)
        start[i + 1] = start[i] + 1 + (uint32_t)rng_mt_interval(&r, i < 200 ? 12 : 40);
    for (uint32_t i = 0; i < start[WORDS]; i++)
        text[i] = (char)rng_mt_u32(&r);
    for (size_t count = 0; count <= WORDS - WIDTH; count += count < 60 ? 1 : 37) {
        memset(got, 0xee, sizeof got);
        ISA_PICK(minhash_window)(text, start, WIDTH, count, got);
        for (size_t i = 0; i < count; i++) {
            struct span w = {text + start[i], start[i + WIDTH] - 1 - start[i]};
            assert_true(got[i] == hash_xxh64(w, 0));
        }
        assert_true(got[count] == 0xeeeeeeeeeeeeeeeeu);
    }
    free(text);
}

/* Windows of characters of one byte, and of more, against one window at a time. */
static void character_windows_are_hashed_one_by_one(void **s)
{
    enum { CHARS = 500, LONGEST = 30 };
    static const int widths[] = {1, 3, 4, 5, 24, 63, 64, 65, 100};
    char text[LONGEST * CHARS];
    uint32_t start[CHARS + 1], at;
    uint64_t got[CHARS];
    struct rng_mt r;

    (void)s;
    rng_mt_seed(&r, 22);
    for (int round = 0; round < 60; round++) {
        int width = widths[round % 9], most = round % 6 < 4 ? round % 6 : round % 6 == 4 ? 6 : LONGEST - 1;
        at = 0;
        for (int i = 0; i < CHARS; i++) {
            start[i] = at;
            for (uint64_t n = i % 100 > 60 ? 1 + rng_mt_interval(&r, (uint64_t)most) : 1; n > 0; n--)
                text[at++] = (char)rng_mt_u32(&r);
        }
        start[CHARS] = at;
        ISA_PICK(minhash_window_chars)(text, start, width, (size_t)(CHARS - width + 1), 42, got);
        for (int i = 0; i + width <= CHARS; i++)
            assert_true(got[i] == murmur3(text + start[i], start[i + width] - start[i], 42));
    }
}

static void words_check(struct shingler *sh, const char *text, const char *want, size_t shingles)
{
    const uint64_t *hash;
    size_t count;
    struct err e;

    assert_int_equal(shingler_run(sh, span_of(text), &hash, &count, &e), 0);
    if (!span_is(shingler_words(sh), want))
        fail_msg("'%.*s', not '%s'", (int)shingler_words(sh).n, shingler_words(sh).p, want);
    assert_int_equal(count, shingles);
}

static void plain_words_are_letters_and_digits(void **s)
{
    struct shingler *sh;
    struct err e;

    (void)s;
    assert_int_equal(shingler_new(&sh, minhash_preset_find("quern"), 0, &e), 0);
    words_check(sh, "Don't_stop: 3.14 CAF\xc3\x89!", "don t stop 3 14 caf\xc3\xa9", 2);
    words_check(sh, "one", "one", 1);
    words_check(sh, "", "", 0);
    words_check(sh, " .,- ", "", 0);
    words_check(sh, "\xce\x9f\xce\xa3 \xce\xa3\xce\xb1", "\xce\xbf\xcf\x82 \xcf\x83\xce\xb1", 1);
    words_check(sh, "\xc4\xb0x", "i x", 1);
    words_check(sh, "x\xc2\xbd \xe2\x85\xa7", "x\xc2\xbd \xe2\x85\xb7", 1);
    words_check(sh, "a b c d e f a b c d e f a b c d e", "a b c d e f a b c d e f a b c d e", 6);
    shingler_free(sh);
}

/* A text that comes twice has the shingles of one, in their order, and those across the joint; in however many parts they are
 * looked at. */
static void long_texts_have_each_shingle_once(void **s)
{
    static const char *const presets[] = {"quern2", "nemo"};
    enum { WORDS = 800000, WORD = 8 };
    char *text = malloc(2 * WORDS * WORD + 1);

    (void)s;
    assert_non_null(text);
    for (size_t i = 0; i < WORDS; i++)
        snprintf(text + i * WORD, WORD + 1, "%07zu ", i * 7919 % 9999991);
    memcpy(text + WORDS * WORD, text, WORDS * WORD);
    for (size_t k = 0; k < sizeof presets / sizeof *presets; k++) {
        const struct minhash_preset *p = minhash_preset_find(presets[k]);
        bool chars = p->kind == SHINGLE_CHARS;
        size_t bytes = chars ? WORDS / 2 * WORD : WORDS * WORD, once, twice, most, across = 0;
        struct shingler *sh;
        const uint64_t *hash;
        uint64_t *first;
        struct err e;

        if (chars) /* half of it is long enough */
            memcpy(text + bytes, text, bytes);
        assert_int_equal(shingler_new(&sh, p, 7, &e), 0);
        assert_int_equal(shingler_run(sh, (struct span){text, bytes}, &hash, &once, &e), 0);
        most = chars ? bytes - (size_t)p->width + 1 : WORDS - (size_t)p->width + 1;
        assert_true(once <= most && once > most - most / 100); /* but for hashes that are equal by chance, of 32 bits */
        first = malloc(once * sizeof *first);
        assert_non_null(first);
        memcpy(first, hash, once * sizeof *first);
        assert_int_equal(shingler_run(sh, (struct span){text, 2 * bytes}, &hash, &twice, &e), 0);
        across = (size_t)p->width - 1;
        assert_true(twice >= once && twice <= once + across);
        assert_memory_equal(hash, first, once * sizeof *first);
        free(first);
        shingler_free(sh);
    }
    free(text);
}

static void bands_follow_from_the_threshold(void **s)
{
    int bands, rows;

    (void)s;
    minhash_choose(0.8, 128, &bands, &rows);
    assert_int_equal(bands, 21);
    assert_int_equal(rows, 6);
    for (double t = 0.05; t < 1.01; t += 0.05) {
        minhash_choose(t, 128, &bands, &rows);
        assert_true(bands >= 1 && rows >= 1 && bands * rows <= 128);
        assert_true(rows == 1 || minhash_meet(t > 1 ? 1 : t, bands, rows) >= 0.995);
    }
    assert_null(minhash_preset_find("nobody"));
    assert_null(minhash_preset_at(99));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coefficients_are_those_of_numpy),
        cmocka_unit_test(signatures_are_as_defined),
        cmocka_unit_test(the_modulus_is_exact_at_its_edges),
#if defined(__x86_64__)
        cmocka_unit_test(instruction_sets_agree),
#endif
        cmocka_unit_test(signatures_equal_datatroves),
        cmocka_unit_test(signatures_equal_those_of_others),
        cmocka_unit_test(signatures_of_real_documents),
        cmocka_unit_test(signatures_equal_cudfs),
        cmocka_unit_test(murmur3_gives_its_test_vectors),
        cmocka_unit_test(windows_are_hashed_one_by_one),
        cmocka_unit_test(character_windows_are_hashed_one_by_one),
        cmocka_unit_test(plain_words_are_letters_and_digits),
        cmocka_unit_test(long_texts_have_each_shingle_once),
        cmocka_unit_test(bands_follow_from_the_threshold),
    };
    return cmocka_run_group_tests_name("minhash", tests, NULL, NULL);
}
