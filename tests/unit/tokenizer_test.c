/* Splitters against PCRE2 and each other, merging against the plain definition, the table of
 * words, files that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/utf8.h"
#include "tokenize/bpe_pairs.h"
#include "tokenize/model.h"
#include "tokenize/split.h"
#include "tokenize/split_pcre.h"
#include "tokenize/split_run.h"
#include "tokenize/tokenizer.h"
#include "tokenize/word_table.h"

static struct rng_mt rng;

static uint32_t below(uint32_t n)
{
    return rng_mt_u32(&rng) % n;
}

/* Words, digits, white space, contractions and hard characters at random. */
static size_t random_text(char *s, size_t max, bool ascii)
{
    static const char *const bits[] = {
        "a", "b", "Q", "Z", "the", "Mill", "ABC", "aB", " ", " ", " ", "  ", "   ", "\n", "\r\n", "\n\n", "\t",
        " \n", "\n    ", "1", "12", "2024", "1234567", "'", "'s", "'S", "'ll", "'Re", "'x", "n't", "''", ".", ",",
        "!!", "(", "/", "//", ".\n/", "-", "#", "\v", "\f", "\x1c", "supercalifragilistic", "        ", "0",
    };
    static const uint32_t chars[] = {
        0xE9, 0xC9, 0x17F, 0x212A, 0x430, 0x416, 0x5D0, 0x939, 0x93F, 0x94D, 0x4E00, 0x3042, 0xAC00, 0x300, 0x301,
        0xA0, 0x85, 0x3000, 0x2003, 0x2028, 0x200B, 0xFEFF, 0x180E, 0x660, 0xBD, 0x2167, 0x201C, 0x2019, 0x2014,
        0x1F600, 0x1F1E9, 0x10400, 0x1D7D8, 0x1C5, 0x2B0, 0x345, 0x20DD, 0xAD, 0xFFFD, 0x10FFFF, 0xE000,
    };
    size_t n = 0, pieces = 1 + below(ascii ? 120 : 60);

    for (size_t i = 0; i < pieces && n + 32 < max; i++) {
        if (!ascii && below(3) == 0) {
            n += (size_t)utf8_put(s + n, chars[below(sizeof chars / sizeof *chars)]);
        } else {
            const char *b = bits[below(sizeof bits / sizeof *bits)];
            memcpy(s + n, b, strlen(b));
            n += strlen(b);
        }
    }
    return n;
}

static size_t ends_by_scan(const struct split *s, const char *text, size_t n, uint32_t *ends)
{
    size_t at = 0, k = 0;

    while (at < n) {
        at += s->next((const uint8_t *)text + at, (const uint8_t *)text + n);
        ends[k++] = (uint32_t)at;
    }
    return k;
}

static size_t ends_by_split(const struct split *s, const char *text, size_t n, uint32_t *ends, size_t room)
{
    struct split_state st = {.text = (const uint8_t *)text, .n = n};
    uint32_t some[1024];
    size_t k = 0;
    int64_t got;

    while ((got = split_next(s, &st, some, room, NULL)) > 0) {
        memcpy(ends + k, some, (size_t)got * sizeof *ends);
        k += (size_t)got;
    }
    assert_int_equal(got, 0);
    return k;
}

static void fail_text(const char *name, const char *why, const char *text, size_t n)
{
    fprintf(stderr, "%s, %s:", name, why);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, text[i] >= 32 && text[i] < 127 ? "%c" : "\\x%02x", (unsigned char)text[i]);
    fprintf(stderr, "\n");
    fail();
}

static const char *const patterns[] = {"gpt2", "cl100k", "llama3", "qwen2", "o200k", "tekken"};

static void splitters_cut_as_pcre2(void **state)
{
    struct split_pcre *x;
    struct split s, p = {.kind = SPLIT_PCRE};
    char text[4096];
    uint32_t a[4096], b[4096];
    struct err e;

    (void)state;
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
        assert_int_equal(split_find(&s, patterns[k], &e), 0);
        if (split_pcre_new(&x, split_pattern(&s), &e) < 0) {
            assert_int_equal(e.code, ERR_UNSUPPORTED);
            skip();
        }
        p.pcre = x;
        for (int i = 0; i < 4000; i++) {
            size_t n = random_text(text, sizeof text, i % 4 == 0), na = ends_by_scan(&s, text, n, a);
            if (na != ends_by_split(&p, text, n, b, 1024) || memcmp(a, b, na * sizeof *a) != 0)
                fail_text(patterns[k], "other than PCRE2", text, n);
        }
        split_free(&p);
    }
}

typedef void (*split_run_fn)(const uint8_t *, size_t, struct split_run *);

/* What an instruction set has for patterns[k]. */
static split_run_fn run_of(size_t k, enum isa isa)
{
    static const split_run_fn runs[][3] = {
#if defined(__x86_64__)
#define ALL(name) {split_run_##name##_base, split_run_##name##_avx2, split_run_##name##_avx512}
#else
#define ALL(name) {split_run_##name##_base, NULL, NULL}
#endif
        ALL(gpt2), ALL(cl100k), ALL(cl100k), ALL(qwen2), ALL(o200k), ALL(tekken)};

    return runs[k][isa];
}

/* Each instruction set, whole texts and every beginning and end of some. */
static void runs_cut_as_scans(void **state)
{
    struct split s;
    char text[8192];
    uint32_t a[8192], b[8192];
    struct err e;

    (void)state;
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
        for (int isa = 0; isa <= (int)isa_best(); isa++) {
            assert_int_equal(split_find(&s, patterns[k], &e), 0);
            s.run = run_of(k, (enum isa)isa);
            for (int i = 0; i < 6000; i++) {
                size_t n = 0, na, cut = below(40);
                while (n < 300)
                    n += random_text(text + n, 2000, i % 5 < 2);
                n -= cut;
                na = ends_by_scan(&s, text, n, a);
                if (na != ends_by_split(&s, text, n, b, 128 + below(900)) || memcmp(a, b, na * sizeof *a) != 0)
                    fail_text(patterns[k], isa_name((enum isa)isa), text, n);
            }
        }
    }
}

/* Each code point of the planes that have letters, between others of each kind. */
static void each_character_has_its_class(void **state)
{
    enum { TOGETHER = 64 };
    static char text[TOGETHER * 24];
    static uint32_t a[sizeof text], b[sizeof text];

    (void)state;
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k += 4) /* gpt2, o200k */
        for (int isa = 0; isa <= (int)isa_best(); isa++) {
            struct split s;
            struct err e;
            assert_int_equal(split_find(&s, patterns[k], &e), 0);
            s.run = run_of(k, (enum isa)isa);
            for (uint32_t c = 0x80; c < 0x20000; c += TOGETHER) {
                size_t n = 0, na;
                for (uint32_t i = c; i < c + TOGETHER; i++)
                    if (i < 0xD800 || i > 0xDFFF)
                        for (const char *p = "aB1, "; *p; p++) {
                            text[n++] = *p;
                            n += (size_t)utf8_put(text + n, i);
                        }
                na = ends_by_scan(&s, text, n, a);
                if (na != ends_by_split(&s, text, n, b, 1024) || memcmp(a, b, na * sizeof *a) != 0)
                    fail_text(patterns[k], isa_name((enum isa)isa), text, n);
            }
        }
}

static void ill_formed_bytes_are_cut_alike(void **state)
{
    struct split s;
    char text[400];
    uint32_t a[400], b[400];
    struct err e;

    (void)state;
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
        assert_int_equal(split_find(&s, patterns[k], &e), 0);
        for (int i = 0; i < 3000; i++) {
            size_t n = 1 + below(sizeof text - 1), na;
            for (size_t j = 0; j < n; j++)
                text[j] = (char)(below(3) ? 'a' + below(6) : below(256));
            na = ends_by_scan(&s, text, n, a);
            assert_int_equal(a[na - 1], n);
            if (na != ends_by_split(&s, text, n, b, 128) || memcmp(a, b, na * sizeof *a) != 0)
                fail_text(patterns[k], "ill-formed", text, n);
        }
    }
}

static void unknown_patterns_are_errors(void **state)
{
    struct split s;
    struct err e;

    (void)state;
    assert_true(split_find(&s, "(unclosed", &e) < 0);
    assert_non_null(strstr(e.msg, "(unclosed"));
    assert_int_equal(split_find(&s, "o200k_base", &e), 0);
    assert_int_equal(s.kind, SPLIT_O200K);
}

/* ---- merging ---- */

/* 256 bytes and some merges over some of them. */
static void make_bpe(struct bpe *b, struct vocab *v, int merges, const char *letters)
{
    struct err e;
    uint32_t id = 256;

    memset(b, 0, sizeof *b);
    memset(v, 0, sizeof *v);
    for (unsigned i = 0; i < 256; i++) {
        char c = (char)i;
        assert_int_equal(vocab_add(v, i, (struct span){&c, 1}, &e), 0);
    }
    assert_int_equal(bpe_set_bytes(b, v, &e), 0);
    while (merges > 0) {
        uint32_t kinds = (uint32_t)strlen(letters);
        uint32_t l = below(2) ? (uint8_t)letters[below(kinds)] : below(id - 256 + 1) + 255;
        uint32_t r = below(2) ? (uint8_t)letters[below(kinds)] : below(id - 256 + 1) + 255;
        char text[256];
        struct span x = vocab_get(v, l), y = vocab_get(v, r);
        if (l == 255 || r == 255 || x.n + y.n > 40)
            continue;
        memcpy(text, x.p, x.n);
        memcpy(text + x.n, y.p, y.n);
        if (vocab_find(v, (struct span){text, x.n + y.n}) >= 0)
            continue;
        assert_int_equal(vocab_add(v, id, (struct span){text, x.n + y.n}, &e), 0);
        assert_int_equal(bpe_add_merge(b, l, r, id, id, &e), 0);
        id++;
        merges--;
    }
    assert_int_equal(bpe_finish(b, v, &e), 0);
}

/* By the definition: the lowest rank, leftmost, again and again. */
static size_t merge_plainly(const struct vocab *v, const uint32_t (*rule)[2], uint32_t rules, const uint8_t *p,
                            size_t n, uint32_t *ids)
{
    (void)v;
    for (size_t i = 0; i < n; i++)
        ids[i] = p[i];
    for (;;) {
        uint32_t best = UINT32_MAX;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++)
            for (uint32_t r = 0; r < rules && r < best; r++)
                if (rule[r][0] == ids[i] && rule[r][1] == ids[i + 1]) {
                    best = r;
                    at = i;
                }
        if (best == UINT32_MAX)
            return n;
        ids[at] = 256 + best;
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
        n--;
    }
}

/* What an instruction set has for merging; false: not this processor. */
static bool use_isa(struct bpe *b, enum isa isa)
{
    b->join = bpe_join_base;
    b->words = bpe_words_base;
#if defined(__x86_64__)
    if (isa == ISA_AVX2)
        b->join = bpe_join_avx2, b->words = bpe_words_avx2;
    if (isa == ISA_AVX512)
        b->join = bpe_join_avx512, b->words = bpe_words_avx512;
#endif
    return isa <= isa_best();
}

/* Words at once give what they give one by one. */
static void words_at_once(const struct bpe *b)
{
    enum { WORDS = 30 };
    struct bpe_scratch scratch = {0};
    struct bpe_word words[WORDS];
    uint8_t text[WORDS][BPE_SHORT];
    uint32_t ids[WORDS][BPE_SHORT], one[BPE_SHORT];
    size_t n = below(WORDS + 1);

    for (size_t i = 0; i < n; i++) {
        words[i] = (struct bpe_word){.p = text[i], .ids = ids[i], .n = 1 + below(BPE_SHORT)};
        for (size_t j = 0; j < words[i].n; j++)
            text[i][j] = (uint8_t)('a' + below(3));
    }
    bpe_encode_words(b, words, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(words[i].count, bpe_encode(b, &scratch, text[i], words[i].n, one));
        assert_memory_equal(ids[i], one, words[i].count * sizeof *one);
    }
    bpe_scratch_free(&scratch);
}

static void merging_follows_the_definition(void **state)
{
    enum { MERGES = 60 };
    struct err e;
    struct bpe_scratch scratch = {0};
    uint32_t got[400], want[400];

    (void)state;
    for (int round = 0; round < 20; round++) {
        struct bpe b = {0};
        struct vocab v = {0};
        uint32_t rule[MERGES][2];
        for (unsigned i = 0; i < 256; i++) {
            char c = (char)i;
            vocab_add(&v, i, (struct span){&c, 1}, &e);
        }
        assert_int_equal(bpe_set_bytes(&b, &v, &e), 0);
        for (uint32_t r = 0; r < MERGES; r++) { /* ids have no text here: only pairs count */
            rule[r][0] = below(2) || r == 0 ? 'a' + below(3) : 256 + below(r);
            rule[r][1] = below(2) || r == 0 ? 'a' + below(3) : 256 + below(r);
            bpe_add_merge(&b, rule[r][0], rule[r][1], round % 2 ? r : 2 * r, 256 + r, &e);
            for (uint32_t q = 0; q < r; q++) /* a pair given again keeps its first rank */
                if (rule[q][0] == rule[r][0] && rule[q][1] == rule[r][1])
                    rule[r][0] = UINT32_MAX;
        }
        assert_int_equal(bpe_finish(&b, &v, &e), 0);
        assert_int_equal(b.dense != NULL, round % 2); /* numbers of pairs and tokens in step */
        for (int i = 0; i < 200; i++) {
            uint8_t text[400];
            if (!use_isa(&b, (enum isa)(i % 3)))
                continue;
            words_at_once(&b);
            size_t n = 1 + below(i % 2 ? 40 : 390), k;
            for (size_t j = 0; j < n; j++)
                text[j] = (uint8_t)('a' + below(3));
            k = merge_plainly(&v, (const uint32_t(*)[2])rule, MERGES, text, n, want);
            assert_int_equal(bpe_encode(&b, &scratch, text, n, got), k);
            assert_memory_equal(got, want, k * sizeof *got);
        }
        bpe_free(&b);
        vocab_free(&v);
    }
    bpe_scratch_free(&scratch);
}

static void ranks_give_the_same_as_their_merges(void **state)
{
    struct bpe merges, ranks = {0};
    struct vocab v;
    struct bpe_scratch scratch = {0};
    struct err e;
    uint32_t a[300], b[300];

    (void)state;
    make_bpe(&merges, &v, 80, "abcd");
    assert_int_equal(bpe_set_bytes(&ranks, &v, &e), 0);
    assert_int_equal(bpe_add_ranks(&ranks, &v, &e), 0);
    assert_int_equal(bpe_finish(&ranks, &v, &e), 0);
    for (uint32_t id = 256; id < v.n; id++) { /* each token that ranks reach, they reach as itself */
        struct span s = vocab_get(&v, id);
        int64_t n = bpe_encode(&ranks, &scratch, (const uint8_t *)s.p, s.n, a);
        int64_t m = bpe_encode(&merges, &scratch, (const uint8_t *)s.p, s.n, b);
        if (m == 1 && n == 1)
            assert_int_equal(a[0], b[0]);
    }
    bpe_free(&merges);
    bpe_free(&ranks);
    bpe_scratch_free(&scratch);
    vocab_free(&v);
}

/* The ids of a piece's parts, one after the other, of which there are *parts. */
static size_t encode_parts(const struct bpe *b, enum isa isa, const char *p, size_t n, uint32_t *ids, size_t *parts)
{
    size_t (*apart)(const struct bpe_crossings *, struct span, uint32_t *, size_t, size_t *, size_t, uint32_t *, size_t) =
        bpe_parts_base;
    uint32_t cuts[2] = {0, (uint32_t)n}, at[BPE_CUT_ROOM];
    struct bpe_scratch scratch = {0};
    size_t done = 0, count = 0, end = 0;

#if defined(__x86_64__)
    apart = isa == ISA_AVX512 ? bpe_parts_avx512 : isa == ISA_AVX2 ? bpe_parts_avx2 : apart;
#endif
    while (!done) {
        size_t k = apart(&b->crossings, (struct span){p, n}, cuts, 1, &done, 0, at, BPE_CUT_ROOM);
        for (size_t i = 0; i < k; end = at[++i]) {
            assert_int_equal(at[i], end);
            count += (size_t)bpe_encode(b, &scratch, (const uint8_t *)p + end, at[i + 1] - end, ids + count);
        }
        *parts += k;
    }
    assert_int_equal(end, n);
    bpe_scratch_free(&scratch);
    return count;
}

static void parts_are_merged_as_the_whole(void **state)
{
    static const char *const chars[] = {"\xE4\xB8\xAD", "\xE4\xBD\x93", "\xC3\xA9", "\xC3\xB8", "a", " "};
    uint32_t whole[1200], got[1200];
    size_t parts = 0, pieces = 0;

    (void)state;
    for (int round = 0; round < 400; round++) {
        struct bpe_scratch scratch = {0};
        struct bpe b;
        struct vocab v;
        make_bpe(&b, &v, round % 40, "\xE4\xB8\xAD\xBD\x93\xC3\xA9 a");
        for (int i = 0; i < 20; i++, pieces++) {
            size_t n = 0, most = i % 2 ? 1100 : 70, count;
            char text[1200];
            while (n < most) {
                const char *c = chars[below(sizeof chars / sizeof *chars)];
                memcpy(text + n, c, strlen(c));
                n += strlen(c);
            }
            count = (size_t)bpe_encode(&b, &scratch, (const uint8_t *)text, n, whole);
            for (int isa = 0; isa <= (int)isa_best(); isa++) {
                assert_int_equal(encode_parts(&b, (enum isa)isa, text, n, got, &parts), count);
                assert_memory_equal(got, whole, count * sizeof *got);
            }
        }
        bpe_scratch_free(&scratch);
        bpe_free(&b);
        vocab_free(&v);
    }
    assert_true(parts > 30 * pieces);
}

static void long_pieces_take_no_longer_than_they_should(void **state)
{
    /* Quadratic merging of 4 MB would run for hours: this test would not end. */
    enum { N = 4 << 20 };
    struct bpe b;
    struct vocab v;
    struct bpe_scratch scratch = {0};
    uint8_t *p = malloc(N);
    uint32_t *ids = malloc(N * sizeof *ids);

    (void)state;
    make_bpe(&b, &v, 60, "abcd");
    for (int kind = 0; kind < 2; kind++) {
        int64_t n;
        size_t total = 0;
        for (size_t i = 0; i < N; i++)
            p[i] = (uint8_t)(kind ? 'a' + below(4) : 'a');
        n = bpe_encode(&b, &scratch, p, N, ids);
        assert_true(n > 0);
        for (int64_t i = 0; i < n; i++)
            total += vocab_get(&v, ids[i]).n;
        assert_int_equal(total, N);
    }
    free(p);
    free(ids);
    bpe_free(&b);
    bpe_scratch_free(&scratch);
    vocab_free(&v);
}

/* ---- tables ---- */

static void words_are_found_or_forgotten_never_mistaken(void **state)
{
    struct word_table w;
    int kept = 0;

    (void)state;
    assert_int_equal(word_table_init(&w, 7), 0); /* far too small for what comes */
    for (int round = 0; round < 20; round++)
        for (uint32_t j0 = 0; j0 < 2000; j0++) {
            uint32_t i = below(2000);
            uint8_t text[64];
            uint32_t ids[12];
            size_t n = 1 + i % 40, count = 1 + i % 9, got = 0;
            const uint8_t *x;
            memset(text, 'a', sizeof text);
            memcpy(text, &i, n < 4 ? n : 4);
            memcpy(&ids[0], text, 4);
            ids[0] &= 0xFFFFFF;
            for (size_t j = 1; j < count; j++)
                ids[j] = i + (uint32_t)j;
            if (n < 4)
                continue;
            if ((x = word_table_find(&w, text, n, &got))) {
                assert_int_equal(got, count);
                for (size_t j = 0; j < count; j++)
                    assert_int_equal(word_id(x, j), ids[j]);
                kept++;
            } else {
                word_table_put(&w, text, n, ids, count);
                x = word_table_find(&w, text, n, &got);
                assert_true(!x || got == count);
            }
        }
    assert_true(kept > 0);
    word_table_free(&w);
}

/* Ids that a piece would have: some for each byte, or one. */
static size_t ids_of(const uint8_t *p, size_t n, uint32_t *ids)
{
    size_t count = p[0] % 3 ? 1 : n;

    for (size_t i = 0; i < count; i++)
        ids[i] = p[i] * 7u + (uint32_t)n;
    return count;
}

/* Batches on each instruction set, up to the last byte of the text. */
static void batches_give_what_was_put(void **state)
{
    typedef void (*seek_fn)(const struct word_table *, struct word_batch *);
    typedef char *(*put_fn)(const struct word_table *, struct word_batch *, struct word_batch *, char *);
#if defined(__x86_64__)
#define EACH(name) {name##_base, name##_avx2, name##_avx512}
#else
#define EACH(name) {name##_base, NULL, NULL}
#endif
    static const seek_fn seek[] = EACH(words_seek);
    static const put_fn put[] = EACH(words_put4), put_half[] = EACH(words_put2);
    struct word_batch b, ahead;
    struct word_table w;

    (void)state;
    assert_int_equal(word_table_init(&w, 12), 0);
    for (int round = 0; round < 3000; round++) {
        int isa = round % ((int)isa_best() + 1);
        size_t pieces = 1 + below(WORDS_BATCH), n = 0;
        uint32_t cuts[WORDS_BATCH + 1] = {0}, ids[80];
        uint8_t *text = malloc(pieces * 70), *exact;
        char out[WORDS_BATCH * 70 * 4 + WORDS_SLACK], *o = out;
        for (size_t i = 0; i < pieces; i++) {
            size_t len = 1 + below(below(6) ? 15 : 70);
            memset(text + n, 'a' + (int)below(9), len);
            cuts[i + 1] = (uint32_t)(n += len);
        }
        exact = malloc(n); /* nothing behind the text */
        memcpy(exact, text, n);
        word_batch_begin(&b, (struct span){(const char *)exact, n}, cuts, pieces);
        word_batch_begin(&ahead, (struct span){(const char *)exact, n}, cuts, below(2) ? pieces : 0);
        seek[isa](&w, &b);
        for (bool half = round & 64;; b.next++) {
            const uint8_t *p;
            size_t len, count, got;
            o = (half ? put_half : put)[isa](&w, &b, &ahead, o);
            if (b.next == pieces)
                break;
            p = exact + cuts[b.next], len = cuts[b.next + 1] - cuts[b.next];
            count = ids_of(p, len, ids);
            if (!word_table_find(&w, p, len, &got))
                word_table_put(&w, p, len, ids, count);
            for (size_t i = 0; i < count; i++, o += half ? 2 : 4)
                memcpy(o, &ids[i], half ? 2 : 4);
        }
        seek[isa](&w, &ahead);
        for (size_t i = 0; i < ahead.n; i++)
            assert_true(memcmp(ahead.key[i], b.key[i], 16) == 0 && ahead.at[i][0] == b.at[i][0]);
        for (size_t i = 0, at = 0; i < pieces; i++) {
            size_t count = ids_of(exact + cuts[i], cuts[i + 1] - cuts[i], ids), width = round & 64 ? 2 : 4;
            for (size_t j = 0; j < count; j++, at += width)
                assert_memory_equal(out + at, &ids[j], width);
        }
        free(text);
        free(exact);
    }
    word_table_free(&w);
}

/* ---- files ---- */

static int open_text(const char *json, struct err *e)
{
    struct tokenizer *t;
    int rc = tokenizer_open_json(&t, "mem", span_of(json), NULL, e);

    if (rc == 0)
        tokenizer_close(t);
    return rc;
}

static void strange_files_are_refused_by_name(void **state)
{
    static const char *const cases[][2] = {
        {"", "mem"},
        {"[]", "no JSON object"},
        {"{\"truncation\":{\"max\":1}}", "truncation"},
        {"{\"surprise\":1}", "surprise"},
        {"{\"normalizer\":{\"type\":\"Upcase\"}}", "normalizer.type 'Upcase'"},
        {"{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"New\"}]}}",
         "normalizer.normalizers[1].type 'New'"},
        {"{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}}", "damaged"},
        {"{\"pre_tokenizer\":{\"type\":\"Metaspace\"}}", "replacement"},
        {"{\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}}", "UnicodeScripts"},
        {"{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"new\":1}}", "'new'"},
        {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&b]\"},\"behavior\":\"Isolated\"}}",
         "pre_tokenizer.pattern"},
        {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Odd\"}}",
         "pre_tokenizer.behavior 'Odd'"},
        {"{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Odd\"}]}}", "decoder.decoders[0].type 'Odd'"},
        {"{\"model\":{\"type\":\"Odd\"}}", "model.type 'Odd'"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1],[\"b\"]]}}", "model.vocab[1]"},
        {"{\"model\":{\"type\":\"BPE\",\"dropout\":0.1}}", "model.dropout"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", "model.merges[0]"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"unk_token\":\"u\",\"merges\":[]}}", "model.unk_token"},
        {"{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"model\":{\"vocab\":{\"a\":-1}}}",
         "'a'"},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(open_text(cases[i][0], &e) < 0);
        if (!strstr(e.msg, cases[i][1])) {
            fprintf(stderr, "case %zu: %s\n", i, e.msg);
            fail();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splitters_cut_as_pcre2),
        cmocka_unit_test(runs_cut_as_scans),
        cmocka_unit_test(each_character_has_its_class),
        cmocka_unit_test(ill_formed_bytes_are_cut_alike),
        cmocka_unit_test(unknown_patterns_are_errors),
        cmocka_unit_test(merging_follows_the_definition),
        cmocka_unit_test(ranks_give_the_same_as_their_merges),
        cmocka_unit_test(parts_are_merged_as_the_whole),
        cmocka_unit_test(long_pieces_take_no_longer_than_they_should),
        cmocka_unit_test(words_are_found_or_forgotten_never_mistaken),
        cmocka_unit_test(batches_give_what_was_put),
        cmocka_unit_test(strange_files_are_refused_by_name),
    };

    rng_mt_seed(&rng, 20240229);
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
