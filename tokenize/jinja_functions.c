/* Filters, tests, functions and methods of templates. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "tokenize/jinja_parts.h"

/* ---- as text ---- */

static int to_string(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    struct span s;

    (void)x;
    TRY(jinja_string(r, v, &s));
    *out = jinja_text(s);
    return 0;
}

static int same(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    (void)r, (void)x;
    *out = *v;
    return 0;
}

/* tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False), as transformers has it */
static int to_json(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *ascii = jinja_arg(x, 0, "ensure_ascii"), *by = jinja_arg(x, 1, "indent"),
                             *signs = jinja_arg(x, 2, "separators"), *sort = jinja_arg(x, 3, "sort_keys");
    struct buf b = {.max = JINJA_TEXT};
    int rc;

    if ((ascii && jinja_true(ascii)) || (signs && signs->kind != JINJA_NONE))
        return jinja_error(r, x->line, "tojson with ensure_ascii or separators is not known");
    rc = jinja_put_json(r, &b, v, (int)jinja_number_or(by, -1) % 100, sort && jinja_true(sort), 0);
    if (rc == 0)
        return jinja_take(r, &b, out);
    buf_free(&b);
    return rc;
}

/* ---- numbers ---- */

static int to_int(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    char text[32], *end = text;
    struct span s = jinja_is_text(v) ? jinja_strip(v->s, (struct span){NULL, 0}, true, true) : (struct span){NULL, 0};
    int64_t n = 0;

    (void)r;
    if (s.n && s.n < sizeof text - 1) {
        memcpy(text, s.p, s.n);
        text[s.n] = 0;
        n = strtoll(text, &end, 10);
        if (*end)
            n = (int64_t)strtod(text, &end);
    }
    if (jinja_is_number(v) && (v->kind != JINJA_FLOAT || fabs(v->f) < 9e18))
        n = v->kind == JINJA_FLOAT ? (int64_t)v->f : v->i;
    else if (end == text || *end)
        n = jinja_number_or(jinja_arg(x, 0, "default"), 0);
    *out = jinja_int(n);
    return 0;
}

static int to_float(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *absent = jinja_arg(x, 0, "default");
    char text[64], *end = text;

    (void)r;
    *out = jinja_float(absent && jinja_is_number(absent) ? jinja_number(absent) : 0);
    if (jinja_is_number(v)) {
        *out = jinja_float(jinja_number(v));
    } else if (jinja_is_text(v) && v->s.n && v->s.n < sizeof text - 1) {
        double f;

        memcpy(text, v->s.p, v->s.n);
        text[v->s.n] = 0;
        f = strtod(text, &end);
        if (end != text && !*end)
            *out = jinja_float(f);
    }
    return 0;
}

static int absolute(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    if (!jinja_is_number(v) || (v->kind != JINJA_FLOAT && v->i == INT64_MIN))
        return jinja_wrong(r, x, "abs", v);
    *out = v->kind == JINJA_FLOAT ? jinja_float(fabs(v->f)) : jinja_int(v->i < 0 ? -v->i : v->i);
    return 0;
}

/* default(value='', boolean=False) */
static int or_default(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *absent = jinja_arg(x, 0, "default_value"), *falsy = jinja_arg(x, 1, "boolean");

    (void)r;
    *out = *v;
    if (v->kind == JINJA_UNDEFINED || (falsy && jinja_true(falsy) && !jinja_true(v)))
        *out = absent ? *absent : jinja_text(span_of(""));
    return 0;
}

static jinja_fn *find_named(const struct jinja_named *v, struct span name)
{
    for (; v->name; v++)
        if (span_is(name, v->name))
            return v->fn;
    return NULL;
}

static const struct jinja_named filters[] = {
    {"abs", absolute}, {"d", or_default}, {"default", or_default}, {"float", to_float}, {"int", to_int}, {"safe", same},
    {"string", to_string}, {"tojson", to_json}, {NULL, NULL}};

jinja_fn *jinja_filter_find(struct span name)
{
    jinja_fn *fn = find_named(filters, name);

    fn = fn ? fn : find_named(jinja_text_filters, name);
    return fn ? fn : find_named(jinja_list_filters, name);
}

/* ---- methods ---- */

static int get(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *key = jinja_arg(x, 0, NULL), *absent = jinja_arg(x, 1, NULL);
    const struct jinja_value *there = jinja_is_text(key) ? jinja_map_get(v->map, key->s) : NULL;

    (void)r;
    *out = there ? *there : absent ? *absent : (struct jinja_value){.kind = JINJA_NONE};
    return 0;
}

static int keys(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return jinja_items(r, x->line, v, out);
}

static int values(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    (void)x;
    TRY(jinja_list_new(r, v->map->n, out));
    for (int64_t i = 0; i < v->map->n; i++)
        out->list->v[i] = v->map->v[i].value;
    return 0;
}

static int join_by(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    struct jinja_args by = {.n = 1, .line = x->line, .v = {*v}};
    const struct jinja_value *list = jinja_arg(x, 0, NULL);

    return list ? jinja_filter_find(span_of("join"))(r, list, &by, out) : jinja_error(r, x->line, "join wants a list");
}

/* Where in a list the first item is that equals another, and how many do. */
static int list_index(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *what = jinja_arg(x, 0, NULL);

    for (int64_t i = 0; what && i < v->list->n; i++)
        if (jinja_equal(&v->list->v[i], what)) {
            *out = jinja_int(i);
            return 0;
        }
    return jinja_error(r, x->line, what ? "index: the list has no such item" : "index wants an item");
}

static int list_count(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *what = jinja_arg(x, 0, NULL);
    int64_t n = 0;

    if (!what)
        return jinja_error(r, x->line, "count wants an item");
    for (int64_t i = 0; i < v->list->n; i++)
        n += jinja_equal(&v->list->v[i], what);
    *out = jinja_int(n);
    return 0;
}

int jinja_method(struct jinja_run *r, const struct jinja_value *v, struct span name, const struct jinja_args *args,
                 struct jinja_value *out)
{
    static const struct jinja_named maps[] = {{"get", get}, {"keys", keys}, {"values", values}, {NULL, NULL}};
    static const struct jinja_named lists[] = {{"count", list_count}, {"index", list_index}, {NULL, NULL}};
    jinja_fn *fn = v->kind == JINJA_MAP ? span_is(name, "items") ? jinja_filter_find(name) : find_named(maps, name)
                   : v->kind == JINJA_LIST ? find_named(lists, name)
                   : v->kind != JINJA_STRING ? NULL
                   : span_is(name, "join") ? join_by : find_named(jinja_text_methods, name);

    if (!fn)
        return 0;
    TRY(fn(r, v, args, out));
    return 1;
}

/* ---- functions ---- */

enum { RANGE, NAMESPACE, DICT, RAISE, STRFTIME, FUNCTIONS };
static const char *const functions[FUNCTIONS] = {"range", "namespace", "dict", "raise_exception", "strftime_now"};

int jinja_function_find(struct span name)
{
    for (int i = 0; i < FUNCTIONS; i++)
        if (span_is(name, functions[i]))
            return i;
    return -1;
}

static int range(struct jinja_run *r, const struct jinja_args *x, struct jinja_value *out)
{
    int64_t from = 0, to, by = 1, n;

    for (int i = 0; i < x->n; i++)
        if (x->v[i].kind != JINJA_INT || llabs(x->v[i].i) > INT32_MAX)
            return jinja_error(r, x->line, "range of a %s, or too large a number", jinja_kind_name(&x->v[i]));
    if (x->n < 1 || x->n > 3 || (x->n == 3 && x->v[2].i == 0))
        return jinja_error(r, x->line, "range wants one to three numbers, the last not 0");
    to = x->v[x->n > 1].i;
    from = x->n > 1 ? x->v[0].i : 0;
    by = x->n > 2 ? x->v[2].i : 1;
    n = jinja_numbers(from, to, by);
    if ((r->steps += n) > JINJA_STEPS)
        return jinja_step(r, x->line);
    TRY(jinja_list_new(r, n, out));
    for (int64_t i = 0; i < n; i++)
        out->list->v[i] = jinja_int(from + i * by);
    return 0;
}

static int strftime_now(struct jinja_run *r, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *form = jinja_arg(x, 0, "format");
    struct tm day = {0};
    struct span s;
    char text[200];

    if (!jinja_is_text(form) || !strptime(r->date, "%Y-%m-%d", &day))
        return jinja_error(r, x->line, "strftime_now wants a format, and a date YYYY-MM-DD");
    s = arena_dup(r->a, form->s);
    if (!s.p)
        return jinja_no_memory(r);
    s = (struct span){text, strftime(text, sizeof text, s.p, &day)};
    s = arena_dup(r->a, s);
    *out = jinja_text(s);
    return s.p ? 0 : jinja_no_memory(r);
}

int jinja_function(struct jinja_run *r, int function, const struct jinja_args *args, struct jinja_value *out)
{
    const struct jinja_value *said = jinja_arg(args, 0, NULL);
    struct span s = {"", 0};

    if (function == RANGE)
        return range(r, args, out);
    if (function == STRFTIME)
        return strftime_now(r, args, out);
    if (function == RAISE) {
        if (said)
            TRY(jinja_string(r, said, &s));
        return err_set(r->e, ERR_FORMAT, "the template says: %.*s", (int)(s.n < 400 ? s.n : 400), s.p);
    }
    TRY(jinja_map_new(r, 0, out));
    if (function == NAMESPACE)
        out->kind = JINJA_NAMESPACE;
    for (int i = 0; i < args->n; i++) {
        if (!args->name[i].p)
            return jinja_error(r, args->line, "%s takes names with values", functions[function]);
        TRY(jinja_map_set(r, out->map, args->name[i], &args->v[i]));
    }
    return 0;
}

/* ---- tests ---- */

enum {
    DEFINED,
    UNDEFINED,
    NONE,
    STRING,
    NUMBER,
    INTEGER,
    FLOAT,
    BOOLEAN,
    TRUE,
    FALSE,
    MAPPING,
    SEQUENCE,
    ITERABLE,
    CALLABLE,
    ODD,
    EVEN,
    DIVISIBLE,
    EQ,
    EQUALTO,
    NE,
    IN,
    LT,
    LE,
    GT,
    GE,
    SAMEAS,
    IS_UPPER,
    IS_LOWER,
    TESTS
};
static const char *const tests[TESTS] = {
    "defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "sequence",
    "iterable", "callable", "odd", "even", "divisibleby", "eq", "equalto", "ne", "in", "lt", "le", "gt", "ge", "sameas", "upper",
    "lower"};

int jinja_test_find(struct span name)
{
    for (int i = 0; i < TESTS; i++)
        if (span_is(name, tests[i]))
            return i;
    return -1;
}

/* Of two values. */
static int compared(struct jinja_run *r, int function, const struct jinja_value *v, const struct jinja_args *args, bool *yes)
{
    const struct jinja_value *other = jinja_arg(args, 0, NULL);
    int order;

    if (!other)
        return jinja_error(r, args->line, "the test '%s' wants a value", tests[function]);
    if (function == EQ || function == EQUALTO || function == NE) {
        *yes = jinja_equal(v, other) == (function != NE);
    } else if (function == SAMEAS) {
        *yes = v->kind == other->kind && jinja_equal(v, other);
    } else if (function == IN) {
        struct jinja_value all;

        if (other->kind == JINJA_STRING && jinja_is_text(v)) {
            *yes = !v->s.n || (other->s.n && memmem(other->s.p, other->s.n, v->s.p, v->s.n));
            return 0;
        }
        TRY(jinja_items(r, args->line, other, &all));
        *yes = false;
        for (int64_t i = 0; i < all.list->n && !*yes; i++)
            *yes = jinja_equal(&all.list->v[i], v);
    } else if (function == DIVISIBLE) {
        if (v->kind != JINJA_INT || other->kind != JINJA_INT || other->i == 0 || other->i == -1)
            return jinja_error(r, args->line, "divisibleby wants two numbers, the second above 0");
        *yes = v->i % other->i == 0;
    } else {
        TRY(jinja_compare(r, args->line, v, other, &order));
        *yes = function == LT ? order < 0 : function == LE ? order <= 0 : function == GT ? order > 0 : order >= 0;
    }
    return 0;
}

int jinja_test(struct jinja_run *r, int function, const struct jinja_value *v, const struct jinja_args *args, bool *yes)
{
    struct jinja_value other;
    enum jinja_kind k = v->kind;
    struct span s;

    switch (function) {
    case DEFINED:
    case UNDEFINED:
        *yes = (k != JINJA_UNDEFINED) == (function == DEFINED);
        return 0;
    case NONE:
        *yes = k == JINJA_NONE;
        return 0;
    case STRING:
        *yes = k == JINJA_STRING;
        return 0;
    case NUMBER:
        *yes = jinja_is_number(v);
        return 0;
    case INTEGER:
        *yes = k == JINJA_INT;
        return 0;
    case FLOAT:
        *yes = k == JINJA_FLOAT;
        return 0;
    case BOOLEAN:
        *yes = k == JINJA_BOOL;
        return 0;
    case TRUE:
    case FALSE:
        *yes = k == JINJA_BOOL && (v->i != 0) == (function == TRUE);
        return 0;
    case MAPPING:
        *yes = k == JINJA_MAP;
        return 0;
    case SEQUENCE: /* as Jinja asks: has it a length and items? */
    case ITERABLE:
        *yes = k == JINJA_LIST || k == JINJA_MAP || k == JINJA_STRING || k == JINJA_UNDEFINED;
        return 0;
    case CALLABLE:
        *yes = k == JINJA_MACRO || k == JINJA_FUNCTION;
        return 0;
    case ODD:
    case EVEN:
        if (k != JINJA_INT)
            return jinja_wrong(r, args, "odd or even", v);
        *yes = (v->i % 2 != 0) == (function == ODD);
        return 0;
    case IS_UPPER:
    case IS_LOWER:
        TRY(jinja_string(r, v, &s));
        TRY(jinja_change_case(r, s, function == IS_UPPER ? JINJA_UPPER : JINJA_LOWER, &other));
        *yes = jinja_equal(&other, v);
        TRY(jinja_change_case(r, s, function == IS_UPPER ? JINJA_LOWER : JINJA_UPPER, &other));
        *yes &= !jinja_equal(&other, v);
        return 0;
    default:
        return compared(r, function, v, args, yes);
    }
}
