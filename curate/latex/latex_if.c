/* Conditionals.  Those that depend on what is known here are decided; registers, boxes and modes
 * are not kept, and what asks for them is false. */
#include "curate/latex/latex_engine.h"
#include "curate/latex/latex_names.h"

#include <stdlib.h>

static bool is_conditional(struct latex_worker *w, struct span name)
{
    const struct latex_def *d;
    const struct latex_builtin *b;

    if (name.n < 3 || name.p[0] != 'i' || name.p[1] != 'f')
        return false;
    d = latex_lookup(w, name);
    b = latex_builtin_of(d);
    return d ? d->kind == LATEX_IF || (b && b->op == OP_IF) : name.p[2] == '@';
}

char latex_skip_branch(struct latex_worker *w, bool to_else)
{
    int depth = 0;

    for (;;) {
        struct latex_frame *f = latex_top(w);
        const char *p = f->p;
        while (p < f->end && *p != '\\' && *p != '%')
            p++;
        w->work -= p - f->p + 1;
        f->p = p;
        if (p == f->end) {
            if ((f->flags & ~LE_AT) || w->n_frames == 1 || w->work < 0)
                return 0;
            w->users -= f->env != NULL;
            w->n_frames--;
            continue;
        }
        if (*p == '%') {
            const char *nl = memchr(p, '\n', (size_t)(f->end - p));
            f->p = nl ? nl : f->end;
            continue;
        }
        struct span name = latex_name(w, f);
        if (span_is(name, "fi")) {
            if (depth-- == 0) {
                latex_skip_space(w);
                return 'f';
            }
        } else if (to_else && depth == 0 && (span_is(name, "else") || span_is(name, "or"))) {
            latex_skip_space(w);
            return name.p[0];
        } else if (is_conditional(w, name)) {
            depth++;
        }
    }
}

/* A token's meaning: a definition, or a character. */
struct meaning {
    const struct latex_def *def;
    struct span name;
};

static struct meaning read_meaning(struct latex_worker *w)
{
    struct latex_frame *f;
    struct meaning m = {NULL, {"", 0}};

    latex_skip_space(w);
    if (!latex_more(w))
        return m;
    f = latex_top(w);
    if (*f->p != '\\') {
        m.name = latex_character(f);
        return m;
    }
    m.name = latex_command_name(w, f);
    m.def = latex_lookup(w, m.name);
    if (m.def && m.def->kind == LATEX_CHARACTER)
        m = (struct meaning){NULL, m.def->body};
    return m;
}

static bool same_meaning(struct meaning a, struct meaning b)
{
    if (!a.def || !b.def)
        return a.def == b.def && (span_eq(a.name, b.name) || (a.name.n > 1 && b.name.n > 1));
    if (a.def->kind != b.def->kind)
        return false;
    if (a.def->kind == LATEX_BUILTIN)
        return a.def->builtin == b.def->builtin;
    return a.def->n == b.def->n && span_eq(a.def->body, b.def->body) && span_eq(a.def->pattern, b.def->pattern);
}

static bool compare_numbers(struct latex_worker *w)
{
    int64_t a, b;
    char how = '=';

    latex_read_number(w, &a);
    latex_skip_space(w);
    if (latex_more(w) && strchr("<=>", *latex_top(w)->p))
        how = *latex_top(w)->p++;
    latex_read_number(w, &b);
    return how == '<' ? a < b : how == '>' ? a > b : a == b;
}

static bool name_is_defined(struct latex_worker *w)
{
    struct latex_frame *f;
    const char *from, *to;

    if (!latex_more(w))
        return false;
    f = latex_top(w);
    from = f->p;
    to = memmem(from, (size_t)(f->end - from), "\\endcsname", 10);
    w->work -= (to ? to : f->end) - from;
    if (!to)
        return false;
    f->p = to + 10;
    struct latex_arg a = {{from, (size_t)(to - from)}, f->env, false};
    return latex_lookup(w, latex_flat_word(w, a)) != NULL;
}

/* \ifcase: passes over as many branches as the number says. */
static int choose_case(struct latex_worker *w)
{
    int64_t n;

    latex_read_number(w, &n);
    while (n-- != 0 && latex_skip_branch(w, true) == 'o')
        ;
    return 0;
}

int latex_conditional(struct latex_worker *w, char kind, struct span name, const struct latex_def *d)
{
    bool yes = false;
    int64_t n;

    (void)name;
    switch (kind) {
    case 'v': yes = d->value; break;
    case 't': yes = true; break;
    case 'm': yes = w->math > 0; break;
    case 'h': yes = w->math == 0; break;
    case 'n': yes = compare_numbers(w); break;
    case 'o': latex_read_number(w, &n), yes = n % 2 != 0; break;
    case 'd':
        latex_skip_dimension(w);
        latex_skip_space(w);
        if (latex_more(w) && strchr("<=>", *latex_top(w)->p))
            latex_top(w)->p++;
        latex_skip_dimension(w);
        break;
    case 'r': latex_read_number(w, &n); break;
    case 'c': return choose_case(w);
    case 'D': yes = read_meaning(w).def != NULL; break;
    case 'C': yes = name_is_defined(w); break;
    case 'x': {
        struct meaning a = read_meaning(w), b = read_meaning(w);
        yes = same_meaning(a, b);
        break;
    }
    default: break;
    }
    if (!yes)
        latex_skip_branch(w, true);
    return w->work < 0 ? latex_limit(w, "work") : 0;
}

/* ---- commands that choose one of their arguments ---- */

static bool is_blank(struct span s)
{
    return latex_trim(s).n == 0;
}

/* The test of \ifthenelse: \equal, \boolean, \isodd ..., \NOT before it. */
static bool test(struct latex_worker *w, struct latex_arg a)
{
    struct span s = latex_flat_word(w, a);
    bool not = false, yes = false;
    char name[64];

    if (s.n > 4 && (memcmp(s.p, "\\NOT", 4) == 0 || memcmp(s.p, "\\not", 4) == 0)) {
        not = true;
        s.p += 4;
        s.n -= 4;
        s = latex_trim(s);
    }
    if (s.n > 6 && memcmp(s.p, "\\equal", 6) == 0) {
        const char *end = s.p + s.n, *p = memchr(s.p, '{', s.n);
        if (p) {
            const char *mid = latex_group_end(w, p + 1, end), *q = mid;
            while (q < end && *q != '{')
                q++;
            if (q < end) {
                const char *last = latex_group_end(w, q + 1, end);
                yes = span_eq((struct span){p + 1, (size_t)(mid - p - 1)}, (struct span){q + 1, (size_t)(last - q - 1)});
            }
        }
    } else if (s.n > 9 && memcmp(s.p, "\\boolean{", 9) == 0 && s.n - 10 < sizeof name - 2) {
        memcpy(name, "if", 2);
        memcpy(name + 2, s.p + 9, s.n - 10);
        const struct latex_def *d = latex_lookup(w, (struct span){name, s.n - 8});
        yes = d && d->kind == LATEX_IF && d->value;
    }
    return yes != not;
}

/* sig: what is asked; then the argument for yes and that for no, of which one is taken. */
int latex_choose(struct latex_worker *w, const struct latex_builtin *b)
{
    bool yes = false;
    struct latex_arg x = {{"", 0}, NULL, false}, y;

    switch (b->sig[0]) {
    case 'e': yes = test(w, latex_arg(w)); break;
    case 'u': yes = !latex_lookup(w, latex_flat_word(w, latex_arg(w))); break;
    case 'n': { /* the next token, which stays */
        struct span want = latex_flat_word(w, latex_arg(w));
        x = latex_arg(w);
        y = latex_arg(w);
        struct latex_frame *f;
        latex_skip_space(w);
        if (latex_more(w)) {
            f = latex_top(w);
            struct span rest = {f->p, (size_t)(f->end - f->p)};
            if (span_is(want, "\\bgroup"))
                want = span_of("{");
            yes = want.n && rest.n >= want.n && memcmp(rest.p, want.p, want.n) == 0;
            if (yes && want.n > 1 && want.p[0] == '\\' && rest.n > want.n &&
                ((rest.p[want.n] | 32) >= 'a' && (rest.p[want.n] | 32) <= 'z'))
                yes = false;
        }
        return latex_push(w, yes ? x : y, 0);
    }
    case 's': /* a star */
        x = latex_arg(w);
        y = latex_arg(w);
        return latex_push(w, latex_star(w, '*') ? x : y, 0);
    case 'b': yes = is_blank(latex_flat(w, latex_arg(w))); break;
    case 'd': {
        struct span s = latex_flat_word(w, latex_arg(w));
        if (s.n && s.p[0] == '\\')
            s.p++, s.n--;
        yes = latex_lookup(w, s) != NULL;
        break;
    }
    case 'V': yes = span_is(latex_flat_word(w, latex_arg(w)), "\\NoValue"); break;
    case 'B': yes = span_is(latex_flat_word(w, latex_arg(w)), "\\BooleanTrue"); break;
    case '1': yes = true; break;
    case '2': break;
    default: latex_arg(w); break;
    }
    if (b->sig[1] == '!')
        yes = !yes;
    x = latex_arg(w);
    y = b->sig[1] == '1' ? (struct latex_arg){{"", 0}, NULL, false} : latex_arg(w);
    return latex_push(w, yes ? x : y, 0);
}
