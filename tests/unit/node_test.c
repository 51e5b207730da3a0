/* Trees from JSON and YAML. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/node.h"

static void json_becomes_a_tree(void **s)
{
    static const char text[] = "{\"version\":\"1.0\",\"n\":-7,\"x\":2.5,\"big\":18446744073709551616,\"t\":true,"
                               "\"z\":null,\"list\":[1,[],{\"\\u00e9\":\"a\\nb\"}],\"e\":1e-400,\"h\":1e400}";
    struct arena a = {0};
    struct node *r;
    struct err e;

    (void)s;
    assert_int_equal(node_parse_json(&a, span_of(text), &r, &e), 0);
    assert_int_equal(r->type, NODE_MAP);
    assert_int_equal(r->count, 9);
    assert_string_equal(node_str(r, "version"), "1.0");
    assert_int_equal(node_int(r, "n", 0), -7);
    assert_true(node_num(r, "n", 0) == -7);
    assert_true(node_num(r, "x", 0) == 2.5);
    assert_true(node_num(r, "big", 0) == 18446744073709551616.0);
    assert_int_equal(node_get(r, "big")->type, NODE_NUM);
    assert_true(node_num(r, "e", 1) == 0);
    assert_true(node_num(r, "h", 1) == INFINITY);
    assert_true(node_bool(r, "t", false));
    assert_int_equal(node_get(r, "z")->type, NODE_NULL);
    const struct node *l = node_get(r, "list");
    assert_int_equal(l->count, 3);
    assert_int_equal(l->child->integer, 1);
    assert_int_equal(l->child->next->type, NODE_LIST);
    assert_null(l->child->next->child);
    assert_string_equal(node_str(l->child->next->next, "\xC3\xA9"), "a\nb");
    /* absent, of another type, not a map */
    assert_null(node_str(r, "n"));
    assert_int_equal(node_int(r, "x", 5), 5);
    assert_int_equal(node_int(r, "nope", 6), 6);
    assert_int_equal(node_bool(r, "n", true), true);
    assert_null(node_get(l, "n"));
    assert_null(node_get(NULL, "n"));
    assert_int_equal(node_parse_json(&a, span_of(" 12 "), &r, &e), 0);
    assert_int_equal(r->integer, 12);
    arena_free(&a);
}

static void bad_json_says_where(void **s)
{
    static const char *const cases[][2] = {{"", "empty"}, {"[1,", "byte 3"}, {"[1 2]", "byte 3"},
                                           {"{\"a\":{\"b\":1,\"b\":2}}", "'b' occurs twice"},
                                           {"[\"\\ud800\"]", "byte 1: half of a surrogate"},
                                           {"{} {}", "byte 3"}, {"[\"\xff\"]", "UTF-8 at byte 2"}};
    struct arena a = {0};
    struct node *r;
    struct err e;
    char deep[2002];

    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(node_parse_json(&a, span_of(cases[i][0]), &r, &e), ERR_FORMAT);
        if (!strstr(e.msg, cases[i][1]))
            fail_msg("'%s': said '%s', not '%s'", cases[i][0], e.msg, cases[i][1]);
        assert_null(r);
    }
    memset(deep, '[', 1001);
    memset(deep + 1001, ']', 1001);
    assert_int_equal(node_parse_json(&a, (struct span){deep, 2002}, &r, &e), ERR_FORMAT);
    assert_int_equal(node_parse_json(&a, (struct span){deep + 1, 2000}, &r, &e), 0);
    a.max = a.used + 1000;
    assert_int_equal(node_parse_json(&a, (struct span){deep + 1, 2000}, &r, &e), ERR_NOMEM);
    arena_free(&a);
}

static void yaml_becomes_a_tree(void **s)
{
    static const char text[] = "# a plan\n"
                               "stage: filter\n"
                               "presets: [gopher-quality, 'c4']\n"
                               "rules:\n"
                               "  - {min: 50, max: 1e5}\n"
                               "  - note: >\n"
                               "      folded\n"
                               "      text\n"
                               "types: [~, null, true, False, 12, -3, +4, 0x1F, 0o17,\n"
                               "  1.5, -.5, 1., .inf, -.INF, .nan,\n"
                               "  'true', \"12\", yes, 1_000, 1e, 0x, e5, '', 99999999999999999999, 010, -]\n"
                               "empty:\n";
    static const enum node_type types[] = {
        NODE_NULL, NODE_NULL, NODE_BOOL, NODE_BOOL, NODE_INT, NODE_INT, NODE_INT, NODE_INT, NODE_INT,
        NODE_NUM,  NODE_NUM,  NODE_NUM,  NODE_NUM,  NODE_NUM, NODE_NUM, NODE_STR, NODE_STR, NODE_STR,
        NODE_STR,  NODE_STR,  NODE_STR,  NODE_STR,  NODE_STR, NODE_NUM, NODE_INT, NODE_STR};
    static const int64_t ints[] = {12, -3, 4, 31, 15};
    struct arena a = {0};
    struct node *r;
    struct err e;

    (void)s;
    assert_int_equal(node_parse_yaml(&a, span_of(text), &r, &e), 0);
    assert_string_equal(node_str(r, "stage"), "filter");
    assert_int_equal(node_get(r, "stage")->line, 2);
    assert_string_equal(node_get(r, "presets")->child->next->str.p, "c4");
    const struct node *rules = node_get(r, "rules");
    assert_int_equal(rules->count, 2);
    assert_int_equal(node_int(rules->child, "min", 0), 50);
    assert_true(node_num(rules->child, "max", 0) == 1e5);
    assert_string_equal(node_str(rules->child->next, "note"), "folded text\n");
    const struct node *t = node_get(r, "types");
    assert_int_equal(t->count, sizeof types / sizeof *types);
    int i = 0;
    for (const struct node *c = t->child; c; c = c->next, i++) {
        if (c->type != types[i])
            fail_msg("'%s' has type %d", c->str.p, c->type);
        if (i >= 4 && i < 9)
            assert_int_equal(c->integer, ints[i - 4]);
        if (i == 10)
            assert_true(c->num == -0.5);
        if (i == 13)
            assert_true(c->num == -INFINITY);
        if (i == 23)
            assert_string_equal(c->str.p, "99999999999999999999");
    }
    assert_int_equal(node_get(r, "empty")->type, NODE_NULL);
    assert_int_equal(node_parse_yaml(&a, span_of(""), &r, &e), 0);
    assert_int_equal(r->type, NODE_NULL);
    arena_free(&a);
}

static void bad_yaml_says_which_line(void **s)
{
    static const char *const cases[][2] = {
        {"a: 1\nb: 2\na: 3\n", "line 3: the key 'a' occurs twice"}, {"a: &x 1\n", "line 1: anchors"},
        {"a: 1\nb: *x\n", "line 2: aliases"}, {"a: !!int 1\n", "tags"}, {"a: [1, 2\nb: 3\n", "line 2"},
        {"a: 1\n---\nb: 2\n", "line 2: a second document"}, {"? [a]\n: 1\n", "line 1: a key must be a scalar"},
        {"a: \xff\n", "byte 3"}, {"\ta: 1\n", "line 1"}};
    struct arena a = {0};
    struct node *r;
    struct err e;
    char deep[2002];

    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(node_parse_yaml(&a, span_of(cases[i][0]), &r, &e), ERR_FORMAT);
        if (!strstr(e.msg, cases[i][1]))
            fail_msg("'%s': said '%s', not '%s'", cases[i][0], e.msg, cases[i][1]);
        assert_null(r);
    }
    memset(deep, '[', 1001);
    memset(deep + 1001, ']', 1001);
    assert_int_equal(node_parse_yaml(&a, (struct span){deep, 2002}, &r, &e), ERR_FORMAT);
    assert_int_equal(node_load_yaml(&a, "/no/such/plan.yaml", &r, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "/no/such/plan.yaml"));
    assert_int_equal(node_load_json(&a, "/dev/null", &r, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "'/dev/null': empty"));
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_becomes_a_tree),
        cmocka_unit_test(bad_json_says_where),
        cmocka_unit_test(yaml_becomes_a_tree),
        cmocka_unit_test(bad_yaml_says_which_line),
    };
    return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
