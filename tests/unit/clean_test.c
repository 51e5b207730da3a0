/* Cleaning: what goes, what stays, and that once is enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "curate/clean/clean.h"

static struct clean c;
static struct clean_conf defaults; /* set by main */

static void expect(const struct clean_conf *conf, const char *in, const char *want)
{
    struct span out;
    struct err e;
    char *again;

    assert_int_equal(clean_text(&c, conf, span_of(in), &out, &e), 0);
    if (!span_is(out, want))
        fail_msg("'%s' became '%.*s', not '%s'", in, (int)out.n, out.p, want);
    assert_true(strcmp(in, want) != 0 || out.p == in);
    again = strndup(out.p, out.n);
    assert_int_equal(clean_text(&c, conf, span_of(again), &out, &e), 0);
    assert_ptr_equal(out.p, again);
    free(again);
}

static void clean_text_stays(void **s)
{
    static const char *const texts[] = {
        "", "a", "Plain text, as it is.\n\nTwo paragraphs.\n\n\nBlank lines.", "    code();\n\treturn;\n  - list",
        "Ünïcödé: Größe, Καλημέρα, Привет, 你好。", "tab\tseparated\t\tcells",
        "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB" /* ZWJ in emoji */,
        "\xD9\x85\xDB\x8C\xE2\x80\x8C\xD8\xB1\xD9\x88\xD9\x85" /* Persian, ZWNJ */,
        "\xE0\xA4\x95\xE0\xA5\x8D\xE2\x80\x8D\xE0\xA4\xB7" /* Devanagari, ZWJ behind virama */,
        "\xE1\x9E\x80\xE2\x80\x8B\xE1\x9E\x81" /* Khmer, ZWSP */,
        "\xF0\x9F\x8F\xB4\xF3\xA0\x81\xA7\xF3\xA0\x81\xA2\xF3\xA0\x81\xBF" /* a flag made of tags */,
    };

    (void)s;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect(&defaults, texts[i], texts[i]);
}

static void what_is_invisible_goes(void **s)
{
    (void)s;
    expect(&defaults, "\xEF\xBB\xBFmark", "mark");
    expect(&defaults, "zero\xE2\x80\x8Bwidth\xE2\x81\xA0", "zerowidth");
    expect(&defaults, "non\xE2\x80\x8Cjoiner\xE2\x80\x8D.", "nonjoiner.");
    expect(&defaults, "so\xC2\xAD" "ft", "soft");
    expect(&defaults, "bell\x07 \x1B[0m \x7F" "del \xC2\x9D.", "bell del .");
    expect(&defaults, "tag\xF3\xA0\x81\xA8hidden", "taghidden");
    expect(&defaults, "non\xEF\xBF\xBF" "char\xEF\xB7\x90", "nonchar");
    expect(&defaults, "\xE2\x80\x8E" "bidi stays", "\xE2\x80\x8E" "bidi stays");
}

static void white_space_and_newlines_in_order(void **s)
{
    (void)s;
    expect(&defaults, "a\xC2\xA0" "b\xE3\x80\x80" "c  d \xE2\x80\x82 e", "a b c d e");
    expect(&defaults, "end  \nline\t \n  indent  here", "end\nline\n  indent here");
    expect(&defaults, "a \t b", "a\tb");
    expect(&defaults, "a\r\nb\rc\xE2\x80\xA8" "e\xE2\x80\xA9" "f\x0Cg", "a\nb\nc\ne\nf\ng");
    expect(&defaults, "\n\n a\n\n \n\n\n\nb\n\n", " a\n\n\nb");
    expect(&defaults, " \n\t\n", "");
}

static void one_form_of_unicode(void **s)
{
    (void)s;
    expect(&defaults, "e\xCC\x81", "\xC3\xA9");
    expect(&defaults, "\xE2\x84\xAB", "\xC3\x85");                   /* ANGSTROM SIGN */
    expect(&defaults, "e\xE2\x80\x8B\xCC\x81", "\xC3\xA9");          /* composes once the ZWSP is gone */
    expect(&defaults, "bad \xC3( \xF0\x9F\x98 utf", "bad \xEF\xBF\xBD( \xEF\xBF\xBD utf");
    expect(&defaults, "\xED\xA0\x80x", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDx"); /* a surrogate */
}

static void options_switch_parts_off(void **s)
{
    struct clean_conf conf = {.form = CLEAN_ANY, .blank_lines = 2};

    (void)s;
    expect(&conf, "e\xCC\x81  \x07 \xEF\xBB\xBF \r\n\n\n\n\n", "e\xCC\x81  \x07 \xEF\xBB\xBF \r\n\n\n\n\n");
    conf.bidi = true;
    expect(&conf, "\xE2\x80\x8Ex\xE2\x81\xA6", "x");
    conf = defaults;
    conf.repair.mojibake = false; /* which else makes U+0085 an ellipsis */
    expect(&conf, "c\xC2\x85" "d", "c\nd");
    conf = defaults;
    conf.blank_lines = 0;
    expect(&conf, "a\n\n\nb", "a\nb");
    conf.form = CLEAN_NFKC;
    expect(&conf, "\xEF\xAC\x81 x\xC2\xB2\xC2\xA8", "fi x2 \xCC\x88");
    conf = defaults;
    conf.soft_hyphens = false;
    expect(&conf, "so\xC2\xAD" "ft", "so\xC2\xAD" "ft");
}

/* Any mixture of what the rules look at is clean after one round. */
static void once_is_enough(void **s)
{
    static const char *const bits[] = {
        "a", " ", "  ", "\t", "\n", "\r\n", "\r", "\xC2\xA0", "\xE2\x80\x8B", "\xE2\x80\x8C",
        "\xE2\x80\x8D", "e", "\xCC\x81",
        "\xCC\xA7", "\xD9\x85", "\xE0\xA4\x95", "\xE0\xA5\x8D", "\xE1\x9E\x80", "\xF0\x9F\x91\xA9",
        "\xEF\xB8\x8F", "\xC2\xAD",
        "\xEF\xBB\xBF", "\xE1\x84\x80", "\xE1\x85\xA1", "\x07", "\xC2\x85", "\xE2\x80\xA8", "\xFF",
        "\xE3\x80\x80", "\xF3\xA0\x81\xA7",
        "\xF0\x9F\x8F\xB4", "\xC2\xA8", "\xEF\xB7\xBA", "\xE2\x80\x8F"};
    struct clean_conf all[4] = {defaults, defaults, defaults, defaults};
    uint32_t x = 99;
    struct err e;

    (void)s;
    all[1].form = CLEAN_NFKC;
    all[1].bidi = true;
    all[1].blank_lines = 0;
    all[2].bidi = all[2].spaces = false;
    all[2].blank_lines = 1;
    all[3] = (struct clean_conf){.form = CLEAN_NFKC, .zero_width = true, .spaces = true, .blank_lines = 1};
    for (int round = 0; round < 20000; round++) {
        const struct clean_conf *conf = &all[round % 4];
        struct buf b = {0};
        struct span once, twice;
        char *copy;

        for (int i = 0; i < 12; i++) {
            x = x * 1664525 + 1013904223;
            buf_puts(&b, bits[(x >> 12) % (sizeof bits / sizeof *bits)]);
        }
        assert_int_equal(clean_text(&c, conf, buf_span(&b), &once, &e), 0);
        copy = strndup(once.p, once.n);
        once.p = copy;
        assert_int_equal(clean_text(&c, conf, once, &twice, &e), 0);
        if (!span_eq(once, twice))
            fail_msg("round %d: '%s' -> '%s' -> '%.*s'", round, b.p, copy, (int)twice.n, twice.p);
        assert_ptr_equal(twice.p, once.p);
        free(copy);
        buf_free(&b);
    }
}

static int release(void **s)
{
    (void)s;
    clean_free(&c);
    return 0;
}

int main(void)
{
    clean_conf_init(&defaults);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_text_stays),       cmocka_unit_test(what_is_invisible_goes),
        cmocka_unit_test(white_space_and_newlines_in_order), cmocka_unit_test(one_form_of_unicode),
        cmocka_unit_test(options_switch_parts_off), cmocka_unit_test(once_is_enough),
    };
    return cmocka_run_group_tests_name("clean", tests, NULL, release);
}
