/* Conditions: what meets them, and where one is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "curate/stream/where.h"

static const struct where_field fields[] = {
    {"lang", WHERE_TEXT}, {"date", WHERE_TEXT}, {"status", WHERE_NUMBER}, {"none", WHERE_TEXT}, {NULL, WHERE_ABSENT}};

/* An entry with lang "de", date 2024-02-25 and status 404; of any names n is 2.5 and s is "7". */
static int get(void *arg, const struct where_node *test, struct where_value *v, struct err *e)
{
    (void)arg;
    (void)e;
    if (strcmp(test->field, "lang") == 0)
        *v = (struct where_value){WHERE_TEXT, span_of("de"), 0};
    else if (strcmp(test->field, "date") == 0)
        *v = (struct where_value){WHERE_TEXT, span_of("2024-02-25"), 0};
    else if (strcmp(test->field, "status") == 0)
        *v = (struct where_value){WHERE_NUMBER, {NULL, 0}, 404};
    else if (strcmp(test->field, "n") == 0)
        *v = (struct where_value){WHERE_NUMBER, {NULL, 0}, 2.5};
    else if (strcmp(test->field, "s") == 0)
        *v = (struct where_value){WHERE_TEXT, span_of("7"), 0};
    return 0;
}

static int meets(const char *text, const struct where_field *known)
{
    struct where *w;
    struct err e = {0};
    int rc = where_read(&w, text, known, &e);

    if (rc == ERR_UNSUPPORTED)
        skip();
    if (rc < 0)
        fail_msg("'%s': %s", text, e.msg);
    assert_string_equal(where_text(w), text);
    rc = where_meets(w, get, NULL, &e);
    where_free(w);
    return rc;
}

static void test_meets(void **state)
{
    static const struct { const char *text; int met; } cases[] = {
        {"lang = de", 1}, {"lang=de", 1}, {"lang == 'de'", 1}, {"lang != de", 0}, {"lang = fr", 0}, {"lang in (fr, de)", 1},
        {"lang in fr de", 1}, {"lang in (fr)", 0}, {"not lang = de", 0}, {"not not lang = de", 1}, {"none = x", 0},
        {"none != x", 0}, {"not none = x", 1}, {"status = 404", 1}, {"status = 404.0", 1}, {"status < 400", 0},
        {"status >= 404", 1},
        {"status in (200, 404)", 1}, {"status != 200", 1}, {"date >= 2024", 1}, {"date < 2024-03", 1}, {"date > 2024-02-25", 0},
        {"lang = fr and lang = fr or lang = de", 1}, {"lang = fr and (lang = fr or lang = de)", 0},
        {"lang = de or status = 1 and status = 2", 1}, {"NOT (lang = fr OR status = 200) AND lang = de", 1}, {"((lang=de))", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (meets(cases[i].text, fields) != cases[i].met)
            fail_msg("'%s' is not %d", cases[i].text, cases[i].met);
}

/* Fields of any name: numbers are compared with numbers, texts with texts. */
static void test_any_field(void **state)
{
    static const struct { const char *text; int met; } cases[] = {
        {"n = 2.5", 1}, {"n = 25e-1", 1}, {"n < 3", 1}, {"n < x", 0}, {"s = 7", 1}, {"s < 8", 0}, {"s < a", 1}, {"m = 1", 0},
        {"o.x = 1", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (meets(cases[i].text, NULL) != cases[i].met)
            fail_msg("'%s' is not %d", cases[i].text, cases[i].met);
}

static void test_expressions(void **state)
{
    (void)state;
    assert_int_equal(meets("lang ~ ^d", fields), 1);
    assert_int_equal(meets("lang ~ \"^(e|f)\"", fields), 0);
    assert_int_equal(meets("date ~ '^2024-0[12]-'", fields), 1);
    assert_int_equal(meets("status ~ ^4..$", fields), 1);
    assert_int_equal(meets("none ~ .", fields), 0);
    assert_int_equal(meets("lang ~ \"d\\\"?e\"", fields), 1);
}

static void test_wrong(void **state)
{
    static const struct { const char *text, *message; } cases[] = {
        {"", "column 1: a test is missing"}, {"lang", "column 5: an operator is missing"},
        {"lang = ", "column 8: a value is missing"}, {"lung = de", "column 1: 'lung' is no field; did you mean 'lang'?"},
        {"lang = de status = 1", "column 11: 'and' or 'or' is expected"}, {"(lang = de", "column 11: a ')' is missing"},
        {"lang = de)", "column 10: a ')' without a '('"}, {"lang = \"d", "column 8: a quote"},
        {"status = ok", "column 10: the field is a number"}, {"lang in (a", "column 11: a ')' is missing"},
        {"= 3", "column 1: a test is"}, {"lang = a and", "column 13: a test is missing"},
    };
    struct where *w;
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(where_read(&w, cases[i].text, fields, &e), ERR_FORMAT);
        assert_null(w);
        if (strncmp(e.msg, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("'%s': %s", cases[i].text, e.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meets), cmocka_unit_test(test_any_field), cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_wrong)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
