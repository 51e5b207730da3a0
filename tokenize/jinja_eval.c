/* What a template does. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tokenize/jinja_parts.h"

int jinja_error(struct jinja_run *r, int line, const char *fmt, ...)
{
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return line ? err_set(r->e, ERR_FORMAT, "line %d of the template: %s", line, text)
                : err_set(r->e, ERR_FORMAT, "the template: %s", text);
}

int jinja_no_memory(struct jinja_run *r)
{
    return mem_was_short() ? err_set(r->e, ERR_NOMEM, "out of memory for a template")
                           : err_set(r->e, ERR_LIMIT, "the template makes more than %d MiB", JINJA_TEXT >> 20);
}

int jinja_step(struct jinja_run *r, int line)
{
    return ++r->steps <= JINJA_STEPS ? 0
                                     : err_set(r->e, ERR_LIMIT, "line %d of the template: more than %d steps", line, JINJA_STEPS);
}

/* ---- names ---- */

static struct jinja_value *bound(struct jinja_run *r, struct span name)
{
    for (size_t i = r->n; i > r->frame; i--)
        if (span_eq(r->v[i - 1].name, name))
            return &r->v[i - 1].value;
    for (size_t i = r->frame ? r->top : 0; i > 0; i--)
        if (span_eq(r->v[i - 1].name, name))
            return &r->v[i - 1].value;
    return NULL;
}

static int name_value(struct jinja_run *r, const struct jinja_expr *x, struct jinja_value *v)
{
    const struct jinja_value *there = bound(r, x->name);
    int function = there ? -1 : jinja_function_find(x->name);

    *v = (struct jinja_value){.kind = JINJA_UNDEFINED, .s = x->name};
    if (there)
        *v = *there;
    else if (function >= 0 && (r->date || !span_is(x->name, "strftime_now")))
        *v = (struct jinja_value){.kind = JINJA_FUNCTION, .i = function};
    return 0;
}

/* ---- attributes and items ---- */

int jinja_undefined(struct jinja_run *r, int line, struct span name)
{
    return jinja_error(r, line, "'%.*s' is undefined", (int)(name.n < 100 ? name.n : 100), name.p ? name.p : "");
}

static struct jinja_value loop_value(const struct jinja_loop *l, struct span name)
{
    const int64_t at = l->at, n = l->of->n;

    if (span_is(name, "index"))
        return jinja_int(at + 1);
    if (span_is(name, "index0"))
        return jinja_int(at);
    if (span_is(name, "revindex"))
        return jinja_int(n - at);
    if (span_is(name, "revindex0"))
        return jinja_int(n - at - 1);
    if (span_is(name, "first"))
        return jinja_bool(at == 0);
    if (span_is(name, "last"))
        return jinja_bool(at == n - 1);
    if (span_is(name, "length"))
        return jinja_int(n);
    if (span_is(name, "previtem") && at > 0)
        return l->of->v[at - 1];
    if (span_is(name, "nextitem") && at + 1 < n)
        return l->of->v[at + 1];
    return (struct jinja_value){.kind = JINJA_UNDEFINED, .s = name};
}

static int attribute(struct jinja_run *r, int line, const struct jinja_value *of, struct span name, struct jinja_value *v)
{
    const struct jinja_value *there = of->kind == JINJA_MAP || of->kind == JINJA_NAMESPACE ? jinja_map_get(of->map, name) : NULL;

    if (of->kind == JINJA_UNDEFINED)
        return jinja_undefined(r, line, of->s);
    *v = there ? *there : (struct jinja_value){.kind = JINJA_UNDEFINED, .s = name};
    if (of->kind == JINJA_LOOP)
        *v = loop_value(of->loop, name);
    return 0;
}

static int item(struct jinja_run *r, int line, const struct jinja_value *of, const struct jinja_value *at, struct jinja_value *v)
{
    int64_t n = of->kind == JINJA_LIST ? of->list->n : of->kind == JINJA_STRING ? jinja_characters(of->s) : 0, i;

    if (of->kind == JINJA_UNDEFINED)
        return jinja_undefined(r, line, of->s);
    if (at->kind == JINJA_STRING)
        return attribute(r, line, of, at->s, v);
    *v = (struct jinja_value){.kind = JINJA_UNDEFINED, .s = span_of("an item")};
    if (at->kind != JINJA_INT && at->kind != JINJA_BOOL)
        return 0;
    i = at->i < 0 ? at->i + n : at->i;
    if (i < 0 || i >= n)
        return 0;
    if (of->kind == JINJA_LIST) {
        *v = of->list->v[i];
    } else {
        size_t from = jinja_character(of->s, i);
        struct span rest = {of->s.p + from, of->s.n - from};

        *v = jinja_text((struct span){rest.p, jinja_character(rest, 1)});
    }
    return 0;
}

/* A bound of a slice: absent, or a number, cut to -1 .. n as Python does. */
static int slice_bound(struct jinja_run *r, const struct jinja_expr *x, int64_t n, int64_t step, int64_t absent, int64_t *at)
{
    struct jinja_value v = {.kind = JINJA_NONE};
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;

    *at = absent;
    if (x)
        TRY(jinja_eval(r, x, &v));
    if (v.kind == JINJA_NONE)
        return 0;
    if (v.kind != JINJA_INT)
        return jinja_error(r, x->line, "a slice by a %s", jinja_kind_name(&v));
    *at = v.i < 0 ? v.i + n : v.i;
    *at = *at < low ? low : *at > high ? high : *at;
    return 0;
}

static int slice(struct jinja_run *r, const struct jinja_expr *x, const struct jinja_value *of, struct jinja_value *v)
{
    struct jinja_value step = {.kind = JINJA_NONE}, items;
    struct buf b = {.max = JINJA_TEXT};
    int64_t n, from, to, by = 1, count;

    if (of->kind != JINJA_LIST && of->kind != JINJA_STRING)
        return of->kind == JINJA_UNDEFINED ? jinja_undefined(r, x->line, of->s)
                                           : jinja_error(r, x->line, "a slice of a %s", jinja_kind_name(of));
    if (x->arg[2].expr)
        TRY(jinja_eval(r, x->arg[2].expr, &step));
    if (step.kind == JINJA_INT)
        by = step.i;
    if ((step.kind != JINJA_NONE && step.kind != JINJA_INT) || by == 0 || by < -INT32_MAX || by > INT32_MAX)
        return jinja_error(r, x->line, "a slice by such steps");
    TRY(jinja_items(r, x->line, of, &items));
    n = items.list->n;
    TRY(slice_bound(r, x->arg[0].expr, n, by, by < 0 ? n - 1 : 0, &from));
    TRY(slice_bound(r, x->arg[1].expr, n, by, by < 0 ? -1 : n, &to));
    count = jinja_numbers(from, to, by);
    if (of->kind == JINJA_STRING) {
        for (int64_t i = 0; i < count; i++)
            buf_put_span(&b, items.list->v[from + i * by].s);
        return jinja_take(r, &b, v);
    }
    TRY(jinja_list_new(r, count, v));
    for (int64_t i = 0; i < count; i++)
        v->list->v[i] = items.list->v[from + i * by];
    return 0;
}

/* ---- operators ---- */

static int overflow(struct jinja_run *r, int line) { return jinja_error(r, line, "a number beyond 64 bits"); }

static int whole(struct jinja_run *r, const struct jinja_expr *x, int64_t a, int64_t b, struct jinja_value *v)
{
    int64_t c = 0, rest;
    bool lost = false;

    if ((x->op == OP_FLOOR || x->op == OP_MODULO) && (b == 0 || (b == -1 && a == INT64_MIN)))
        return b ? overflow(r, x->line) : jinja_error(r, x->line, "a division by zero");
    if (x->op == OP_ADD)
        lost = __builtin_add_overflow(a, b, &c);
    else if (x->op == OP_SUBTRACT)
        lost = __builtin_sub_overflow(a, b, &c);
    else if (x->op == OP_MULTIPLY)
        lost = __builtin_mul_overflow(a, b, &c);
    else if (x->op == OP_POWER)
        for (c = 1; b > 0 && !lost; b--) {
            TRY(jinja_step(r, x->line));
            lost = __builtin_mul_overflow(c, a, &c);
        }
    else {
        rest = a % b;
        rest += rest && (rest < 0) != (b < 0) ? b : 0;
        c = x->op == OP_MODULO ? rest : (a - rest) / b;
    }
    *v = jinja_int(c);
    return lost ? overflow(r, x->line) : 0;
}

static int arithmetic(struct jinja_run *r, const struct jinja_expr *x, const struct jinja_value *a, const struct jinja_value *b,
                      struct jinja_value *v)
{
    double p = jinja_number(a), q = jinja_number(b);

    if (a->kind != JINJA_FLOAT && b->kind != JINJA_FLOAT && x->op != OP_DIVIDE && !(x->op == OP_POWER && b->i < 0))
        return whole(r, x, a->i, b->i, v);
    if ((x->op == OP_DIVIDE || x->op == OP_FLOOR || x->op == OP_MODULO) && q == 0)
        return jinja_error(r, x->line, "a division by zero");
    *v = jinja_float(x->op == OP_ADD ? p + q : x->op == OP_SUBTRACT ? p - q : x->op == OP_MULTIPLY ? p * q
                     : x->op == OP_DIVIDE ? p / q : x->op == OP_FLOOR ? floor(p / q) : x->op == OP_MODULO ? p - q * floor(p / q)
                     : pow(p, q));
    return 0;
}

static int joined(struct jinja_run *r, struct span a, struct span b, struct jinja_value *v)
{
    struct buf both = {.max = JINJA_TEXT};

    buf_put_span(&both, a);
    buf_put_span(&both, b);
    if (both.n != a.n + b.n)
        both.failed = both.failed ? both.failed : ERR_LIMIT;
    return jinja_take(r, &both, v);
}

static int binary(struct jinja_run *r, const struct jinja_expr *x, const struct jinja_value *a, const struct jinja_value *b,
                  struct jinja_value *v)
{
    if (x->op == OP_CONCAT) {
        const struct jinja_value *none = a->kind == JINJA_UNDEFINED ? a : b;
        struct span s, t;

        if (none->kind == JINJA_UNDEFINED && r->strict)
            return jinja_undefined(r, x->line, none->s);
        TRY(jinja_string(r, a, &s));
        TRY(jinja_string(r, b, &t));
        return joined(r, s, t, v);
    }
    if (a->kind == JINJA_UNDEFINED || b->kind == JINJA_UNDEFINED)
        return jinja_undefined(r, x->line, a->kind == JINJA_UNDEFINED ? a->s : b->s);
    if (jinja_is_number(a) && jinja_is_number(b))
        return arithmetic(r, x, a, b, v);
    if (x->op == OP_ADD && a->kind == JINJA_STRING && b->kind == JINJA_STRING)
        return joined(r, a->s, b->s, v);
    if (x->op == OP_ADD && a->kind == JINJA_LIST && b->kind == JINJA_LIST && a->list->tuple == b->list->tuple) {
        TRY(jinja_list_new(r, a->list->n + b->list->n, v));
        v->list->tuple = a->list->tuple;
        memcpy(v->list->v, a->list->v, (size_t)a->list->n * sizeof *v->list->v);
        memcpy(v->list->v + a->list->n, b->list->v, (size_t)b->list->n * sizeof *v->list->v);
        return 0;
    }
    if (x->op == OP_MULTIPLY && a->kind == JINJA_STRING && b->kind == JINJA_INT) {
        struct buf many = {.max = JINJA_TEXT};

        if (b->i > 0 && a->s.n > (size_t)JINJA_TEXT / (size_t)b->i)
            return jinja_no_memory(r);
        for (int64_t i = 0; i < b->i && a->s.n; i++)
            buf_put_span(&many, a->s);
        return jinja_take(r, &many, v);
    }
    return jinja_error(r, x->line, "an operator between a %s and a %s", jinja_kind_name(a), jinja_kind_name(b));
}

static int contains(struct jinja_run *r, int line, const struct jinja_value *in, const struct jinja_value *v, bool *yes)
{
    *yes = false;
    if (in->kind == JINJA_STRING && v->kind == JINJA_STRING)
        *yes = !v->s.n || (in->s.n && memmem(in->s.p, in->s.n, v->s.p, v->s.n));
    else if (in->kind == JINJA_MAP)
        *yes = v->kind == JINJA_STRING && jinja_map_get(in->map, v->s);
    else if (in->kind == JINJA_LIST)
        for (int64_t i = 0; i < in->list->n && !*yes; i++)
            *yes = jinja_equal(&in->list->v[i], v);
    else if (in->kind != JINJA_UNDEFINED)
        return jinja_error(r, line, "'in' of a %s and a %s", jinja_kind_name(v), jinja_kind_name(in));
    return 0;
}

static int compared(struct jinja_run *r, const struct jinja_expr *x, const struct jinja_value *a, const struct jinja_value *b,
                    struct jinja_value *v)
{
    bool yes;
    int order;

    if (x->op == OP_EQUAL || x->op == OP_UNEQUAL) {
        *v = jinja_bool(jinja_equal(a, b) == (x->op == OP_EQUAL));
    } else if (x->op == OP_IN || x->op == OP_NOT_IN) {
        TRY(contains(r, x->line, b, a, &yes));
        *v = jinja_bool(yes == (x->op == OP_IN));
    } else {
        if (a->kind == JINJA_UNDEFINED || b->kind == JINJA_UNDEFINED)
            return jinja_undefined(r, x->line, a->kind == JINJA_UNDEFINED ? a->s : b->s);
        TRY(jinja_compare(r, x->line, a, b, &order));
        *v = jinja_bool(x->op == OP_LESS         ? order < 0
                        : x->op == OP_LESS_EQUAL ? order <= 0
                        : x->op == OP_MORE       ? order > 0
                                                 : order >= 0);
    }
    return 0;
}

/* ---- expressions ---- */

const struct jinja_value *jinja_arg(const struct jinja_args *x, int k, const char *name)
{
    if (k < x->n && !x->name[k].p)
        return &x->v[k];
    for (int i = 0; name && i < x->n; i++)
        if (x->name[i].p && span_is(x->name[i], name))
            return &x->v[i];
    return NULL;
}

static int arguments(struct jinja_run *r, const struct jinja_expr *x, struct jinja_args *to)
{
    *to = (struct jinja_args){.n = x->n_arg, .line = x->line};
    for (int i = 0; i < x->n_arg; i++) {
        to->name[i] = x->arg[i].name;
        TRY(jinja_eval(r, x->arg[i].expr, &to->v[i]));
    }
    return 0;
}

static int call(struct jinja_run *r, const struct jinja_expr *x, struct jinja_value *v)
{
    const struct jinja_expr *f = x->a;
    struct jinja_value of;
    struct jinja_args args;
    int rc;

    if (f->op == OP_ATTRIBUTE) {
        struct jinja_value self;

        TRY(jinja_eval(r, f->a, &self));
        if (self.kind == JINJA_UNDEFINED)
            return jinja_undefined(r, x->line, self.s);
        TRY(attribute(r, x->line, &self, f->name, &of));
        if (of.kind != JINJA_MACRO && of.kind != JINJA_FUNCTION) {
            TRY(arguments(r, x, &args));
            rc = jinja_method(r, &self, f->name, &args, v);
            return rc ? (rc < 0 ? rc : 0)
                      : jinja_error(r, x->line, "a %s has no method '%.*s', or it is not known", jinja_kind_name(&self),
                                    (int)(f->name.n < 60 ? f->name.n : 60), f->name.p);
        }
    } else {
        TRY(jinja_eval(r, f, &of));
    }
    if (of.kind == JINJA_MACRO)
        return jinja_call_macro(r, x, of.macro, v);
    if (of.kind == JINJA_UNDEFINED)
        return f->op == OP_NAME && span_is(f->name, "strftime_now")
                   ? jinja_error(r, x->line, "strftime_now: --chat-date says which day that is")
                   : jinja_undefined(r, x->line, of.s);
    if (of.kind != JINJA_FUNCTION)
        return jinja_error(r, x->line, "a %s cannot be called", jinja_kind_name(&of));
    TRY(arguments(r, x, &args));
    return jinja_function(r, (int)of.i, &args, v);
}

static int unary(struct jinja_run *r, const struct jinja_expr *x, struct jinja_value *v)
{
    struct jinja_value a;

    TRY(jinja_eval(r, x->a, &a));
    if (x->op == OP_NOT) {
        *v = jinja_bool(!jinja_true(&a));
        return 0;
    }
    if (!jinja_is_number(&a))
        return jinja_error(r, x->line, "the sign of a %s", jinja_kind_name(&a));
    if (a.kind == JINJA_FLOAT)
        *v = jinja_float(x->op == OP_NEGATIVE ? -a.f : a.f);
    else if (x->op == OP_NEGATIVE && a.i == INT64_MIN)
        return overflow(r, x->line);
    else
        *v = jinja_int(x->op == OP_NEGATIVE ? -a.i : a.i);
    return 0;
}

static int list_or_map(struct jinja_run *r, const struct jinja_expr *x, struct jinja_value *v)
{
    if (x->op == OP_LIST) {
        TRY(jinja_list_new(r, x->n_arg, v));
        v->list->tuple = x->tuple;
        for (int i = 0; i < x->n_arg; i++)
            TRY(jinja_eval(r, x->arg[i].expr, &v->list->v[i]));
        return 0;
    }
    TRY(jinja_map_new(r, 0, v));
    for (int i = 0; i < x->n_arg; i++) {
        struct jinja_value key, value;

        TRY(jinja_eval(r, x->arg[i].key, &key));
        TRY(jinja_eval(r, x->arg[i].expr, &value));
        if (key.kind != JINJA_STRING)
            return jinja_error(r, x->line, "a key that is a %s is not known", jinja_kind_name(&key));
        TRY(jinja_map_set(r, v->map, key.s, &value));
    }
    return 0;
}

/* A filter or a test of one that is undefined may say what is to be there. */
static int filtered(struct jinja_run *r, const struct jinja_expr *x, struct jinja_value *v)
{
    struct jinja_value of;
    struct jinja_args args;
    bool yes;

    TRY(jinja_eval(r, x->a, &of));
    TRY(arguments(r, x, &args));
    if (x->op == OP_FILTER)
        return x->filter(r, &of, &args, v);
    TRY(jinja_test(r, x->function, &of, &args, &yes));
    *v = jinja_bool(yes != x->turned);
    return 0;
}

static int eval(struct jinja_run *r, const struct jinja_expr *x, struct jinja_value *v)
{
    struct jinja_value a, b;

    switch (x->op) {
    case OP_LITERAL:
        *v = x->literal;
        return 0;
    case OP_NAME:
        return name_value(r, x, v);
    case OP_LIST:
    case OP_MAP:
        return list_or_map(r, x, v);
    case OP_NOT:
    case OP_NEGATIVE:
    case OP_POSITIVE:
        return unary(r, x, v);
    case OP_AND:
    case OP_OR:
        TRY(jinja_eval(r, x->a, v));
        return jinja_true(v) == (x->op == OP_OR) ? 0 : jinja_eval(r, x->b, v);
    case OP_IF:
        TRY(jinja_eval(r, x->a, &a));
        if (jinja_true(&a))
            return jinja_eval(r, x->b, v);
        *v = (struct jinja_value){.kind = JINJA_UNDEFINED, .s = span_of("the other case")};
        return x->c ? jinja_eval(r, x->c, v) : 0;
    case OP_ATTRIBUTE:
        TRY(jinja_eval(r, x->a, &a));
        return attribute(r, x->line, &a, x->name, v);
    case OP_ITEM:
        TRY(jinja_eval(r, x->a, &a));
        TRY(jinja_eval(r, x->b, &b));
        return item(r, x->line, &a, &b, v);
    case OP_SLICE:
        TRY(jinja_eval(r, x->a, &a));
        return slice(r, x, &a, v);
    case OP_CALL:
        return call(r, x, v);
    case OP_FILTER:
    case OP_TEST:
        return filtered(r, x, v);
    default:
        TRY(jinja_eval(r, x->a, &a));
        TRY(jinja_eval(r, x->b, &b));
        return x->op >= OP_EQUAL && x->op <= OP_NOT_IN ? compared(r, x, &a, &b, v) : binary(r, x, &a, &b, v);
    }
}

int jinja_eval(struct jinja_run *r, const struct jinja_expr *x, struct jinja_value *v)
{
    int rc;

    TRY(jinja_step(r, x->line));
    if (++r->levels > 2 * JINJA_LEVELS)
        return err_set(r->e, ERR_LIMIT, "line %d of the template: more than %d levels", x->line, JINJA_LEVELS);
    rc = eval(r, x, v);
    r->levels--;
    return rc;
}
