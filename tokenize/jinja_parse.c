/* Templates to trees. */
#include <stdlib.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "tokenize/jinja_read.h"

static struct jinja_stmt *statements(struct jinja_reader *p, const char *const *ends);

static struct jinja_stmt *statement(struct jinja_reader *p, enum jinja_what what)
{
    struct jinja_stmt *s = p->rc ? NULL : jinja_room(p, 1, sizeof *s);

    if (s)
        *s = (struct jinja_stmt){.what = what, .line = p->line};
    return s;
}

static void skip_space(struct jinja_reader *p)
{
    for (; p->p < p->end && ascii_is_space(*p->p); p->p++)
        p->line += *p->p == '\n';
}

/* The tag's end, and the white space that goes with it. */
static void close_tag(struct jinja_reader *p)
{
    const char *from = p->p;

    if (p->rc)
        return;
    if (p->t.kind != T_CLOSE) {
        jinja_unwanted(p, "the end of the tag");
        return;
    }
    p->p += p->t.text.n;
    if (p->t.text.p[0] == '-') {
        skip_space(p);
    } else if (p->block && p->t.text.n == 2 && !p->x->strict && p->p < p->end && *p->p == '\n') {
        p->p++;
        p->line++;
    }
    p->line_start = p->p > from && p->p[-1] == '\n';
}

/* Names between commas. */
static void names(struct jinja_reader *p, struct jinja_stmt *s)
{
    bool bracket = jinja_take_sign(p, "(");

    do
        jinja_add_arg(p, &s->name, &s->n_name, (struct jinja_arg){.name = jinja_expect_name(p)});
    while (jinja_take_sign(p, ","));
    if (bracket)
        jinja_expect(p, ")");
}

static struct jinja_stmt *do_if(struct jinja_reader *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif", NULL};
    struct jinja_stmt *s = statement(p, DO_IF);

    if (!s)
        return NULL;
    s->expr = jinja_expressions(p, jinja_expression);
    close_tag(p);
    s->body = statements(p, ends);
    if (jinja_take_name(p, "elif"))
        s->other = do_if(p);
    else if (jinja_take_name(p, "else")) {
        close_tag(p);
        s->other = statements(p, last);
        jinja_take_name(p, "endif");
    } else {
        jinja_take_name(p, "endif");
    }
    return s; /* at the end of the tag of endif, whose elif it may be */
}

static struct jinja_stmt *do_for(struct jinja_reader *p)
{
    static const char *const ends[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
    struct jinja_stmt *s = statement(p, DO_FOR);

    if (!s)
        return NULL;
    names(p, s);
    if (!jinja_take_name(p, "in"))
        jinja_fail(p, "'in' is wanted");
    s->expr = jinja_expressions(p, jinja_any_of);
    if (jinja_take_name(p, "if"))
        s->where = jinja_expression(p);
    if (jinja_is_name(p, "recursive"))
        jinja_fail(p, "recursive loops are not known");
    close_tag(p);
    p->loops++;
    s->body = statements(p, ends);
    p->loops--;
    if (jinja_take_name(p, "else")) {
        close_tag(p);
        s->other = statements(p, last);
    }
    jinja_take_name(p, "endfor");
    return s;
}

static struct jinja_stmt *do_set(struct jinja_reader *p)
{
    static const char *const ends[] = {"endset", NULL};
    struct jinja_stmt *s = statement(p, DO_SET);

    if (!s)
        return NULL;
    names(p, s);
    if (s->n_name == 1 && jinja_take_sign(p, ".")) {
        struct jinja_expr *of = jinja_make(p, OP_NAME, NULL, NULL);

        if (of)
            of->name = s->name[0].name;
        if ((s->where = jinja_make(p, OP_ATTRIBUTE, of, NULL)))
            s->where->name = jinja_expect_name(p);
    }
    if (jinja_take_sign(p, "=")) {
        s->expr = jinja_expressions(p, jinja_expression);
        return s;
    }
    if (s->n_name != 1 || s->where || p->t.kind != T_CLOSE)
        return jinja_fail(p, "'=' is wanted");
    s->what = DO_SET_BLOCK;
    close_tag(p);
    s->body = statements(p, ends);
    jinja_take_name(p, "endset");
    return s;
}

static struct jinja_stmt *do_macro(struct jinja_reader *p)
{
    static const char *const ends[] = {"endmacro", NULL};
    struct jinja_stmt *s = statement(p, DO_MACRO);
    int loops = p->loops;

    if (!s)
        return NULL;
    s->text = jinja_expect_name(p);
    jinja_expect(p, "(");
    while (!p->rc && !jinja_take_sign(p, ")")) {
        struct jinja_arg arg = {.name = jinja_expect_name(p)};

        if (jinja_take_sign(p, "="))
            arg.expr = jinja_expression(p);
        jinja_add_arg(p, &s->name, &s->n_name, arg);
        if (!jinja_is_sign(p, ")"))
            jinja_expect(p, ",");
    }
    if (s->n_name > JINJA_ARGS)
        jinja_fail(p, "%d parameters", s->n_name);
    close_tag(p);
    p->loops = 0;
    p->macros++;
    s->body = statements(p, ends);
    p->macros--;
    p->loops = loops;
    jinja_take_name(p, "endmacro");
    return s;
}

static struct jinja_stmt *do_generation(struct jinja_reader *p)
{
    static const char *const ends[] = {"endgeneration", NULL};
    struct jinja_stmt *s = statement(p, DO_GENERATION);

    if (!s)
        return NULL;
    if (p->macros)
        return jinja_fail(p, "generation within a macro is not known");
    p->x->marks = true;
    close_tag(p);
    s->body = statements(p, ends);
    jinja_take_name(p, "endgeneration");
    return s;
}

/* Behind "{%", at its first name. */
static struct jinja_stmt *block(struct jinja_reader *p)
{
    struct span name = jinja_expect_name(p);
    struct jinja_stmt *s;

    if (p->rc)
        return NULL;
    if (++p->levels > JINJA_LEVELS)
        return jinja_fail(p, "more than %d levels", JINJA_LEVELS);
    if (span_is(name, "if"))
        s = do_if(p);
    else if (span_is(name, "for"))
        s = do_for(p);
    else if (span_is(name, "set"))
        s = do_set(p);
    else if (span_is(name, "macro"))
        s = do_macro(p);
    else if (span_is(name, "generation"))
        s = do_generation(p);
    else if ((span_is(name, "break") || span_is(name, "continue")) && p->loops)
        s = statement(p, name.p[0] == 'b' ? DO_BREAK : DO_CONTINUE);
    else
        return jinja_fail(p, "'%.*s' is not known here", (int)(name.n < 40 ? name.n : 40), name.p);
    close_tag(p);
    p->levels--;
    return s;
}

/* The text up to the next tag, without the white space that the tag takes, or NULL; the tag's sign of opening is passed by,
 * and *tag is its second byte, 0 at the end. */
static struct jinja_stmt *text(struct jinja_reader *p, char *tag)
{
    const char *from = p->p, *at = p->p, *to;
    struct jinja_stmt *s;

    for (; at + 1 < p->end && !(at[0] == '{' && (at[1] == '{' || at[1] == '%' || at[1] == '#')); at++)
        p->line += *at == '\n';
    if (at + 1 >= p->end) {
        *tag = 0;
        p->p = to = p->end;
    } else {
        char sign = at + 2 < p->end ? at[2] : 0;

        *tag = at[1];
        to = at;
        if (sign == '-') {
            while (to > from && ascii_is_space(to[-1]))
                to--;
        } else if (*tag != '{' && sign != '+' && !p->x->strict) {
            const char *line = at;

            while (line > from && ascii_is_space(line[-1]) && line[-1] != '\n')
                line--;
            if (line > from ? line[-1] == '\n' : p->line_start)
                to = line;
        }
        p->p = at + 2 + (sign == '-' || (sign == '+' && *tag != '{'));
    }
    if (to == from)
        return NULL;
    if ((s = statement(p, DO_TEXT)))
        s->text = (struct span){from, (size_t)(to - from)};
    return s;
}

static void comment(struct jinja_reader *p)
{
    while (p->p + 1 < p->end && !(p->p[0] == '#' && p->p[1] == '}'))
        p->line += *p->p++ == '\n';
    if (p->p + 1 >= p->end) {
        jinja_fail(p, "a comment without an end");
        return;
    }
    p->t = (struct jinja_token){.kind = T_CLOSE, .text = {p->p, 2}};
    if (p->p[-1] == '-' || p->p[-1] == '+')
        p->t.text = (struct span){--p->p, 3};
    p->block = true;
    close_tag(p);
}

/* Up to a block whose name is one of ends, which is the next token then, or NULL: to the end. */
static struct jinja_stmt *statements(struct jinja_reader *p, const char *const *ends)
{
    struct jinja_stmt *first = NULL, **last = &first;
    char tag = 0;

    while (!p->rc) {
        struct jinja_stmt *s = text(p, &tag);

        if (s) {
            *last = s;
            last = &s->next;
        }
        if (!tag)
            break;
        if (tag == '#') {
            comment(p);
            continue;
        }
        p->block = tag == '%';
        p->brackets = 0;
        jinja_next(p);
        for (int i = 0; p->block && ends && ends[i]; i++)
            if (jinja_is_name(p, ends[i]))
                return first;
        if (p->block) {
            s = block(p);
        } else if ((s = statement(p, DO_OUTPUT))) {
            s->expr = jinja_expressions(p, jinja_expression);
            close_tag(p);
        }
        if (s) {
            *last = s;
            last = &s->next;
        }
    }
    if (ends && !p->rc)
        jinja_fail(p, "it ends without an '%s'", ends[0]);
    return first;
}

/* A copy with lines that end in \n, a chat's last without. */
static struct span lines_of(struct jinja_reader *p, struct span text)
{
    char *to = jinja_room(p, text.n + 1, 1);
    size_t n = 0;

    for (size_t i = 0; to && i < text.n; i++)
        if (text.p[i] != '\r')
            to[n++] = text.p[i];
        else if (i + 1 == text.n || text.p[i + 1] != '\n')
            to[n++] = '\n';
    n -= n && to[n - 1] == '\n' && !p->x->strict;
    return (struct span){to, n};
}

int jinja_new(struct jinja **out, struct span text, enum jinja_dialect dialect, struct err *e)
{
    struct jinja *x = *out = calloc(1, sizeof *x);
    struct jinja_reader p = {.x = x, .line = 1, .line_start = true, .e = e};
    struct span s;

    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory for a template");
    if (!utf8_valid(text))
        p.rc = err_set(e, ERR_FORMAT, "the template is no UTF-8");
    x->strict = dialect == JINJA_TASK;
    s = lines_of(&p, text);
    p.p = s.p;
    p.end = s.p + s.n;
    if (p.rc == 0)
        x->body = statements(&p, NULL);
    if (p.rc < 0) {
        jinja_free(x);
        *out = NULL;
    }
    return p.rc;
}

void jinja_free(struct jinja *x)
{
    if (x)
        arena_free(&x->arena);
    free(x);
}

bool jinja_marks(const struct jinja *x) { return x->marks; }
