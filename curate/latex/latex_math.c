/* Formulas: copied as LaTeX, with the document's own macros expanded. */
#include "base/ascii.h"
#include "curate/latex/latex_engine.h"
#include "curate/latex/latex_names.h"

int latex_math_begin(struct latex_worker *w, int kind, struct span env)
{
    w->math = kind;
    w->math_braces = w->math_nest = 0;
    w->math_env = env;
    w->math_word = false;
    buf_clear(&w->m);
    return 0;
}

/* Lines of an environment, a formula's line on each. */
static int put_environment(struct latex_worker *w, struct span m)
{
    struct buf b = {0};
    struct span name = w->math_env;
    int rc = buf_printf(&b, "\\begin{%.*s}", (int)name.n, name.p);

    if (rc == 0 && m.n && m.p[0] != '{' && m.p[0] != '[')
        rc = buf_putc(&b, '\n');
    if (rc == 0)
        rc = buf_put_span(&b, m);
    if (rc == 0)
        rc = buf_printf(&b, "\n\\end{%.*s}", (int)name.n, name.p);
    if (rc == 0)
        rc = latex_out_lines(w->out, buf_span(&b), false);
    buf_free(&b);
    return rc;
}

int latex_math_end(struct latex_worker *w)
{
    struct span m = latex_trim(buf_span(&w->m));
    int kind = w->math;

    w->math = 0;
    if (!kind || !m.n || w->conf.math == LATEX_MATH_NONE || w->author_mode)
        return 0;
    if (m.n && m.p[m.n - 1] == '\\') /* "\ " at the end lost its space */
        m.n += m.p + m.n < w->m.p + w->m.n;
    if (kind == 3)
        return put_environment(w, m);
    if (kind == 2) {
        latex_out_break(w->out, 1);
        TRY(latex_out_text(w->out, "$$", 2));
        TRY(latex_out_text(w->out, m.p, m.n));
        TRY(latex_out_text(w->out, "$$", 2));
        latex_out_break(w->out, 1);
        return 0;
    }
    TRY(latex_out_text(w->out, "$", 1));
    TRY(latex_out_text(w->out, m.p, m.n));
    return latex_out_text(w->out, "$", 1);
}

static int put_raw(struct latex_worker *w, const char *p, size_t n)
{
    if (w->math_word && n && ascii_is_letter(*p))
        TRY(buf_putc(&w->m, ' '));
    w->math_word = false;
    return buf_put(&w->m, p, n);
}

static int put_space(struct latex_worker *w)
{
    w->math_word = false;
    if (w->m.n && w->m.p[w->m.n - 1] != ' ' && w->m.p[w->m.n - 1] != '\n')
        return buf_putc(&w->m, ' ');
    return 0;
}

static int put_command(struct latex_worker *w, struct span name)
{
    TRY(buf_putc(&w->m, '\\'));
    TRY(buf_put_span(&w->m, name));
    w->math_word = ascii_is_letter(name.p[name.n - 1]) || name.p[name.n - 1] == '@';
    return 0;
}

/* Environments of several numbered lines. */
static bool many_numbers(struct span env)
{
    return env.n > 2 && env.p[env.n - 1] != '*' &&
           (memcmp(env.p, "al", 2) == 0 || memcmp(env.p, "ga", 2) == 0 || memcmp(env.p, "eqn", 3) == 0 ||
            memcmp(env.p, "fl", 2) == 0 || memcmp(env.p, "IEE", 3) == 0);
}

static int end_line(struct latex_worker *w)
{
    TRY(put_command(w, span_of("\\")));
    if (w->math == 3 && w->math_nest == 0) {
        if (many_numbers(w->math_env))
            TRY(latex_step(w, span_of("equation"), 1));
        if (latex_more(w) && *latex_top(w)->p != '[' && *latex_top(w)->p != '*')
            return buf_putc(&w->m, '\n');
    }
    return 0;
}

static int control(struct latex_worker *w)
{
    struct latex_frame *f = latex_top(w);
    const char *from = f->p;
    struct span name = latex_name(w, f);
    const struct latex_def *d;
    const struct latex_builtin *b;

    if (!name.n)
        return 0;
    if (name.n == 1) {
        char c = name.p[0];
        if (c == '\\')
            return end_line(w);
        if ((c == ')' || c == ']') && w->math_braces == 0)
            return latex_math_end(w);
        if (c == '\n' || c == '\t' || c == ' ')
            return put_command(w, span_of(" "));
    }
    if (span_is(name, "nonumber") || span_is(name, "notag")) {
        w->math_word = false;
        return w->math == 3 ? latex_step(w, span_of("equation"), -1) : 0;
    }
    d = latex_lookup(w, name);
    b = latex_builtin_of(d);
    if (!d || (b && !(b->flags & LB_MATH)))
        return put_command(w, name);
    if (d->kind == LATEX_CHARACTER) {
        if (d->body.n > 1 && d->body.p[0] == '\\')
            return put_command(w, (struct span){d->body.p + 1, d->body.n - 1});
        return latex_push(w, (struct latex_arg){d->body, NULL, false}, 0);
    }
    if (d->kind == LATEX_MACRO && w->conf.math == LATEX_MATH_SOURCE && !d->shown && f->env == NULL)
        return put_command(w, name);
    f->p = from;
    name = latex_command_name(w, f);
    return latex_run_definition(w, d, name);
}

static int brace(struct latex_worker *w, bool open)
{
    w->math_word = false;
    if (open) {
        w->math_braces++;
        TRY(latex_open_group(w, true));
        return buf_putc(&w->m, '{');
    }
    if (w->math_braces == 0)
        return 0;
    w->math_braces--;
    if (w->n_groups && w->group[w->n_groups - 1].brace)
        TRY(latex_close_groups(w, w->n_groups - 1));
    return buf_putc(&w->m, '}');
}

static int dollar(struct latex_worker *w, struct latex_frame *f)
{
    f->p++;
    if (w->math_braces || w->math_nest || w->math_env.n) {
        w->math_word = false;
        return buf_putc(&w->m, '$');
    }
    if (w->math == 2 && latex_more(w) && *latex_top(w)->p == '$')
        latex_top(w)->p++;
    return latex_math_end(w);
}

/* An empty line ends a formula in the line: its end is missing. */
static int newline(struct latex_worker *w, struct latex_frame *f)
{
    const char *p = f->p + 1;

    while (p < f->end && (*p == ' ' || *p == '\t'))
        p++;
    if (p < f->end && *p == '\n' && w->math == 1 && !w->math_nest) {
        TRY(latex_math_end(w));
        return 0;
    }
    f->p = p;
    return put_space(w);
}

int latex_math_step(struct latex_worker *w)
{
    struct latex_frame *f = latex_top(w);
    const char *p = f->p, *end = f->end;

    while (p < end && !strchr("\\{}$%# \t\n\r", *p))
        p++;
    if (p > f->p) {
        const char *from = f->p;
        f->p = p;
        return put_raw(w, from, (size_t)(p - from));
    }
    switch (*p) {
    case '\\': return control(w);
    case '{':
    case '}': f->p++; return brace(w, *p == '{');
    case '$': return dollar(w, f);
    case '%':
        latex_skip_comment(f);
        return 0;
    case '\n': return newline(w, f);
    case '#':
        f->p += f->env && end - p > 1 && p[1] == '#' ? 2 : 1;
        return put_raw(w, "#", 1);
    default:
        f->p++;
        return put_space(w);
    }
}
