/* Tables made of expressions against PCRE2, step by step, on each instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "tokenize/hf_table.h"
#include "tokenize/model.h"
#include "tokenize/split_bytes.h"
#include "tokenize/split_pcre.h"
#include "tokenize/split_table.h"
#include "tokenize/ucd.h"

static struct rng_mt rng;

static uint32_t below(uint32_t n)
{
    return rng_mt_u32(&rng) % n;
}

typedef void run_fn(const struct split_table *t, const uint8_t *text, size_t n, struct split_scan_state *s, struct split_run *r);
static run_fn *const runs[] = ISA_EACH(split_table_run);
enum { RUNS = sizeof runs / sizeof *runs, TEXT = 40000 };

/* ---- what is to come out ---- */

/* A step of a sequence, by PCRE2 or, NULL, by classes of characters. */
struct reference {
    struct split_step step;
    struct split_pcre *pcre;
};

static bool gave_up; /* PCRE2, which goes through all ways a text can be read */

/* Ends of what a step finds and of what lies between, in text[0..n), which begins at `base`. */
static void cut_part(const struct reference *r, const uint8_t *text, size_t n, uint32_t base, struct buf *ends)
{
    size_t at = 0, done = 0, bounds[2];
    unsigned wanted = r->step.kind == SPLIT_STEP_NUMBERS ? HF_NUMBER : HF_PUNCT;

    while (at < n) {
        if (r->pcre) {
            int found = split_pcre_match(r->pcre, text, n, at, false, bounds, NULL);
            gave_up |= found < 0;
            if (found <= 0)
                break;
        } else {
            uint32_t cp;
            bounds[0] = at;
            bounds[1] = at + (size_t)utf8_next((const char *)text + at, (const char *)text + n, &cp);
            if (!(hf_class(cp) & wanted)) {
                at = bounds[1];
                continue;
            }
            while (r->step.rows && bounds[1] < n) {
                size_t more = (size_t)utf8_next((const char *)text + bounds[1], (const char *)text + n, &cp);
                if (!(hf_class(cp) & wanted))
                    break;
                bounds[1] += more;
            }
        }
        for (int k = 0; k < 2; k++)
            if (bounds[k] > done) {
                done = bounds[k];
                buf_put(ends, &(uint32_t){base + (uint32_t)done}, 4);
            }
        at = bounds[1];
    }
    if (done < n)
        buf_put(ends, &(uint32_t){base + (uint32_t)n}, 4);
}

static void cut_by_steps(const struct reference *r, size_t n_steps, const uint8_t *text, size_t n, struct buf *ends)
{
    struct buf from = {0}, swap;

    buf_clear(ends);
    if (n)
        buf_put(ends, &(uint32_t){(uint32_t)n}, 4);
    for (size_t k = 0; k < n_steps; k++) {
        const uint32_t *v;
        uint32_t begin = 0;
        swap = from;
        from = *ends;
        *ends = swap;
        buf_clear(ends);
        v = (const uint32_t *)(const void *)from.p;
        for (size_t i = 0; i < from.n / 4; begin = v[i++])
            cut_part(&r[k], text + begin, v[i] - begin, begin, ends);
    }
    buf_free(&from);
}

static void cut_by_table(const struct split_table *t, run_fn *run, const uint8_t *text, size_t n, size_t room, struct buf *ends)
{
    struct split_scan_state s = {0};
    uint32_t some[1024 + 64];
    struct split_run r = {.ends = some, .max = room};

    buf_clear(ends);
    while (r.at < n) {
        size_t was = r.at;
        r.n = 0;
        run(t, text, n, &s, &r);
        assert_true(r.at > was && r.at <= n && r.n <= room);
        buf_put(ends, some, r.n * sizeof *some);
    }
}

static void must_be_alike(const struct split_table *t, const struct reference *r, size_t n_steps, const char *name,
                          const uint8_t *text, size_t n)
{
    struct buf want = {0}, got = {0};

    gave_up = false;
    cut_by_steps(r, n_steps, text, n, &want);
    for (int k = 0; k < RUNS && k <= (int)isa_best() && !gave_up; k++) {
        cut_by_table(t, runs[k], text, n, below(2) ? 128 : 1024, &got);
        if (!span_eq(buf_span(&want), buf_span(&got))) {
            const uint32_t *w = (const uint32_t *)(const void *)want.p, *g = (const uint32_t *)(const void *)got.p;
            size_t i = 0;
            while (i < want.n / 4 && i < got.n / 4 && w[i] == g[i])
                i++;
            fprintf(stderr, "%s, variant %d, %zu bytes: end %zu is at %d, not %d\n", name, k, n, i,
                    i < got.n / 4 ? (int)g[i] : -1, i < want.n / 4 ? (int)w[i] : -1);
            fail();
        }
    }
    buf_free(&want);
    buf_free(&got);
}

/* ---- texts ---- */

static size_t random_text(uint8_t *s, size_t max)
{
    static const char *const bits[] = {
        "a", "b", "x", "Q", "the", "Mill", "ABC", "aB", " ", " ", " ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", " \n", "\n    ",
        "1", "12", "2024", "1234567", "'", "'s", "'S", "'ll", "'Re", "'x", "n't", "''", ".", ",", "!!", "(", "/", "//", ".\n/",
        "-", "#", "\v", "\f", "\x1c", "supercalifragilistic", "        ", "0", "[", "]", "|", "_", "`", "\\", "{}",
        "  \u3000 \u2003", "\u3000", "\u2003 ", "                          \u3000"};
    static const uint32_t chars[] = {
        0xE9, 0xC9, 0x17F, 0x212A, 0x430, 0x416, 0x5D0, 0x939, 0x93F, 0x94D, 0x4E00, 0x4E2D, 0x9FA5, 0x9FA6, 0x3042, 0x30A2,
        0x3005, 0x3007, 0xAC00, 0x800, 0xD7FF, 0x300, 0x301, 0xA0, 0x85, 0x3000, 0x2003, 0x2028, 0x200B, 0xFEFF, 0x180E,
        0x660, 0xBD, 0xB2, 0x2167, 0x201C, 0x2019, 0x2014, 0x1F600, 0x1F1E9, 0x10400, 0x1D7D8, 0x1C5, 0x1FFC, 0x2B0, 0x345,
        0x20DD, 0xAD, 0xFFFD, 0x10FFFF, 0xE000, 0x20000, 0x3002, 0x3001, 0x60C, 0x964, 0x6D4, 0x2026, 0xFF01};
    size_t n = 0;
    uint32_t style = below(4);

    while (n + 32 < max) {
        if (style == 1 || (style > 1 && below(3) == 0)) {
            n += (size_t)utf8_put((char *)s + n, chars[below(sizeof chars / sizeof *chars)]);
        } else {
            const char *b = bits[below(sizeof bits / sizeof *bits)];
            memcpy(s + n, b, strlen(b));
            n += strlen(b);
        }
    }
    return n;
}

/* Small ones, some that fill a window or two, and few long ones. */
static size_t random_size(int i)
{
    return 33 + (i % 50 == 0 ? below(TEXT - 33) : i % 10 == 0 ? below(6000) : below(120));
}

/* ---- what tokenizers have ---- */

#define CASES(more)                                                                                                        \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}" more "]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}" more "]+"                \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"                                                                                       \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}" more "]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}" more "]*"                \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define END "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define STEP(x) {SPLIT_STEP_EXPRESSION, x, true, false}

static const struct {
    const char *name;
    struct split_step step[6];
} families[] = {
    {"gpt2", {STEP(GPT2)}},
    {"gpt2, possessive", {{SPLIT_STEP_EXPRESSION, "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|"
                           "\\s+(?!\\S)|\\s", false, false}}},
    {"cl100k", {{SPLIT_STEP_EXPRESSION, "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+|"
                 " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s", false, false}}},
    {"llama3", {STEP("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
                     " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" END)}},
    {"o200k", {STEP(CASES("") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" END)}},
    {"kimi-k2", {STEP("[\\p{Han}]+|" CASES("&&[^\\p{Han}]") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" END)}},
    {"deepseek-v3",
     {STEP("\\p{N}{1,3}"), STEP("[一-龥぀-ゟ゠-ヿ]+"),
      STEP("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
           " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")}},
    {"deepseek-coder",
     {STEP("[\r\n]"), STEP("\\s?\\p{L}+"), STEP("\\s?\\p{P}+"), STEP("[一-龥ࠀ-一가-퟿]+"),
      {.kind = SPLIT_STEP_NUMBERS}}},
    {"deepseek-v2",
     {STEP("[\r\n]"), STEP("\\s?[A-Za-zµÀ-ÖØ-öø-ƺА-я]+"), STEP("\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"), STEP("\\s+$"),
      STEP("[一-龥ࠀ-一가-퟿]+"), {.kind = SPLIT_STEP_NUMBERS}}},
    {"command-r", {{.kind = SPLIT_STEP_NUMBERS}, STEP(GPT2)}},
    {"bloom", {STEP(" ?[^(\\s|[.,!?…。，、।۔،])]+")}},
    {"rows", {{.kind = SPLIT_STEP_NUMBERS, .rows = true}, {.kind = SPLIT_STEP_PUNCTUATION, .rows = true},
              STEP("[0-9][0-9][0-9]")}},
    {"each", {{.kind = SPLIT_STEP_PUNCTUATION}, STEP("\\s+")}},
};

static size_t make_references(struct reference *r, const struct split_step *steps)
{
    size_t n = 0;
    struct err e;

    for (; n < 6 && (n == 0 || steps[n].expression || steps[n].kind); n++) {
        r[n] = (struct reference){.step = steps[n]};
        if (steps[n].expression && split_pcre_new(&r[n].pcre, steps[n].expression, steps[n].oniguruma, &e) < 0)
            return 0;
    }
    return n;
}

static void free_references(struct reference *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        split_pcre_free(r[i].pcre);
}

static void tables_cut_as_steps_do(void **state)
{
    static uint8_t text[TEXT];

    (void)state;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        struct reference r[6];
        struct split_table *t;
        size_t n = make_references(r, families[f].step);
        if (n == 0)
            skip(); /* no PCRE2 */
        if (split_table_make(&t, families[f].step, n) != 1)
            fail_msg("%s is beyond a table", families[f].name);
        for (int i = 0; i < 700; i++)
            must_be_alike(t, r, n, families[f].name, text, random_text(text, random_size(i)));
        must_be_alike(t, r, n, families[f].name, text, 0);
        split_table_free(t);
        free_references(r, n);
    }
}

/* Each code point by itself and between others. */
static void tables_know_every_character(void **state)
{
    static uint8_t text[TEXT];
    static const int some[] = {3, 5, 6, 8, 10, 11}; /* llama3, kimi-k2 and so on */

    (void)state;
    for (size_t f = 0; f < sizeof some / sizeof *some; f++) {
        struct reference r[6];
        struct split_table *t;
        size_t n = make_references(r, families[some[f]].step), at = 0;
        if (n == 0)
            skip();
        assert_int_equal(split_table_make(&t, families[some[f]].step, n), 1);
        for (uint32_t cp = 1; cp < 0x40000; cp++) {
            if (cp == 0xD800)
                cp = 0xE000;
            at += (size_t)utf8_put((char *)text + at, cp);
            memcpy(text + at, "a. 1" + cp % 4, 1);
            at++;
            if (at + 8 > TEXT) {
                must_be_alike(t, r, n, families[some[f]].name, text, at);
                at = 0;
            }
        }
        split_table_free(t);
        free_references(r, n);
    }
}

/* ---- any expression ---- */

static void put_random(struct buf *b, int depth)
{
    static const char *const chars[] = {"a", "b", "[ab]", "\\s", "\\p{L}", "\\p{N}", "[^\\s\\p{L}\\p{N}]", " ",
                                        "[\\r\\n]", "é", "\\S", "[^\\r\\n\\p{L}]", "[a-z&&[^b]]", "'", "\\P{L}",
                                        "[\\p{L}\\p{M}]"};
    static const char *const times[] = {"", "", "", "?", "+", "+", "*", "{1,3}", "{2}", "++", "?+", "*+", "+?", "??"};
    uint32_t alternatives = 1 + below(depth ? 2 : 5);

    for (uint32_t i = 0; i < alternatives; i++) {
        uint32_t parts = 1 + below(4);
        buf_puts(b, i ? "|" : "");
        for (uint32_t k = 0; k < parts; k++) {
            if (depth < 2 && below(6) == 0) {
                buf_puts(b, "(?:");
                put_random(b, depth + 1);
                buf_puts(b, ")");
                buf_puts(b, times[below(9)]);
            } else {
                buf_puts(b, chars[below(sizeof chars / sizeof *chars)]);
                buf_puts(b, times[below(sizeof times / sizeof *times)]);
            }
        }
        if (below(6) == 0)
            buf_puts(b, below(2) ? "(?!\\S)" : "(?=[a1])");
        else if (below(12) == 0)
            buf_puts(b, "$");
    }
}

static void any_expression_cuts_as_pcre2(void **state)
{
    static uint8_t text[TEXT];
    int made = 0, tried = 0;

    (void)state;
    for (; tried < 2000; tried++) {
        struct buf b[2] = {{0}};
        struct split_step steps[2];
        struct reference r[2] = {{.pcre = NULL}};
        struct split_table *t = NULL;
        size_t n = 1 + below(2);
        struct err e;

        for (size_t k = 0; k < n; k++) {
            put_random(&b[k], 0);
            steps[k] = (struct split_step){.expression = b[k].p};
            r[k].step = steps[k];
            if (split_pcre_new(&r[k].pcre, b[k].p, false, &e) < 0 && e.code == ERR_UNSUPPORTED)
                skip();
            assert_non_null(r[k].pcre);
        }
        if (split_table_make(&t, steps, n) == 1) {
            made++;
            for (int i = 1; i < 12; i++)
                must_be_alike(t, r, n, b[0].p, text, random_text(text, random_size(i)));
        }
        split_table_free(t);
        for (size_t k = 0; k < 2; k++)
            buf_free(&b[k]);
        free_references(r, n);
    }
    if (made < 80)
        fail_msg("only %d of %d expressions became tables", made, tried);
}

/* What a table cannot do is refused, not done otherwise. */
static void the_rest_is_refused(void **state)
{
    static const char *const beyond[] = {
        "a*", "(?!a)", "\\ba", "^a", "(a)\\1", "(?<=a)b", "(?>a+)b", "\\p{Greek}", "\\w+", "\\d", ".", "[[:alpha:]]", "(?i:[^a])",
        "(?i:ss)", "(?s:a)", "(?i)a", "a{1,99}", "a**", "[a", "(a", "a)", "\\p{Lo}", "[\\p{Lm}]", "[a--b]", "\\x41",
        "a\\", "\\p{L", "(?:a|b)++", "[]a]", "[z-a]"};
    struct split_table *t;

    (void)state;
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++)
        if (split_table_make(&t, &(struct split_step){.expression = beyond[i]}, 1) != 0)
            fail_msg("'%s' is not refused", beyond[i]);
    /* Two places would be open at once: before the rows of spaces and of letters. */
    assert_int_equal(split_table_make(&t, (struct split_step[]){STEP("\\s+a+!"), STEP("a+[a!]b")}, 2), 0);
}

/* Bytes that are no UTF-8 are symbols, like U+FFFD, each maximal ill-formed part one. */
static void bad_bytes_are_symbols(void **state)
{
    struct split_step step = {.expression = "\\p{S}|\\p{L}+"};
    static uint8_t text[TEXT];
    struct split_table *t;
    struct buf got = {0}, want = {0};

    (void)state;
    assert_int_equal(split_table_make(&t, &step, 1), 1);
    for (int i = 0; i < 3000; i++) {
        size_t n = random_size(i);
        const char *p = (const char *)text, *end = p + n;
        bool in_word = false, word, symbol;
        for (size_t k = 0; k < n; k++)
            text[k] = below(3) ? (uint8_t) "a\xe2\x82\xac\xf0\x9f\x98\x80\xed\xa0\xc3\xc0"[below(13)] : (uint8_t)below(256);
        buf_clear(&want);
        for (bool was_symbol = true; p < end; was_symbol = symbol, in_word = word) {
            uint32_t cp, at = (uint32_t)(p - (const char *)text);
            p += utf8_next(p, end, &cp);
            word = ucd_class(cp) & UCD_LETTER;
            symbol = ucd_class(cp) & UCD_SYMBOL;
            if (at && (symbol || was_symbol || word != in_word))
                buf_put(&want, &at, 4);
        }
        buf_put(&want, &(uint32_t){(uint32_t)n}, 4);
        for (int k = 0; k <= (int)isa_best() && k < RUNS; k++) {
            cut_by_table(t, runs[k], text, n, 128, &got);
            assert_int_equal(got.n, want.n);
            assert_memory_equal(got.p, want.p, got.n);
        }
    }
    buf_free(&got);
    buf_free(&want);
    split_table_free(t);
}

/* ---- steps that see bytes ---- */

/* The ends of what steps make of the piece text[begin..end), each of whose bytes is a character to them. */
static void cut_mapped(const struct reference *r, size_t n_steps, const uint8_t *text, uint32_t begin, uint32_t end,
                       struct buf *want)
{
    struct buf mapped = {0}, ends = {0};
    const uint32_t *v;
    uint32_t at = begin;
    size_t k = 0;

    assert_int_equal(format_map_bytes((struct span){(const char *)text + begin, end - begin}, &mapped), 0);
    cut_by_steps(r, n_steps, (const uint8_t *)mapped.p, mapped.n, &ends);
    v = (const uint32_t *)(const void *)ends.p;
    for (size_t i = 0; i < ends.n / 4; i++) {
        for (; k < v[i]; k++)
            at += ((uint8_t)mapped.p[k] & 0xC0) != 0x80;
        buf_put(want, &at, 4);
    }
    buf_free(&mapped);
    buf_free(&ends);
}

static void cut_by_bytes(const struct split_bytes *b, const uint8_t *text, const uint32_t *wide, size_t n, size_t room,
                         struct buf *got)
{
    struct split_bytes_state s = {0};
    uint32_t some[64];
    size_t written;

    for (size_t i = 0; i < n;) {
        uint32_t was = s.at;
        i += split_bytes_cut(b, text, wide + i, n - i, &s, some, room, &written);
        assert_true(written <= room && s.at > was);
        buf_put(got, some, written * sizeof *some);
    }
}

static void bytes_cut_as_mapped_characters(void **state)
{
    enum { MOST = 3000 };
    static const struct split_step sequences[][6] = {
        {{.kind = SPLIT_STEP_NUMBERS, .rows = true}, STEP("[0-9][0-9][0-9]")}, /* Falcon's */
        {{.kind = SPLIT_STEP_NUMBERS}, {.kind = SPLIT_STEP_PUNCTUATION, .rows = true}},
        {STEP("\\p{L}+"), STEP("\u0120[a-z]|\\s+$|[0-9]+")}};
    static uint8_t text[MOST];
    uint32_t wide[MOST];

    (void)state;
    for (size_t f = 0; f < sizeof sequences / sizeof *sequences; f++) {
        struct reference r[6];
        struct split_bytes *b;
        if (make_references(r, sequences[f]) != 2)
            skip();
        assert_int_equal(split_bytes_make(&b, sequences[f], 2), 1);
        for (int i = 0; i < 500; i++) {
            size_t size = random_text(text, 40 + below(i % 20 ? 200 : MOST - 40)), n = 0;
            struct buf want = {0}, got = {0};
            if (i % 7 == 0) /* long rows */
                memset(text + size / 4, '7', size / 2);
            for (uint32_t at = 0; at < size; n++) {
                uint32_t end = at + 1 + below(i % 3 ? 12 : 400);
                wide[n] = end < size ? end : (uint32_t)size;
                cut_mapped(r, 2, text, at, wide[n], &want);
                at = wide[n];
            }
            cut_by_bytes(b, text, wide, n, 3 + below(60), &got);
            assert_int_equal(got.n, want.n);
            assert_memory_equal(got.p, want.p, got.n);
            buf_free(&want);
            buf_free(&got);
        }
        split_bytes_free(b);
        free_references(r, 2);
    }
}

static int seed(void **state)
{
    (void)state;
    rng_mt_seed(&rng, 20261);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_cut_as_steps_do),
        cmocka_unit_test(tables_know_every_character),
        cmocka_unit_test(any_expression_cuts_as_pcre2),
        cmocka_unit_test(the_rest_is_refused),
        cmocka_unit_test(bad_bytes_are_symbols),
        cmocka_unit_test(bytes_cut_as_mapped_characters),
    };

    return cmocka_run_group_tests(tests, seed, NULL);
}
