/* Defining and expanding macros. */
#include "curate/latex/latex_engine.h"

#include <stdlib.h>

#include "curate/latex/latex_names.h"

static struct span env_name(struct latex_worker *w, struct span name)
{
    char *p = arena_alloc(&w->kept, name.n + 1);

    if (!p)
        return (struct span){"", 0};
    p[0] = '{';
    memcpy(p + 1, name.p, name.n);
    return (struct span){p, name.n + 1};
}

/* ---- expanding ---- */

/* Where the delimiter stands in the top frame, outside groups; NULL: nowhere. */
static const char *find_delimiter(struct latex_worker *w, const struct latex_frame *f, struct span delimiter)
{
    const char *at = f->p;

    for (; at < f->end; at++) {
        if ((size_t)(f->end - at) >= delimiter.n && memcmp(at, delimiter.p, delimiter.n) == 0)
            break;
        if (*at == '{')
            at = latex_group_end(w, at + 1, f->end);
        else if (*at == '\\')
            at++;
    }
    w->work -= at - f->p;
    return at < f->end ? at : NULL;
}

/* The argument in front of a delimiter, which is passed over. */
static bool read_until(struct latex_worker *w, struct span delimiter, struct latex_arg *a)
{
    struct latex_frame *f;
    const char *at;

    do {
        if (!latex_more(w))
            return false;
        f = latex_top(w);
        at = find_delimiter(w, f, delimiter);
    } while (!at && w->work >= 0 && latex_join(w));
    if (!at)
        return false;
    struct span text = latex_trim((struct span){f->p, (size_t)(at - f->p)});
    if (text.n >= 2 && text.p[0] == '{' && latex_group_end(w, text.p + 1, text.p + text.n) == text.p + text.n - 1) {
        text.p++;
        text.n -= 2;
    }
    *a = (struct latex_arg){text, f->env, f->flags & LE_AT || w->at};
    f->p = at + delimiter.n;
    return true;
}

/* Reads what the delimiters of a \def say: #1, text, #2 ... */
static bool match_pattern(struct latex_worker *w, const struct latex_def *d, struct latex_env *env)
{
    const char *p = d->pattern.p, *end = p + d->pattern.n;

    while (p < end) {
        if (*p == '#' && end - p >= 2 && p[1] > '0' && p[1] <= '9') {
            int k = p[1] - '1';
            const char *to = p += 2;
            while (to < end && *to != '#')
                to++;
            if (k >= env->n)
                return false;
            if (to == p || (to == end && to[-1] == '#')) {
                env->arg[k] = latex_arg(w);
            } else {
                struct span delimiter = latex_trim((struct span){p, (size_t)(to - p)});
                if (!delimiter.n || !read_until(w, delimiter, &env->arg[k]))
                    return false;
            }
            p = to;
        } else { /* text before the first */
            struct latex_frame *f;
            const char *to = p;
            while (to < end && *to != '#')
                to++;
            if (to == p) { /* a '#' alone */
                p++;
                continue;
            }
            if (!latex_more(w))
                return false;
            f = latex_top(w);
            if ((size_t)(f->end - f->p) < (size_t)(to - p) || memcmp(f->p, p, (size_t)(to - p)) != 0)
                return false;
            f->p += to - p;
            p = to;
        }
    }
    return true;
}

static struct latex_arg constant(const char *s)
{
    return (struct latex_arg){span_of(s), NULL, false};
}

static void read_one(struct latex_worker *w, const struct latex_def *d, int k, struct latex_arg *a)
{
    struct span given = d->given ? d->given[k] : (struct span){NULL, 0};
    bool there;

    switch (d->types ? d->types[k] : 'm') {
    case 'o':
        there = latex_optional(w, a);
        break;
    case 's':
        *a = constant(latex_star(w, '*') ? "\\BooleanTrue" : "\\BooleanFalse");
        return;
    case 't':
        *a = constant(latex_star(w, given.n ? given.p[0] : '*') ? "\\BooleanTrue" : "\\BooleanFalse");
        return;
    case 'd':
        there = given.n >= 2 && latex_delimited(w, given.p[0], given.p[1], a);
        if (!there)
            *a = constant("\\NoValue");
        return;
    default:
        *a = latex_arg(w);
        return;
    }
    if (!there)
        *a = given.p ? (struct latex_arg){given, NULL, d->at} : constant("\\NoValue");
}

static struct latex_env *read_arguments(struct latex_worker *w, const struct latex_def *d)
{
    struct latex_env *env = arena_calloc(&w->args, 1, sizeof *env + d->n * sizeof *env->arg);

    if (!env)
        return NULL;
    env->n = d->n;
    if (d->pattern.n) {
        match_pattern(w, d, env);
        return env;
    }
    for (int k = 0; k < d->n; k++)
        read_one(w, d, k, &env->arg[k]);
    return env;
}

int latex_expand(struct latex_worker *w, const struct latex_def *d)
{
    const struct latex_env *env = &latex_no_arguments;

    if (d->n || d->pattern.n)
        env = read_arguments(w, d);
    if (!env)
        return latex_limit(w, "memory for arguments");
    w->work -= (int64_t)d->body.n;
    return latex_push(w, (struct latex_arg){d->body, env, d->at}, 0);
}

int latex_expand_env(struct latex_worker *w, const struct latex_def *d)
{
    const struct latex_env *env = read_arguments(w, d);
    struct latex_open *o = &w->open[w->n_opens - 1];

    if (!env)
        return latex_limit(w, "memory for arguments");
    o->env = env;
    w->users++;
    return latex_push(w, (struct latex_arg){d->body, env, d->at}, 0);
}

/* ---- defining ---- */

/* The name that a definition gives: \x or {\x}, without the backslash. */
static struct span read_defined(struct latex_worker *w)
{
    struct span s = latex_flat_word(w, latex_arg(w));

    if (s.n && s.p[0] == '\\')
        s.p++, s.n--;
    return s;
}

/* Whether expanding is needed though formulas are to stay as written. */
static bool is_shown(struct span body)
{
    return body.n && (memmem(body.p, body.n, "\\begin", 6) || memmem(body.p, body.n, "\\end", 4) ||
                      memchr(body.p, '$', body.n));
}

/* Reads "[n][default]" into d. */
static int read_signature(struct latex_worker *w, struct latex_def *d)
{
    struct latex_arg a;
    struct span *given;

    if (!latex_optional(w, &a))
        return 0;
    struct span n = latex_flat_word(w, a);
    if (n.n == 1 && n.p[0] >= '0' && n.p[0] <= '9')
        d->n = (uint8_t)(n.p[0] - '0');
    if (!d->n || !latex_optional(w, &a))
        return 0;
    given = arena_calloc(&w->kept, 9, sizeof *given);
    if (!given)
        return latex_limit(w, "memory for macros");
    given[0] = latex_flat(w, a);
    if (!given[0].p)
        given[0].p = "";
    d->given = given;
    d->types = "ommmmmmmm";
    return 0;
}

/* xparse: "m O{x} s ..." into d. */
static int read_types(struct latex_worker *w, struct latex_def *d)
{
    struct span s = latex_flat(w, latex_arg(w));
    struct span *given = arena_calloc(&w->kept, 9, sizeof *given);
    char *types = arena_calloc(&w->kept, 10, 1);
    const char *p = s.p, *end = s.p + s.n;

    if (!given || !types)
        return latex_limit(w, "memory for macros");
    for (; p < end && d->n < 9; p++) {
        static const char none[] = "mosvtrRdDOeEbug";
        char c = *p;
        if (!strchr(none, c) || c == '\0')
            continue;
        types[d->n] = c == 'o' || c == 'O' ? 'o' : c == 's' ? 's' : strchr("dDrR", c) ? 'd' : c == 't' ? 't' : 'm';
        if (types[d->n] == 'd' && end - p > 2 && (unsigned char)p[1] < 0x80 && (unsigned char)p[2] < 0x80) {
            given[d->n] = (struct span){p + 1, 2};
            p += 2;
        } else if (c == 't' && end - p > 1 && (unsigned char)p[1] < 0x80) {
            given[d->n] = (struct span){p + 1, 1};
            p++;
        }
        if (strchr("ORD", c) && p + 1 < end && p[1] == '{') {
            const char *to = latex_group_end(w, p + 2, end);
            if (c == 'O')
                given[d->n] = (struct span){p + 2, (size_t)(to - p - 2)};
            p = to;
        }
        d->n++;
    }
    d->given = given;
    d->types = types;
    return 0;
}

static bool is_defined(struct latex_worker *w, struct span name)
{
    return latex_lookup(w, name) != NULL;
}

static bool letters_at(struct latex_worker *w)
{
    return w->at || (latex_top(w)->flags & LE_AT);
}

static int define_command(struct latex_worker *w, char how)
{
    struct latex_def d = {.kind = LATEX_MACRO, .at = letters_at(w)};
    struct span name;

    latex_star(w, '*');
    name = read_defined(w);
    if (how == 'x')
        TRY(read_types(w, &d));
    else
        TRY(read_signature(w, &d));
    d.body = latex_flat(w, latex_arg(w));
    d.shown = is_shown(d.body);
    if (how == 'p' && is_defined(w, name))
        return 0;
    return latex_define(w, name, &d);
}

static int define_operator(struct latex_worker *w)
{
    struct latex_def d = {.kind = LATEX_MACRO};
    bool star = latex_star(w, '*');
    struct span name = read_defined(w), text = latex_flat(w, latex_arg(w));
    struct buf b = {0};

    if (buf_printf(&b, "\\operatorname%s{%.*s}", star ? "*" : "", (int)text.n, text.p) == 0)
        d.body = arena_dup(&w->kept, buf_span(&b));
    buf_free(&b);
    return d.body.p ? latex_define(w, name, &d) : latex_limit(w, "memory for macros");
}

/* \def\x#1,#2;{...} */
static int define_plain(struct latex_worker *w)
{
    struct latex_def d = {.kind = LATEX_MACRO, .at = letters_at(w)};
    struct span name = read_defined(w);
    struct latex_frame *f;
    const char *from, *to;
    bool simple = true;

    if (!latex_more(w))
        return 0;
    f = latex_top(w);
    for (from = to = f->p; to < f->end && *to != '{'; to++)
        if (*to == '\\' && to + 1 < f->end)
            to++;
    f->p = to;
    d.pattern = latex_flat_word(w, (struct latex_arg){{from, (size_t)(to - from)}, f->env, d.at});
    for (size_t i = 0; i < d.pattern.n; i++) {
        char c = d.pattern.p[i];
        if (c == '#' && i + 1 < d.pattern.n && d.pattern.p[i + 1] == '1' + d.n && d.n < 9) {
            d.n++;
            i++;
        } else {
            simple = false;
        }
    }
    if (simple)
        d.pattern.n = 0;
    if (!latex_more(w) || *latex_top(w)->p != '{')
        return 0;
    d.body = latex_flat(w, latex_arg(w));
    d.shown = is_shown(d.body);
    return latex_define(w, name, &d);
}

static int define_let(struct latex_worker *w)
{
    struct span name = read_defined(w), other;
    struct latex_def d = {.kind = LATEX_CHARACTER};
    const struct latex_def *old;
    struct latex_frame *f;

    latex_skip_space(w);
    latex_star(w, '=');
    latex_skip_space(w);
    if (!latex_more(w))
        return 0;
    f = latex_top(w);
    if (*f->p != '\\') {
        d.body = latex_character(f);
        return latex_define(w, name, &d);
    }
    other = latex_command_name(w, f);
    old = latex_lookup(w, other);
    if (old)
        return latex_define(w, name, old);
    d.body = (struct span){other.p - 1, other.n + 1}; /* what is unknown stays so, by its name */
    return span_eq(name, other) ? 0 : latex_define(w, name, &d);
}

static int define_environment(struct latex_worker *w, char how)
{
    struct latex_def d = {.kind = LATEX_ENVIRONMENT, .at = letters_at(w)};
    struct span name;

    latex_star(w, '*');
    name = latex_flat_word(w, latex_arg(w));
    if (how == 'x')
        TRY(read_types(w, &d));
    else
        TRY(read_signature(w, &d));
    d.body = latex_flat(w, latex_arg(w));
    d.end = latex_flat(w, latex_arg(w));
    return latex_define(w, env_name(w, name), &d);
}

/* \newtheorem{name}[shared]{Heading}[within] */
static int define_theorem(struct latex_worker *w)
{
    struct latex_def d = {.kind = LATEX_THEOREM};
    struct latex_arg a;
    struct span name, shared = {NULL, 0}, within = {NULL, 0};
    bool star = latex_star(w, '*');

    name = latex_flat_word(w, latex_arg(w));
    if (latex_optional(w, &a))
        shared = latex_flat_word(w, a);
    d.body = latex_flat_word(w, latex_arg(w));
    if (latex_optional(w, &a))
        within = latex_flat_word(w, a);
    if (!star) {
        d.end = name;
        TRY(latex_counter(w, name, within, shared));
    }
    return latex_define(w, env_name(w, name), &d);
}

/* \newif\ifx: \ifx, \xtrue, \xfalse */
static int define_if(struct latex_worker *w)
{
    struct span name = read_defined(w), base = name;
    struct latex_def d = {.kind = LATEX_IF};

    if (name.n < 3 || memcmp(name.p, "if", 2) != 0)
        return 0;
    TRY(latex_define(w, name, &d));
    base.p += 2;
    base.n -= 2;
    for (int i = 0; i < 2; i++) {
        struct buf b = {0};
        struct span setter = {NULL, 0};
        if (buf_printf(&b, "%.*s%s", (int)base.n, base.p, i ? "true" : "false") == 0)
            setter = arena_dup(&w->kept, buf_span(&b));
        buf_free(&b);
        if (!setter.p)
            return latex_limit(w, "memory for macros");
        TRY(latex_define(w, setter, &(struct latex_def){.kind = LATEX_SET_IF, .value = i, .end = name}));
    }
    return 0;
}

/* \lstnewenvironment{name}..., \DefineVerbatimEnvironment{name}...: code. */
static int define_code(struct latex_worker *w)
{
    static const struct latex_builtin code = {"", "o", OP_E_CODE, 0};
    struct latex_arg a;
    struct span name;

    latex_optional(w, &a);
    name = latex_flat_word(w, latex_arg(w));
    latex_drop_arguments(w);
    return latex_define(w, env_name(w, name), &(struct latex_def){.kind = LATEX_BUILTIN, .builtin = &code});
}

int latex_definition(struct latex_worker *w, const struct latex_builtin *b)
{
    switch (b->sig[0]) {
    case 'd': return define_plain(w);
    case 'l': return define_let(w);
    case 'e': return define_environment(w, b->sig[1]);
    case 't': return define_theorem(w);
    case 'i': return define_if(w);
    case 'v': return define_code(w);
    case 'o': return define_operator(w);
    default: return define_command(w, b->sig[0]);
    }
}
