/* Repair: what ftfy said (tests/record/mojibake_cases.py), what stays, and hard cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "curate/clean/repair.h"

static struct repair r;
static const struct repair_conf encoding = {.mojibake = true, .unescape = UNESCAPE_OFF};
static const struct repair_conf defaults = {.mojibake = true, .terminal_escapes = true};
static const struct repair_conf everything = {true, UNESCAPE_AUTO, true, 1, true, true};
static const struct repair_conf unescape_on = {.mojibake = true, .unescape = UNESCAPE_ON, .terminal_escapes = true};

static void expect(const struct repair_conf *conf, const char *in, const char *want)
{
    struct span out;

    assert_int_equal(repair_text(&r, conf, span_of(in), &out), 0);
    if (!span_is(out, want))
        fail_msg("'%s' became '%.*s', not '%s'", in, (int)out.n, out.p, want);
    assert_true(strcmp(in, want) != 0 || out.p == in);
}

static struct span string_of(const struct json_field *f, int n, const char *key, struct buf *b)
{
    struct err e;

    buf_clear(b);
    for (int i = 0; i < n; i++)
        if (span_is(f[i].key, key)) {
            assert_int_equal(json_unescape(f[i].raw, b, &e), 0);
            return buf_span(b);
        }
    return (struct span){NULL, 0};
}

static void as_ftfy(void **s)
{
    static const struct {
        const char *name;
        const struct repair_conf *conf;
    } settings[] = {{"fix_encoding", &encoding}, {"defaults", &defaults}, {"everything", &everything},
                    {"unescape on", &unescape_on}};
    FILE *f = fopen("tests/data/clean/mojibake.jsonl", "r");
    struct json_reader *j = json_reader_new();
    struct buf text = {0}, want = {0};
    static char line[1 << 16];
    int n_lines = 0, changed = 0;

    (void)s;
    assert_non_null(f);
    while (fgets(line, sizeof line - JSON_PADDING, f)) {
        const struct json_field *field;
        struct err e;
        int n = json_read_object(j, (struct span){line, strcspn(line, "\n")}, &field, &e);

        assert_true(n > 0);
        string_of(field, n, "text", &text);
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
            struct span out, w = string_of(field, n, settings[i].name, &want);
            assert_int_equal(repair_text(&r, settings[i].conf, buf_span(&text), &out), 0);
            if (!span_eq(out, w.p ? w : buf_span(&text)))
                fail_msg("%s: '%.*s' became '%.*s'", settings[i].name, (int)text.n, text.p, (int)out.n, out.p);
            changed += w.p != NULL;
        }
        n_lines++;
    }
    assert_true(n_lines > 200 && changed > n_lines);
    fclose(f);
    json_reader_free(j);
    buf_free(&text);
    buf_free(&want);
}

static void fine_text_stays(void **s)
{
    static const char *const texts[] = {
        "", "a", "R&D, AT&T & co; fish & chips;", "caf\xC3\xA9 \xC3\xA0 la cr\xC3\xA8me, \xC5\x93uvre",
        "\xC3\x85 is a letter; \xC3\x82", ("Stra\xC3\x9F" "e \xE2\x80\x93 \xE2\x80\x9Eja\xE2\x80\x9C"),
        "\xC2\xAB\xD0\x94\xD0\xB0\xC2\xBB", "\xE2\x80\x9C\xE4\xBD\xA0\xE5\xA5\xBD\xE2\x80\x9D\xE2\x80\xA6\xE2\x80\xA6",
        "\xEF\xBF\xBD alone \xEF\xBF\xBD", "5\xC2\xB0 N, 3\xC2\xB2 \xC3\x97 2", "\xF0\x9F\x92\xA9",
    };

    (void)s;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect(&defaults, texts[i], texts[i]);
}

static void options_switch_parts(void **s)
{
    const struct repair_conf none = {.unescape = UNESCAPE_OFF};
    struct repair_conf one = none;
    const char *all = "s\xC3\x83\xC2\xB3 &amp; \x1B[1m\xE2\x80\x9Cx\xE2\x80\x9D \xEF\xAC\x81 \xEF\xBC\xA1";

    (void)s;
    expect(&none, all, all);
    one.mojibake = true;
    expect(&one, all, "s\xC3\xB3 &amp; \x1B[1m\xE2\x80\x9Cx\xE2\x80\x9D \xEF\xAC\x81 \xEF\xBC\xA1");
    expect(&everything, all, "s\xC3\xB3 & \"x\" fi A");
    /* auto: nothing from the line of the first < on */
    expect(&defaults, "&lt;a &amp;amp;\n&gt; <\n&gt;\n", "<a &\n&gt; <\n&gt;\n");
    expect(&unescape_on, "&lt;\n<&gt;", "<\n<>");
    expect(&defaults, "&#59; &#1;&#xD800; &#128; &SZLIG; &nosuch;", "&#59; \xEF\xBF\xBD \xE2\x82\xAC SS &nosuch;");
    expect(&defaults, "a\x1B[0;31mb\x1B[c \x1B[1", "ab \x1B[1");
}

/* Each line for itself: what one line proves does not hold for the next. */
static void segments_are_lines(void **s)
{
    (void)s;
    expect(&encoding, "\xC3\x83\xC2\xA9\n\xC3\xA9t\xC3\xA9\r\n\xC3\x83\xC2\xA9",
           "\xC3\xA9\n\xC3\xA9t\xC3\xA9\r\n\xC3\xA9");
}

/* A chain that resolves a link a round: stays, rather than take the square of its length. */
static void chains_end(void **s)
{
    struct buf b = {0};
    struct span out;

    (void)s;
    expect(&encoding, "\xC3\x83\xC6\x92\xC6\x92\xC6\x92", "\xC3\x83");
    buf_puts(&b, "\xC3\x83");
    for (int i = 0; i < 300000; i++)
        buf_puts(&b, "\xC6\x92");
    assert_int_equal(repair_text(&r, &defaults, buf_span(&b), &out), 0);
    assert_ptr_equal(out.p, b.p);
    buf_clear(&b);
    buf_puts(&b, "&");
    for (int i = 0; i < 300000; i++)
        buf_puts(&b, "amp;");
    assert_int_equal(repair_text(&r, &defaults, buf_span(&b), &out), 0);
    assert_ptr_equal(out.p, b.p);
    buf_free(&b);
}

/* A line of more than a million characters is taken in parts. */
static void long_lines_in_parts(void **s)
{
    struct buf b = {0};
    struct span out;

    (void)s;
    for (int i = 0; i < 999999; i++)
        buf_putc(&b, 'x');
    buf_puts(&b, "\xC3\x83\xC2\xA9 \xC3\x83\xC2\xA9"); /* the cut is within the first */
    assert_int_equal(repair_text(&r, &encoding, buf_span(&b), &out), 0);
    assert_int_equal(out.n, 999999 + 4 + 3);
    assert_memory_equal(out.p + 999999, "\xC3\x83\xC2\xA9 \xC3\xA9", 7);
    buf_free(&b);
}

static int release(void **s)
{
    (void)s;
    repair_free(&r);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_ftfy),          cmocka_unit_test(fine_text_stays), cmocka_unit_test(options_switch_parts),
        cmocka_unit_test(segments_are_lines), cmocka_unit_test(chains_end),    cmocka_unit_test(long_lines_in_parts),
    };
    return cmocka_run_group_tests_name("repair", tests, NULL, release);
}
