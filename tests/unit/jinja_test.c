/* Templates: what Jinja makes of small ones (tests/record/jinja.py), and what no template may do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "tokenize/jinja.h"

/* Renders with the members of a node as variables; what the ranges are, if wanted. */
static int rendered(struct span template, const struct node *vars, const char *date, struct buf *out, struct buf *ranges,
                    struct err *e)
{
    struct jinja_var v[32];
    struct arena a = {0};
    struct jinja *x;
    int n = 0, rc = jinja_new(&x, template, JINJA_CHAT, e);

    for (const struct node *m = vars ? vars->child : NULL; m && n < 32; m = m->next)
        v[n++] = (struct jinja_var){m->key.p, m};
    if (rc == 0) {
        rc = jinja_render(x, v, n, date, &a, out, ranges, e);
        jinja_free(x);
    }
    arena_free(&a);
    return rc;
}

static void texts_are_jinjas(void **s)
{
    struct buf file = {0}, out = {0}, ranges = {0};
    struct arena a = {0};
    struct node *vars = NULL;
    struct err e;
    int n = 0;

    (void)s;
    assert_int_equal(file_read_all("tests/data/tokenizer/jinja.jsonl", 1 << 24, &file, &e), 0);
    for (char *line = file.p, *end; line < file.p + file.n; line = end + 1, n++) {
        struct node *x;
        int rc;

        end = memchr(line, '\n', (size_t)(file.p + file.n - line));
        assert_int_equal(node_parse_json(&a, (struct span){line, (size_t)(end - line)}, &x, &e), 0);
        if (!vars) {
            vars = x;
            continue;
        }
        buf_clear(&out);
        rc = rendered(node_get(x, "template")->str, vars, NULL, &out, &ranges, &e);
        if (node_get(x, "error") ? rc != ERR_FORMAT : rc != 0 || !span_eq(buf_span(&out), node_get(x, "text")->str))
            fail_msg("%s\ngives '%.*s' (%s)\nnot '%s'", node_str(x, "template"), (int)out.n, out.p ? out.p : "",
                     rc < 0 ? e.msg : "", node_get(x, "text") ? node_str(x, "text") : "an error");
    }
    assert_true(n > 280);
    buf_free(&file);
    buf_free(&out);
    buf_free(&ranges);
    arena_free(&a);
}

static void generation_is_marked(void **s)
{
    struct buf out = {0}, ranges = {0};
    const struct jinja_range *r;
    struct err e;

    (void)s;
    assert_int_equal(
        rendered(span_of("ab{% generation %}cd{% endgeneration %}e{% generation %}f{% set x = 1 %}{% endgeneration %}{{ x }}"),
                 NULL, NULL, &out, &ranges, &e),
        0);
    assert_int_equal(ranges.n, 2 * sizeof *r);
    r = (const struct jinja_range *)(const void *)ranges.p;
    assert_int_equal(r[0].from, 2);
    assert_int_equal(r[0].to, 4);
    assert_int_equal(r[1].from, 5);
    assert_int_equal(r[1].to, 6);
    assert_int_equal(out.n, 6);
    buf_free(&out);
    buf_free(&ranges);
}

static void a_day_is_given_or_there_is_none(void **s)
{
    struct buf out = {0}, ranges = {0};
    struct err e;

    (void)s;
    assert_int_equal(rendered(span_of("{{ strftime_now('%d %b %Y') }}"), NULL, "2024-07-26", &out, &ranges, &e), 0);
    assert_true(span_is(buf_span(&out), "26 Jul 2024"));
    buf_clear(&out);
    assert_int_equal(rendered(span_of("{{ strftime_now is defined }}"), NULL, NULL, &out, &ranges, &e), 0);
    assert_true(span_is(buf_span(&out), "False"));
    assert_int_equal(rendered(span_of("{{ strftime_now('%Y') }}"), NULL, NULL, &out, &ranges, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "--chat-date"));
    assert_int_equal(rendered(span_of("{{ strftime_now('%Y') }}"), NULL, "today", &out, &ranges, &e), ERR_FORMAT);
    buf_free(&out);
    buf_free(&ranges);
}

/* What is not known is named with its line; what has no end is ended. */
static void what_cannot_be_is_told(void **s)
{
    static const struct {
        const char *template, *says;
        int rc;
    } bad[] = {
        {"a\n{% include 'x' %}", "line 2 of the template: 'include' is not known", ERR_FORMAT},
        {"{{ x | nonsense }}", "the filter 'nonsense' is not known", ERR_FORMAT},
        {"{{ x is nonsense }}", "the test 'nonsense' is not known", ERR_FORMAT},
        {"{% for x in y %}", "ends without an 'else'", ERR_FORMAT},
        {"{% if x %}{% endfor %}", "'endfor' is not known here", ERR_FORMAT},
        {"{{ 'x }}", "a string without an end", ERR_FORMAT},
        {"{{ x", "a tag without an end", ERR_FORMAT},
        {"{# x", "a comment without an end", ERR_FORMAT},
        {"{{ 1 < 2 < 3 }}", "a chain of comparisons", ERR_FORMAT},
        {"{% break %}", "'break' is not known here", ERR_FORMAT},
        {"{{ ?x }}", "'?' has no meaning here", ERR_FORMAT},
        {"{{ f(a=1 }}", "',' is wanted", ERR_FORMAT},
        {"{% macro m() %}{% generation %}{% endgeneration %}{% endmacro %}", "generation within a macro", ERR_FORMAT},
        {"\n\n{{ raise_exception('no ' ~ 7) }}", "the template says: no 7", ERR_FORMAT},
        {"{{ 'a'.nothing() }}", "a string has no method 'nothing'", ERR_FORMAT},
        {"{{ none.x }}{{ nothing.x }}", "'nothing' is undefined", ERR_FORMAT},
        {"{{ 9223372036854775807 + 1 }}", "a number of 19 digits", ERR_FORMAT},
        {"{{ 922337203685477580 * 11 }}", "a number beyond 64 bits", ERR_FORMAT},
        {"{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}", "levels", ERR_LIMIT},
        {"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "steps", ERR_LIMIT},
        {"{% set ns = namespace(s='abcdefgh') %}{% for a in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", "MiB",
         ERR_LIMIT},
        {"{{ 'abcdefgh' * 1000000000 }}", "MiB", ERR_LIMIT},
        {"{{ range(30000000) }}", "steps", ERR_LIMIT},
        {"\xff", "no UTF-8", ERR_FORMAT},
    };
    struct buf out = {0}, ranges = {0}, deep = {0};
    struct err e;

    (void)s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        buf_clear(&out);
        assert_int_equal(rendered(span_of(bad[i].template), NULL, NULL, &out, &ranges, &e), bad[i].rc);
        if (!strstr(e.msg, bad[i].says))
            fail_msg("%s: '%s', not '%s'", bad[i].template, e.msg, bad[i].says);
    }
    buf_puts(&deep, "{{ ");
    for (int i = 0; i < 100000; i++)
        buf_putc(&deep, '(');
    assert_int_equal(rendered(buf_span(&deep), NULL, NULL, &out, &ranges, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "levels"));
    buf_clear(&deep);
    for (int i = 0; i < 100000; i++)
        buf_puts(&deep, "{% if x %}");
    assert_int_equal(rendered(buf_span(&deep), NULL, NULL, &out, &ranges, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "levels"));
    buf_free(&out);
    buf_free(&ranges);
    buf_free(&deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_jinjas),
        cmocka_unit_test(generation_is_marked),
        cmocka_unit_test(a_day_is_given_or_there_is_none),
        cmocka_unit_test(what_cannot_be_is_told),
    };
    return cmocka_run_group_tests_name("jinja", tests, NULL, NULL);
}
