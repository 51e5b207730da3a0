/* What stands under why, stats and report: distributions, counts by name, text made safe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/hash.h"
#include "curate/report/name_tally.h"
#include "curate/report/report_page.h"
#include "curate/extract/extract.h"
#include "curate/filter/filter.h"
#include "curate/stages/stages.h"
#include "curate/report/rules.h"
#include "curate/report/sketch.h"

static double quantile(const struct sketch *s, double q)
{
    struct sketch_point *p;
    size_t n;
    double x;

    assert_int_equal(sketch_points(s, &p, &n), 0);
    for (size_t i = 1; i < n; i++)
        assert_true(p[i - 1].x < p[i].x);
    x = sketch_quantile(p, n, q);
    free(p);
    return x;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void few_numbers_are_exact(void **state)
{
    struct sketch s = {0};

    (void)state;
    assert_true(isnan(quantile(&s, .5)) && isnan(sketch_mean(&s)));
    for (int i = SKETCH_EXACT; i-- > 0;)
        assert_int_equal(sketch_add(&s, i * .3 - 100), 0);
    assert_true(sketch_is_exact(&s));
    assert_true(quantile(&s, .5) == 2047 * .3 - 100);
    assert_true(quantile(&s, 0) == s.min && s.min == -100);
    assert_true(quantile(&s, 1) == s.max);
    sketch_free(&s);
}

/* Sizes over 30 powers of two, both signs: every quantile within 1/256 of the true one. */
static void many_numbers_are_near(void **state)
{
    enum { N = 100000 };
    static double all[N];
    struct sketch s = {0};

    (void)state;
    for (int i = 0; i < N; i++) {
        uint64_t r = hash_mix64((uint64_t)i + 1);
        all[i] = ldexp(1 + (double)(r >> 20 & 0xFFFFFF) / 0x1p24, (int)(r % 30) - 10) * (r >> 60 ? 1 : -1);
        assert_int_equal(sketch_add(&s, all[i]), 0);
    }
    qsort(all, N, sizeof *all, by_value);
    assert_false(sketch_is_exact(&s));
    for (int i = 1; i < 1000; i++) {
        double want = all[N / 1000 * i - 1], got = quantile(&s, i / 1000.0);
        if (!(fabs(got - want) <= fabs(want) / 256))
            fail_msg("quantile %d: %g, not %g", i, got, want);
    }
    assert_true(s.min == all[0] && s.max == all[N - 1]);
    sketch_free(&s);
}

static void small_integers_stay_exact(void **state)
{
    struct sketch s = {0};
    struct sketch_point *p;
    size_t n;

    (void)state;
    for (int i = 0; i < 256 * 100; i++)
        assert_int_equal(sketch_add(&s, i % 256), 0);
    assert_int_equal(sketch_points(&s, &p, &n), 0);
    assert_int_equal(n, 256);
    for (size_t i = 0; i < n; i++)
        assert_true(p[i].x == (double)i && p[i].n == 100);
    assert_true(sketch_mean(&s) == 127.5);
    free(p);
    sketch_free(&s);
}

/* A sum whose parts cancel; and what has no place in the bins. */
static void sums_are_compensated(void **state)
{
    struct sketch s = {0};

    (void)state;
    for (int i = 0; i < 5000; i++) {
        assert_int_equal(sketch_add(&s, 1e17), 0);
        assert_int_equal(sketch_add(&s, 1), 0);
        assert_int_equal(sketch_add(&s, -1e17), 0);
        assert_int_equal(sketch_add(&s, 1e-300), 0);
    }
    assert_true(fabs(sketch_mean(&s) - .25) < 1e-12);
    assert_true(quantile(&s, .4) == 0 && fabs(quantile(&s, .6) - 1) <= 1 / 256.0);
    assert_true(s.used == 4);
    sketch_free(&s);
}

static void add(struct name_tally *t, const char *prefix, int n, uint64_t times)
{
    char name[32];
    struct name_count one = {1, 10, 5, 2, 0};

    snprintf(name, sizeof name, "%s%d", prefix, n);
    for (uint64_t i = 0; i < times; i++)
        assert_int_equal(name_tally_add(t, span_of(name), &one), 0);
}

/* 50,000 names that occur once between ten that occur often, room for 100. */
static void frequent_names_survive(void **state)
{
    struct name_tally t = {.bound = 100};
    size_t *order;

    (void)state;
    for (int i = 0; i < 50000; i++) {
        add(&t, "rare", i, 1);
        if (i % 20 == 0)
            add(&t, "often", i / 20 % 10, 1 + (uint64_t)(i / 20 % 10));
    }
    assert_true(t.missed > 0 && t.names.n <= 100);
    order = name_tally_order(&t);
    for (int i = 0; i < 10; i++) {
        const struct name_count *c = &t.count[order[i]];
        uint64_t true_count = 250 * (uint64_t)(10 - i);
        char name[32];

        snprintf(name, sizeof name, "often%d", 9 - i);
        if (true_count > t.missed)
            assert_true(span_is(t.names.name[order[i]], name) && c->docs <= true_count && c->docs + c->missed >= true_count);
    }
    assert_true(t.missed < 1000);
    free(order);
    name_tally_free(&t);
}

static void equal_counts_have_an_order(void **state)
{
    struct name_tally t = {.bound = 10};
    size_t *order;

    (void)state;
    add(&t, "b", 1, 2);
    add(&t, "a", 1, 2);
    add(&t, "c", 1, 3);
    assert_true(t.missed == 0);
    order = name_tally_order(&t);
    assert_true(order[0] == 2 && order[1] == 1 && order[2] == 0);
    free(order);
    name_tally_free(&t);
}

static void expect_html(struct span in, bool lines, const char *want)
{
    struct buf b = {0};

    assert_int_equal(html_put_text(&b, in, lines), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, want);
    buf_free(&b);
}

static void text_is_made_safe(void **state)
{
    static const char nul[] = "a\0b";

    (void)state;
    expect_html(span_of("<a href=\"x\">'&amp;"), false, "&lt;a href=&quot;x&quot;&gt;&#39;&amp;amp;");
    expect_html((struct span){nul, 3}, false, "a\\u0000b");
    expect_html(span_of("a\n\tb\r\x1b"), false, "a\\u000a\\u0009b\\u000d\\u001b");
    expect_html(span_of("a\n\tb\r\x1b\n"), true, "a\n\tb\\u000d\\u001b\n");
    expect_html(span_of("\xE2\x80\xAE\xC2\x85\xEF\xBB\xBF\xE2\x81\xA6"), false, "\\u202e\\u0085\\ufeff\\u2066");
    expect_html(span_of("caf\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80"), false, "caf\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80");
    expect_html(span_of(""), true, "");
}

static void expect_number(int (*put)(struct buf *, uint64_t), uint64_t v, const char *want)
{
    struct buf b = {0};

    assert_int_equal(put(&b, v), 0);
    assert_string_equal(b.p, want);
    buf_free(&b);
}

static void numbers_are_legible(void **state)
{
    (void)state;
    expect_number(html_put_count, 0, "0");
    expect_number(html_put_count, 999, "999");
    expect_number(html_put_count, 1234567, "1\xE2\x80\xAF""234\xE2\x80\xAF""567");
    expect_number(html_put_bytes, 999, "999\xE2\x80\xAF""B");
    expect_number(html_put_bytes, 1000, "1.00\xE2\x80\xAFkB");
    expect_number(html_put_bytes, 12345678, "12.3\xE2\x80\xAFMB");
    expect_number(html_put_bytes, 999999, "1.00\xE2\x80\xAFMB");
    expect_number(html_put_bytes, UINT64_MAX, "18.4\xE2\x80\xAF""EB");
}

/* The bars of a histogram stand on the right side of the threshold: 40 values below 50 and a
 * threshold of 50, so every bar ends left of the line or on it. */
static void bars_stand_before_the_threshold(void **state)
{
    struct report_rule r = {0};
    struct buf b = {0};
    double x, width, line = 0, last = 0;
    int n = 0;

    (void)state;
    for (int i = 0; i < 40; i++)
        assert_int_equal(sketch_add(&r.value, 10 + i), 0);
    assert_int_equal(sketch_add(&r.threshold, 50), 0);
    assert_int_equal(plot_values(&b, &r), 1);
    for (const char *p = b.p; (p = strstr(p, "<rect class=\"v\" ")) != NULL; p++, n++) {
        assert_int_equal(sscanf(p, "<rect class=\"v\" x=\"%lf\" y=\"%*f\" width=\"%lf\"", &x, &width), 2);
        last = x + width > last ? x + width : last;
    }
    assert_int_equal(n, 40);
    assert_int_equal(sscanf(strstr(b.p, "<path class=\"t\" "), "<path class=\"t\" d=\"M%lf", &line), 1);
    assert_true(last <= line + .1 && last > line - 10);
    assert_non_null(strstr(b.p, ">threshold 50<"));
    buf_free(&b);
    sketch_free(&r.value);
    sketch_free(&r.threshold);
}

/* Every line of `quern filter --list-rules`, and for each preset's rule that drops what an account of drops finds. */
static void every_rule_of_every_preset_has_words(void **state)
{
    char *list = NULL, *line, *next;
    size_t size = 0;
    FILE *f = open_memstream(&list, &size);
    int n = 0;

    (void)state;
    assert_non_null(f);
    filter_list_rules(f);
    assert_int_equal(fclose(f), 0);
    for (line = strchr(list, '\n') + 1; *line; line = next, n++) {
        char *field[6] = {line};

        next = strchr(line, '\n');
        *next++ = 0;
        for (int i = 1; i < 6; i++) {
            field[i] = strchr(field[i - 1], '\t');
            assert_non_null(field[i]);
            *field[i]++ = 0;
        }
        if (strlen(field[5]) < 5 || strcmp(field[5], "(null)") == 0)
            fail_msg("%s, rule %s has no words", field[0], field[1]);
        if (field[2][0] == '(') /* a setting or a signal: no account names it */
            continue;
        if (!rule_words(span_of("filter"), span_of(field[1])).value)
            fail_msg("an account finds no words for %s, rule %s", field[0], field[1]);
        if (strcmp(rule_words(span_of("filter"), span_of(field[1])).value, field[5]) != 0)
            fail_msg("%s, rule %s says something else than the rule of that name in another preset", field[0], field[1]);
    }
    assert_true(n > 200);
    free(list);
}

static int words_are_there(const char *stage, const struct stage_rule *r)
{
    int n = 0;

    for (; r && r->name; r++, n++) {
        const struct stage_rule found = rule_words(span_of(stage), span_of(r->name));

        if (!found.name || strcmp(found.name, r->name) != 0)
            fail_msg("an account does not find %s, rule %s", stage, r->name);
        if (!(found.value && *found.value) && !(found.why && *found.why))
            fail_msg("%s, rule %s has no words", stage, r->name);
    }
    return n;
}

static void every_stage_that_drops_has_words(void **state)
{
    const struct stage_kind *k;
    int n = words_are_there("extract", extract_rules);

    (void)state;
    for (int i = 0; (k = stage_kind_at(i)); i++)
        n += words_are_there(strcmp(k->name, "classify score") == 0 ? "classify" : k->name, k->rules);
    assert_true(n > 20);
}

static void rules_have_words(void **state)
{
    struct buf b = {0};

    (void)state;
    assert_string_equal(rule_words(span_of("filter"), span_of("top_3_gram")).value,
                        "share of characters in the most frequent 3-gram");
    assert_string_equal(rule_words(span_of("filter"), span_of("soft_blacklisted")).drops, "from");
    assert_null(rule_words(span_of("filter"), span_of("top__gram")).value);
    assert_null(rule_words(span_of("filter"), span_of("no such rule")).drops);
    assert_null(rule_words(span_of("no such stage"), span_of("empty")).why);
    assert_true(rule_words(span_of("decontaminate"), span_of("words")).question);
    assert_int_equal(rule_put_presets(&b, span_of("filter"), span_of("word_count")), 0);
    assert_string_equal(b.p, "nemo, dolma");
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_numbers_are_exact),       cmocka_unit_test(many_numbers_are_near),
        cmocka_unit_test(small_integers_stay_exact),   cmocka_unit_test(sums_are_compensated),
        cmocka_unit_test(frequent_names_survive),      cmocka_unit_test(equal_counts_have_an_order),
        cmocka_unit_test(text_is_made_safe),           cmocka_unit_test(numbers_are_legible),
        cmocka_unit_test(bars_stand_before_the_threshold), cmocka_unit_test(rules_have_words),
        cmocka_unit_test(every_rule_of_every_preset_has_words), cmocka_unit_test(every_stage_that_drops_has_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
