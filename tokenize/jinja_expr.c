/* Expressions of templates, by recursive descent. */
#include "tokenize/jinja_read.h"

static struct jinja_expr *unary(struct jinja_reader *p, bool filters);

struct jinja_expr *jinja_make(struct jinja_reader *p, enum jinja_op op, struct jinja_expr *a, struct jinja_expr *b)
{
    struct jinja_expr *x = p->rc ? NULL : jinja_room(p, 1, sizeof *x);

    if (x)
        *x = (struct jinja_expr){.op = op, .line = p->line, .a = a, .b = b};
    return x;
}
static struct jinja_expr *literal(struct jinja_reader *p, struct jinja_value v)
{
    struct jinja_expr *x = jinja_make(p, OP_LITERAL, NULL, NULL);

    if (x)
        x->literal = v;
    return x;
}

/* Appends to the arguments of x, or of a statement. */
void jinja_add_arg(struct jinja_reader *p, struct jinja_arg **v, int *n, struct jinja_arg arg)
{
    if (p->rc)
        return;
    if ((*n & (*n - 1)) == 0) { /* it is full at each power of two */
        struct jinja_arg *more = jinja_room(p, *n ? 2 * (size_t)*n : 1, sizeof *more);

        if (!more)
            return;
        if (*n)
            memcpy(more, *v, (size_t)*n * sizeof *more);
        *v = more;
    }
    (*v)[(*n)++] = arg;
}

/* Behind the opening bracket, up to and with the closing one. */
static void arguments(struct jinja_reader *p, struct jinja_expr *x)
{
    while (!p->rc && !jinja_take_sign(p, ")")) {
        struct jinja_arg arg = {{NULL, 0}, NULL, NULL};
        struct jinja_reader before = *p;

        if (p->t.kind == T_NAME) {
            arg.name = jinja_expect_name(p);
            if (!jinja_take_sign(p, "=") && !p->rc) {
                *p = before;
                arg.name = (struct span){NULL, 0};
            }
        }
        if (jinja_is_sign(p, "*") || jinja_is_sign(p, "**"))
            jinja_fail(p, "arguments of a list or a mapping are not known");
        arg.expr = jinja_expression(p);
        jinja_add_arg(p, &x->arg, &x->n_arg, arg);
        if (!jinja_is_sign(p, ")"))
            jinja_expect(p, ",");
    }
    if (x && x->n_arg > JINJA_ARGS)
        jinja_fail(p, "%d arguments", x->n_arg);
}

/* Behind an opening bracket: what stands there, separated by commas, up to and with `close`. */
static struct jinja_expr *list(struct jinja_reader *p, const char *close)
{
    struct jinja_expr *x = jinja_make(p, OP_LIST, NULL, NULL);
    bool comma = false;

    if (!x)
        return NULL;
    while (!p->rc && !jinja_take_sign(p, close)) {
        jinja_add_arg(p, &x->arg, &x->n_arg, (struct jinja_arg){.expr = jinja_expression(p)});
        comma |= jinja_is_sign(p, ",");
        if (!jinja_is_sign(p, close))
            jinja_expect(p, ",");
    }
    x->tuple = *close == ')';
    /* (x) is x, (x,) a tuple */
    return !p->rc && *close == ')' && x->n_arg == 1 && !comma ? x->arg[0].expr : x;
}

static struct jinja_expr *map(struct jinja_reader *p)
{
    struct jinja_expr *x = jinja_make(p, OP_MAP, NULL, NULL);

    if (!x)
        return NULL;
    while (!p->rc && !jinja_take_sign(p, "}")) {
        struct jinja_arg arg = {.key = jinja_expression(p)};

        jinja_expect(p, ":");
        arg.expr = jinja_expression(p);
        jinja_add_arg(p, &x->arg, &x->n_arg, arg);
        if (!jinja_is_sign(p, "}"))
            jinja_expect(p, ",");
    }
    return x;
}

static struct jinja_expr *strings(struct jinja_reader *p)
{
    struct jinja_value v = jinja_text(p->t.text);

    for (jinja_next(p); !p->rc && p->t.kind == T_STRING; jinja_next(p)) {
        char *both = jinja_room(p, v.s.n + p->t.text.n + 1, 1);

        if (!both)
            return NULL;
        if (v.s.n)
            memcpy(both, v.s.p, v.s.n);
        if (p->t.text.n)
            memcpy(both + v.s.n, p->t.text.p, p->t.text.n);
        v.s = (struct span){both, v.s.n + p->t.text.n};
    }
    return literal(p, v);
}

static struct jinja_expr *primary(struct jinja_reader *p)
{
    struct jinja_token t = p->t;
    struct jinja_expr *x;

    if (p->rc)
        return NULL;
    if (t.kind == T_STRING)
        return strings(p);
    if (t.kind == T_INT || t.kind == T_FLOAT) {
        jinja_next(p);
        return literal(p, t.kind == T_INT ? jinja_int(t.i) : jinja_float(t.f));
    }
    if (jinja_take_sign(p, "("))
        return list(p, ")");
    if (jinja_take_sign(p, "["))
        return list(p, "]");
    if (jinja_take_sign(p, "{"))
        return map(p);
    if (t.kind != T_NAME)
        return jinja_unwanted(p, "an expression");
    jinja_next(p);
    if (span_is(t.text, "true") || span_is(t.text, "True") || span_is(t.text, "false") || span_is(t.text, "False"))
        return literal(p, jinja_bool(t.text.p[0] == 't' || t.text.p[0] == 'T'));
    if (span_is(t.text, "none") || span_is(t.text, "None"))
        return literal(p, (struct jinja_value){.kind = JINJA_NONE});
    if ((x = jinja_make(p, OP_NAME, NULL, NULL)))
        x->name = t.text;
    return x;
}

/* Behind '[' up to and with ']'. */
static struct jinja_expr *subscript(struct jinja_reader *p, struct jinja_expr *of)
{
    struct jinja_expr *x = jinja_make(p, OP_SLICE, of, NULL);
    struct jinja_arg part[3] = {{{NULL, 0}, NULL, NULL}, {{NULL, 0}, NULL, NULL}, {{NULL, 0}, NULL, NULL}};
    int n = 0;

    for (; !p->rc && n < 3; n++) {
        if (!jinja_is_sign(p, ":") && !jinja_is_sign(p, "]"))
            part[n].expr = jinja_expression(p);
        if (!jinja_take_sign(p, ":"))
            break;
    }
    jinja_expect(p, "]");
    if (p->rc)
        return NULL;
    if (n == 0) {
        if (!part[0].expr)
            return jinja_fail(p, "nothing between brackets");
        return jinja_make(p, OP_ITEM, of, part[0].expr);
    }
    for (int i = 0; i < 3; i++)
        jinja_add_arg(p, &x->arg, &x->n_arg, part[i]);
    return x;
}

static struct jinja_expr *postfix(struct jinja_reader *p, struct jinja_expr *x)
{
    while (!p->rc) {
        if (jinja_take_sign(p, ".")) {
            if (p->t.kind == T_INT) {
                x = jinja_make(p, OP_ITEM, x, literal(p, jinja_int(p->t.i)));
                jinja_next(p);
            } else if ((x = jinja_make(p, OP_ATTRIBUTE, x, NULL))) {
                x->name = jinja_expect_name(p);
            }
        } else if (jinja_take_sign(p, "[")) {
            x = subscript(p, x);
        } else if (jinja_take_sign(p, "(")) {
            x = jinja_make(p, OP_CALL, x, NULL);
            arguments(p, x);
        } else {
            break;
        }
    }
    return x;
}

/* Behind '|' or 'is'. */
static struct jinja_expr *filter(struct jinja_reader *p, struct jinja_expr *of)
{
    struct jinja_expr *x = jinja_make(p, OP_FILTER, of, NULL);

    if (!x)
        return NULL;
    x->name = jinja_expect_name(p);
    x->filter = jinja_filter_find(x->name);
    if (!p->rc && !x->filter)
        return jinja_fail(p, "the filter '%.*s' is not known", (int)x->name.n, x->name.p);
    if (jinja_take_sign(p, "("))
        arguments(p, x);
    return x;
}

static struct jinja_expr *test(struct jinja_reader *p, struct jinja_expr *of)
{
    struct jinja_expr *x = jinja_make(p, OP_TEST, of, NULL);

    if (!x)
        return NULL;
    x->turned = jinja_take_name(p, "not");
    if (jinja_take_sign(p, "=="))
        x->name = span_of("eq");
    else
        x->name = jinja_expect_name(p);
    x->function = jinja_test_find(x->name);
    if (!p->rc && x->function < 0)
        return jinja_fail(p, "the test '%.*s' is not known", (int)x->name.n, x->name.p);
    if (jinja_take_sign(p, "("))
        arguments(p, x);
    else if (p->t.kind == T_STRING || p->t.kind == T_INT || p->t.kind == T_FLOAT || jinja_is_sign(p, "[") ||
             jinja_is_sign(p, "{") ||
             (p->t.kind == T_NAME && !jinja_is_name(p, "else") && !jinja_is_name(p, "or") && !jinja_is_name(p, "and") &&
              !jinja_is_name(p, "is") && !jinja_is_name(p, "if")))
        jinja_add_arg(p, &x->arg, &x->n_arg, (struct jinja_arg){.expr = postfix(p, primary(p))});
    return x;
}

static struct jinja_expr *unary(struct jinja_reader *p, bool filters)
{
    struct jinja_expr *x;

    if (++p->levels > JINJA_LEVELS)
        return jinja_fail(p, "more than %d levels", JINJA_LEVELS);
    if (jinja_take_sign(p, "-"))
        x = jinja_make(p, OP_NEGATIVE, unary(p, false), NULL);
    else if (jinja_take_sign(p, "+"))
        x = jinja_make(p, OP_POSITIVE, unary(p, false), NULL);
    else
        x = primary(p);
    x = postfix(p, x);
    while (filters && !p->rc) {
        if (jinja_take_sign(p, "|")) {
            x = filter(p, x);
        } else if (jinja_take_name(p, "is")) {
            x = test(p, x);
        } else if (jinja_take_sign(p, "(")) {
            x = jinja_make(p, OP_CALL, x, NULL);
            arguments(p, x);
        } else {
            break;
        }
    }
    p->levels--;
    return x;
}

/* Operators by how tightly they bind; all from the left. */
static const struct operators {
    struct {
        const char *sign;
        enum jinja_op op;
    } v[4];
} operators[] = {
    {{{"+", OP_ADD}, {"-", OP_SUBTRACT}}},
    {{{"~", OP_CONCAT}}},
    {{{"*", OP_MULTIPLY}, {"/", OP_DIVIDE}, {"//", OP_FLOOR}, {"%", OP_MODULO}}},
    {{{"**", OP_POWER}}},
};

static struct jinja_expr *binary(struct jinja_reader *p, size_t level)
{
    struct jinja_expr *x;
    bool more = true;

    if (level == sizeof operators / sizeof *operators)
        return unary(p, true);
    for (x = binary(p, level + 1); more && !p->rc;) {
        more = false;
        for (int i = 0; i < 4 && operators[level].v[i].sign && !more; i++)
            if (jinja_take_sign(p, operators[level].v[i].sign)) {
                x = jinja_make(p, operators[level].v[i].op, x, binary(p, level + 1));
                more = true;
            }
    }
    return x;
}

/* The comparison that stands here, taken; OP_LITERAL: none. */
static enum jinja_op comparison(struct jinja_reader *p)
{
    static const struct {
        const char *sign;
        enum jinja_op op;
    } all[] = {{"==", OP_EQUAL}, {"!=", OP_UNEQUAL}, {"<", OP_LESS}, {"<=", OP_LESS_EQUAL}, {">", OP_MORE},
             {">=", OP_MORE_EQUAL}};
    struct jinja_reader before = *p;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (jinja_take_sign(p, all[i].sign))
            return all[i].op;
    if (jinja_take_name(p, "in"))
        return OP_IN;
    if (jinja_take_name(p, "not") && jinja_take_name(p, "in"))
        return OP_NOT_IN;
    if (!p->rc)
        *p = before;
    return OP_LITERAL;
}

static struct jinja_expr *compared(struct jinja_reader *p)
{
    struct jinja_expr *x = binary(p, 0);
    enum jinja_op op = p->rc ? OP_LITERAL : comparison(p);

    if (op == OP_LITERAL)
        return x;
    x = jinja_make(p, op, x, binary(p, 0));
    if (!p->rc && comparison(p) != OP_LITERAL)
        jinja_fail(p, "a chain of comparisons is not known");
    return x;
}

static struct jinja_expr *negated(struct jinja_reader *p)
{
    struct jinja_expr *x;

    if (!jinja_take_name(p, "not"))
        return compared(p);
    if (++p->levels > JINJA_LEVELS)
        return jinja_fail(p, "more than %d levels", JINJA_LEVELS);
    x = jinja_make(p, OP_NOT, negated(p), NULL);
    p->levels--;
    return x;
}

static struct jinja_expr *all_of(struct jinja_reader *p)
{
    struct jinja_expr *x = negated(p);

    while (jinja_take_name(p, "and"))
        x = jinja_make(p, OP_AND, x, negated(p));
    return x;
}

struct jinja_expr *jinja_any_of(struct jinja_reader *p)
{
    struct jinja_expr *x = all_of(p);

    while (jinja_take_name(p, "or"))
        x = jinja_make(p, OP_OR, x, all_of(p));
    return x;
}

struct jinja_expr *jinja_expression(struct jinja_reader *p)
{
    struct jinja_expr *x;

    if (++p->levels > JINJA_LEVELS)
        return jinja_fail(p, "more than %d levels", JINJA_LEVELS);
    x = jinja_any_of(p);
    while (jinja_take_name(p, "if")) {
        struct jinja_expr *choice = jinja_make(p, OP_IF, jinja_any_of(p), x);

        if (jinja_take_name(p, "else") && choice)
            choice->c = jinja_expression(p);
        x = choice;
    }
    p->levels--;
    return x;
}

/* One expression, or a list of those between commas. */
struct jinja_expr *jinja_expressions(struct jinja_reader *p, struct jinja_expr *(*one)(struct jinja_reader *))
{
    struct jinja_expr *x = one(p), *all;

    if (p->rc || !jinja_is_sign(p, ","))
        return x;
    if ((all = jinja_make(p, OP_LIST, NULL, NULL)))
        all->tuple = true;
    for (; all && !p->rc; x = one(p)) {
        jinja_add_arg(p, &all->arg, &all->n_arg, (struct jinja_arg){.expr = x});
        if (!jinja_take_sign(p, ",") || p->t.kind == T_CLOSE)
            break;
    }
    return all;
}

