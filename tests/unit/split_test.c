/* Splitters against PCRE2 and each other, on each instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/utf8.h"
#include "tokenize/split.h"
#include "tokenize/split_pcre.h"
#include "tokenize/split_run.h"

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
    struct split_state st;
    uint32_t some[1024];
    size_t k = 0;
    int64_t got;

    split_begin(&st, text, n);
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

/* The pieces that `split` makes of text are those of `scan`, a character at a time. */
static void must_cut_alike(const struct split *scan, const struct split *split, const char *name, const char *why,
                           const char *text, size_t n, size_t room)
{
    static uint32_t a[8192], b[8192];
    size_t count = ends_by_scan(scan, text, n, a);

    if (n)
        assert_int_equal(a[count - 1], n);
    if (count != ends_by_split(split, text, n, b, room) || memcmp(a, b, count * sizeof *a) != 0)
        fail_text(name, why, text, n);
}

static const char *const patterns[] = {"gpt2", "cl100k", "llama3", "qwen2", "o200k", "tekken"};

static void splitters_cut_as_pcre2(void **state)
{
    struct split_pcre *x;
    struct split s, p = {.kind = SPLIT_PCRE};
    char text[4096];
    struct err e;

    (void)state;
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
        assert_int_equal(split_find(&s, patterns[k], &e), 0);
        if (split_pcre_new(&x, split_pattern(&s), false, &e) < 0) {
            assert_int_equal(e.code, ERR_UNSUPPORTED);
            skip();
        }
        p.pcre = x;
        for (int i = 0; i < 4000; i++) {
            size_t n = random_text(text, sizeof text, i % 4 == 0);
            must_cut_alike(&s, &p, patterns[k], "other than PCRE2", text, n, 1024);
        }
        split_free(&p);
    }
}

typedef void (*split_run_fn)(const uint8_t *, size_t, struct split_run *);

/* What an instruction set has for patterns[k]. */
static split_run_fn run_of(size_t k, enum isa isa)
{
    static const split_run_fn runs[][3] = {
        ISA_EACH(split_run_gpt2), ISA_EACH(split_run_cl100k), ISA_EACH(split_run_cl100k),
        ISA_EACH(split_run_qwen2), ISA_EACH(split_run_o200k), ISA_EACH(split_run_tekken),
    };

    return runs[k][isa];
}

/* Each instruction set, whole texts and every beginning and end of some. */
static void runs_cut_as_scans(void **state)
{
    struct split s;
    char text[8192];
    struct err e;

    (void)state;
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
        for (int isa = 0; isa <= (int)isa_best(); isa++) {
            assert_int_equal(split_find(&s, patterns[k], &e), 0);
            s.run = run_of(k, (enum isa)isa);
            for (int i = 0; i < 6000; i++) {
                size_t n = 0, cut = below(40);
                while (n < 300)
                    n += random_text(text + n, 2000, i % 5 < 2);
                n -= cut;
                must_cut_alike(&s, &s, patterns[k], isa_name((enum isa)isa), text, n, 128 + below(900));
            }
        }
    }
}

/* Each code point of the planes that have letters, between others of each kind. */
static void each_character_has_its_class(void **state)
{
    enum { TOGETHER = 64 };
    static char text[TOGETHER * 5 * (1 + 4)];

    (void)state;
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k += 4) /* gpt2, o200k */
        for (int isa = 0; isa <= (int)isa_best(); isa++) {
            struct split s;
            struct err e;
            assert_int_equal(split_find(&s, patterns[k], &e), 0);
            s.run = run_of(k, (enum isa)isa);
            for (uint32_t c = 0x80; c < 0x20000; c += TOGETHER) {
                size_t n = 0;
                for (uint32_t i = c; i < c + TOGETHER; i++)
                    if (i < 0xD800 || i > 0xDFFF)
                        for (const char *p = "aB1, "; *p; p++) {
                            text[n++] = *p;
                            n += (size_t)utf8_put(text + n, i);
                        }
                must_cut_alike(&s, &s, patterns[k], isa_name((enum isa)isa), text, n, 1024);
            }
        }
}

static void ill_formed_bytes_are_cut_alike(void **state)
{
    struct split s;
    char text[400];
    struct err e;

    (void)state;
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
        assert_int_equal(split_find(&s, patterns[k], &e), 0);
        for (int i = 0; i < 3000; i++) {
            size_t n = 1 + below(sizeof text - 1);
            for (size_t j = 0; j < n; j++)
                text[j] = (char)(below(3) ? 'a' + below(6) : below(256));
            must_cut_alike(&s, &s, patterns[k], "ill-formed", text, n, 128);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splitters_cut_as_pcre2),
        cmocka_unit_test(runs_cut_as_scans),
        cmocka_unit_test(each_character_has_its_class),
        cmocka_unit_test(ill_formed_bytes_are_cut_alike),
        cmocka_unit_test(unknown_patterns_are_errors),
    };

    rng_mt_seed(&rng, 20240229);
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
