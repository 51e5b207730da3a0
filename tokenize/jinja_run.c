/* Statements of a template. */
#include <stdlib.h>

#include "tokenize/jinja_parts.h"

static int statements(struct jinja_run *r, const struct jinja_stmt *s);

static int put(struct jinja_run *r, struct span s)
{
    return r->out->n + s.n > JINJA_TEXT || buf_put_span(r->out, s) < 0 ? jinja_no_memory(r) : 0;
}

/* Sets a name in the innermost scope. */
static int bind(struct jinja_run *r, struct span name, const struct jinja_value *v)
{
    for (size_t i = r->scope; i < r->n; i++)
        if (span_eq(r->v[i].name, name)) {
            r->v[i].value = *v;
            return 0;
        }
    if (mem_grow(&r->v, &r->room, r->n + 1, sizeof *r->v) < 0)
        return jinja_no_memory(r);
    r->v[r->n++] = (struct jinja_binding){name, *v};
    if (r->scope == 0)
        r->top = r->n;
    return 0;
}

/* One name, or several of the items of a list. */
static int bind_all(struct jinja_run *r, const struct jinja_stmt *s, const struct jinja_value *v)
{
    struct jinja_value items;

    if (s->n_name == 1)
        return bind(r, s->name[0].name, v);
    TRY(jinja_items(r, s->line, v, &items));
    if (items.list->n != s->n_name)
        return jinja_error(r, s->line, "%lld items for %d names", (long long)items.list->n, s->n_name);
    for (int i = 0; i < s->n_name; i++)
        TRY(bind(r, s->name[i].name, &items.list->v[i]));
    return 0;
}

/* The text that statements make, as a value. */
static int captured(struct jinja_run *r, const struct jinja_stmt *body, struct jinja_value *v)
{
    struct buf text = {.max = JINJA_TEXT}, *out = r->out;
    int rc;

    r->out = &text;
    r->captures++;
    rc = statements(r, body);
    r->captures--;
    r->out = out;
    if (rc == 0)
        return jinja_take(r, &text, v);
    buf_free(&text);
    return rc;
}

int jinja_call_macro(struct jinja_run *r, const struct jinja_expr *call, const struct jinja_stmt *m, struct jinja_value *v)
{
    size_t scope = r->scope, frame = r->frame, n = r->n, given = n;
    struct jinja_value value;
    int rc = 0, n_args = 0;

    for (int i = 0; i < call->n_arg; i++) /* evaluated where the call stands */
        for (int k = 0; k < m->n_name; k++)
            if (call->arg[i].name.p ? span_eq(call->arg[i].name, m->name[k].name) : k == i)
                n_args++;
    if (n_args != call->n_arg)
        return jinja_error(r, call->line, "the macro '%.*s' takes other arguments", (int)(m->text.n < 60 ? m->text.n : 60),
                           m->text.p);
    for (int i = 0; i < call->n_arg && rc == 0; i++) {
        rc = jinja_eval(r, call->arg[i].expr, &value);
        if (rc == 0 && mem_grow(&r->v, &r->room, r->n + 1, sizeof *r->v) < 0)
            rc = jinja_no_memory(r);
        if (rc == 0) /* under no name that an expression has, until all are there */
            r->v[r->n++] = (struct jinja_binding){span_of(""), value};
    }
    if (rc == 0) {
        for (int i = 0; i < call->n_arg; i++)
            r->v[given + (size_t)i].name = call->arg[i].name.p ? call->arg[i].name : m->name[i].name;
        r->scope = r->frame = given;
    }
    for (int k = 0; k < m->n_name && rc == 0; k++) {
        bool there = false;

        for (int i = 0; i < call->n_arg; i++)
            there |= span_eq(r->v[given + (size_t)i].name, m->name[k].name);
        value = (struct jinja_value){.kind = JINJA_UNDEFINED, .s = m->name[k].name};
        if (!there && m->name[k].expr)
            rc = jinja_eval(r, m->name[k].expr, &value);
        if (!there && rc == 0)
            rc = bind(r, m->name[k].name, &value);
    }
    if (rc == 0)
        rc = captured(r, m->body, v);
    r->scope = scope;
    r->frame = frame;
    r->n = n;
    return rc;
}

static int do_for(struct jinja_run *r, const struct jinja_stmt *s)
{
    size_t scope = r->scope, n = r->n;
    struct jinja_value all, kept, loop;
    struct jinja_loop at = {NULL, 0};
    int rc = 0;

    TRY(jinja_eval(r, s->expr, &all));
    TRY(jinja_items(r, s->line, &all, &kept));
    r->scope = n;
    if (s->where) {
        struct jinja_value some;
        int64_t count = 0;

        rc = jinja_list_new(r, kept.list->n, &some);
        for (int64_t i = 0; rc == 0 && i < kept.list->n; i++) {
            struct jinja_value yes;

            rc = bind_all(r, s, &kept.list->v[i]);
            rc = rc ? rc : jinja_eval(r, s->where, &yes);
            if (rc == 0 && jinja_true(&yes))
                some.list->v[count++] = kept.list->v[i];
            r->n = n;
        }
        if (rc == 0) {
            some.list->n = count;
            kept = some;
        }
    }
    at.of = rc ? NULL : kept.list;
    loop = (struct jinja_value){.kind = JINJA_LOOP, .loop = &at};
    for (; rc == 0 && at.at < at.of->n && !r->breaks; at.at++) {
        r->n = n;
        rc = bind(r, span_of("loop"), &loop);
        rc = rc ? rc : bind_all(r, s, &at.of->v[at.at]);
        rc = rc ? rc : statements(r, s->body);
        r->continues = false;
    }
    r->breaks = false;
    r->n = n;
    if (rc == 0 && at.of->n == 0)
        rc = statements(r, s->other);
    r->n = n;
    r->scope = scope;
    return rc;
}

static int do_set(struct jinja_run *r, const struct jinja_stmt *s)
{
    struct jinja_value v, of;

    if (s->what == DO_SET_BLOCK) {
        TRY(captured(r, s->body, &v));
        return bind_all(r, s, &v);
    }
    TRY(jinja_eval(r, s->expr, &v));
    if (!s->where)
        return bind_all(r, s, &v);
    TRY(jinja_eval(r, s->where->a, &of));
    if (of.kind != JINJA_NAMESPACE)
        return jinja_error(r, s->line, "attributes can be set of namespaces alone, not of a %s", jinja_kind_name(&of));
    return jinja_map_set(r, of.map, s->where->name, &v);
}

static int do_generation(struct jinja_run *r, const struct jinja_stmt *s)
{
    struct jinja_range range = {r->out->n, 0};
    size_t scope = r->scope, n = r->n;

    if (r->captures)
        return jinja_error(r, s->line, "generation within a set is not known");
    r->scope = n;
    TRY(statements(r, s->body));
    r->scope = scope;
    r->n = n;
    range.to = r->out->n;
    return buf_put(r->ranges, &range, sizeof range) < 0 ? jinja_no_memory(r) : 0;
}

static int statement(struct jinja_run *r, const struct jinja_stmt *s)
{
    struct jinja_value v;
    struct span text;

    TRY(jinja_step(r, s->line));
    switch (s->what) {
    case DO_TEXT:
        return put(r, s->text);
    case DO_OUTPUT:
        TRY(jinja_eval(r, s->expr, &v));
        if (v.kind == JINJA_UNDEFINED && r->strict)
            return jinja_undefined(r, s->line, v.s);
        TRY(jinja_string(r, &v, &text));
        return put(r, text);
    case DO_IF:
        TRY(jinja_eval(r, s->expr, &v));
        return statements(r, jinja_true(&v) ? s->body : s->other);
    case DO_FOR:
        return do_for(r, s);
    case DO_SET:
    case DO_SET_BLOCK:
        return do_set(r, s);
    case DO_MACRO:
        v = (struct jinja_value){.kind = JINJA_MACRO, .macro = s};
        return bind(r, s->text, &v);
    case DO_GENERATION:
        return do_generation(r, s);
    case DO_BREAK:
        r->breaks = true;
        return 0;
    default:
        r->continues = true;
        return 0;
    }
}

static int statements(struct jinja_run *r, const struct jinja_stmt *s)
{
    int rc = 0;

    if (++r->levels > 2 * JINJA_LEVELS)
        return err_set(r->e, ERR_LIMIT, "the template: more than %d levels", JINJA_LEVELS);
    for (; s && rc == 0 && !r->breaks && !r->continues; s = s->next)
        rc = statement(r, s);
    r->levels--;
    return rc;
}

int jinja_render(const struct jinja *x, const struct jinja_var *v, int n, const char *date, struct arena *a, struct buf *out,
                 struct buf *ranges, struct err *e)
{
    struct jinja_run r = {.a = a, .out = out, .ranges = ranges, .date = date, .strict = x->strict, .e = e};
    size_t most = a->max;
    int rc = 0;

    a->max = most ? most : 2 * (size_t)JINJA_TEXT;
    for (int i = 0; i < n && rc == 0; i++) {
        struct jinja_value value;

        rc = jinja_of_node(&r, v[i].value, &value);
        rc = rc ? rc : bind(&r, span_of(v[i].name), &value);
    }
    rc = rc ? rc : statements(&r, x->body);
    free(r.v);
    a->max = most;
    return rc;
}
