/* Environments: lists, tables, floats, code, and what a document makes of them. */
#include "curate/latex/latex_engine.h"

#include <stdlib.h>

#include "curate/latex/latex_names.h"

static struct latex_open *innermost(struct latex_worker *w, uint8_t op)
{
    for (int i = w->n_opens - 1; i >= 0; i--)
        if (w->open[i].op == op && !w->open[i].boxed)
            return &w->open[i];
    return NULL;
}

static int push_open(struct latex_worker *w, struct span name, const struct latex_def *d, uint8_t op)
{
    if (w->n_opens == LATEX_OPENS)
        return latex_limit(w, "environments in environments");
    w->open[w->n_opens++] = (struct latex_open){.name = name, .def = d, .op = op, .out = w->out, .groups = w->n_groups};
    return latex_open_group(w, false);
}

/* ---- what is taken as it is, or not at all ---- */

/* Finds "\end{name}" from p on; NULL: there is none. */
static const char *find_end(struct latex_worker *w, const char *p, const char *end, struct span name)
{
    const char *from = p;

    while ((p = memmem(p, (size_t)(end - p), "\\end", 4))) {
        const char *q = p + 4;
        while (q < end && *q == ' ')
            q++;
        if ((size_t)(end - q) >= name.n + 2 && *q == '{' && memcmp(q + 1, name.p, name.n) == 0 && q[name.n + 1] == '}') {
            w->work -= p - from;
            return p;
        }
        p += 4;
    }
    w->work -= end - from;
    return NULL;
}

static void pass_end(struct latex_frame *f, const char *p)
{
    const char *to = memchr(p, '}', (size_t)(f->end - p));

    f->p = to ? to + 1 : f->end;
}

static int drop_environment(struct latex_worker *w, struct span name)
{
    while (latex_more(w)) {
        struct latex_frame *f = latex_top(w);
        const char *to = find_end(w, f->p, f->end, name);
        if (to) {
            pass_end(f, to);
            return 0;
        }
        if (f->flags & LE_FILE) /* never ended: better all of it than nothing from here on */
            return 0;
        f->p = f->end;
    }
    return 0;
}

static int code_environment(struct latex_worker *w, struct span name, const char *sig)
{
    struct latex_frame *f;
    struct latex_arg a;
    const char *to;
    struct span text;

    for (; *sig; sig++)
        if (*sig == 'o')
            latex_optional(w, &a);
        else
            latex_arg(w);
    if (!latex_more(w))
        return 0;
    f = latex_top(w);
    to = find_end(w, f->p, f->end, name);
    text = (struct span){f->p, (size_t)((to ? to : f->end) - f->p)};
    if (to)
        pass_end(f, to);
    else
        f->p = f->end;
    if (w->out->markdown && !w->out->row) {
        TRY(latex_par(w));
        TRY(latex_out_text(w->out, "```", 3));
        TRY(latex_out_lines(w->out, text, false));
        latex_out_break(w->out, 1);
        TRY(latex_out_text(w->out, "```", 3));
    } else {
        TRY(latex_out_lines(w->out, text, true));
    }
    return latex_par(w);
}

int latex_verb(struct latex_worker *w, const struct latex_builtin *b)
{
    struct latex_arg a;

    for (const char *sig = b->sig; *sig; sig++)
        if (*sig == 'o')
            latex_optional(w, &a);
        else
            latex_arg(w);
    latex_star(w, '*');
    return latex_more(w) ? latex_verb_text(w) : 0;
}

/* At the first delimiter. */
int latex_verb_text(struct latex_worker *w)
{
    enum { CODE_MAX = 1000 };
    struct latex_frame *f = latex_top(w);
    const char *to;
    char close;

    close = *f->p == '{' ? '}' : *f->p;
    if ((unsigned char)close >= 0x80)
        return 0;
    size_t left = (size_t)(f->end - f->p - 1);
    to = memchr(f->p + 1, close, left < CODE_MAX ? left : CODE_MAX);
    if (!to) {
        f->p++;
        return 0;
    }
    struct span s = {f->p + 1, (size_t)(to - f->p - 1)};
    f->p = to + 1;
    int marks = w->out->n_marks;
    latex_out_mark(w->out, 't');
    TRY(latex_out_text(w->out, s.p, s.n));
    return latex_out_unmark(w->out, marks);
}

void latex_short_verb(struct latex_worker *w, char c)
{
    if (w->short_verb)
        w->special[(unsigned char)w->short_verb] = false;
    if (c && w->special[(unsigned char)c])
        c = 0;
    w->short_verb = c;
    if (c)
        w->special[(unsigned char)c] = true;
}

/* ---- tables ---- */

static int begin_table(struct latex_worker *w, struct span name, const struct latex_def *d, const char *sig)
{
    struct latex_open *o;

    TRY(latex_args(w, sig));
    TRY(push_open(w, name, d, OP_E_TABLE));
    o = &w->open[w->n_opens - 1];
    o->boxed = w->out->row || innermost(w, OP_E_TABLE) != o;
    if (o->boxed)
        return 0;
    latex_out_break(w->out, 2);
    latex_out_reset(&w->cells);
    w->cells.sink = w->out->sink;
    w->out = &w->cells;
    return 0;
}

int latex_cell(struct latex_worker *w)
{
    if (w->out != &w->cells || w->cells.sink || (w->n_opens && w->open[w->n_opens - 1].boxed)) {
        latex_out_space(w->out);
        return 0;
    }
    TRY(latex_out_unmark(&w->cells, 0));
    return buf_putc(&w->cells.b, LATEX_CELL);
}

static int put_row(struct latex_worker *w, struct latex_open *o)
{
    TRY(latex_out_unmark(&w->cells, 0));
    TRY(latex_out_row(o->out, buf_span(&w->cells.b), &o->columns));
    w->cells.b.n = 0;
    w->cells.space = false;
    return 0;
}

int latex_row(struct latex_worker *w)
{
    struct latex_arg a;
    struct latex_open *o = innermost(w, OP_E_TABLE);

    latex_star(w, '*');
    if (latex_more(w) && *latex_top(w)->p == '[')
        latex_optional(w, &a);
    if (w->author_mode)
        return latex_out_text(w->out, "\x1e", 1);
    if (o && w->out == &w->cells && w->n_groups == o->groups + 1)
        return put_row(w, o);
    latex_out_break(w->out, 1);
    return 0;
}

/* ---- floats ---- */

int latex_caption(struct latex_worker *w)
{
    struct latex_arg a, other;
    struct latex_out *to = w->out;
    struct span counter = {NULL, 0};

    bool star = latex_star(w, '*');
    latex_optional(w, &other);
    a = latex_arg(w);
    for (int i = w->n_opens - 1; i >= 0; i--) {
        const struct latex_open *o = &w->open[i];
        if (to == &w->cells || to == &w->loose)
            to = o->out;
        if (counter.n)
            continue;
        if (o->op == OP_E_FIGURE)
            counter = span_of("figure");
        else if ((o->name.n > 4 && memcmp(o->name.p, "table", 5) == 0) || span_is(o->name, "longtable"))
            counter = span_of("table");
        else if (o->name.n > 8 && memcmp(o->name.p, "algorithm", 9) == 0)
            counter = span_of("algorithm");
    }
    if (counter.n && !star)
        TRY(latex_step(w, counter, 1));
    if (to == &w->cells || to == &w->loose)
        to = &w->body;
    latex_out_break(to, 2);
    TRY(latex_push(w, a, LE_HARD | LE_GROUP | LE_BREAK | LE_OUT));
    w->out = to;
    return 0;
}

/* Text of a figure beside its caption: a picture's lettering, unless it is long. */
static int put_loose(struct latex_worker *w)
{
    enum { LETTERING_MAX = 120 };
    size_t n = 0;

    for (size_t i = 0; i < w->loose.b.n; i++)
        n += (w->loose.b.p[i] | 32) >= 'a' && (w->loose.b.p[i] | 32) <= 'z';
    if (n > LETTERING_MAX)
        TRY(latex_out_lines(w->out, buf_span(&w->loose.b), true));
    latex_out_reset(&w->loose);
    return 0;
}

/* ---- lists and theorems ---- */

int latex_item(struct latex_worker *w)
{
    struct latex_open *o = innermost(w, OP_E_LIST);
    struct latex_arg a;
    bool label;

    latex_delimited(w, '<', '>', &a);
    label = latex_optional(w, &a);
    latex_out_break(w->out, 1);
    w->out->item = !w->out->row;
    w->out->number = 0;
    if (o && o->def && o->def->builtin->sig[0] == '1' && !label)
        w->out->number = ++o->number;
    if (!label)
        return 0;
    TRY(latex_push(w, (struct latex_arg){span_of(" "), NULL, false}, 0));
    TRY(latex_push(w, a, LE_HARD | LE_GROUP));
    TRY(latex_open_group(w, false));
    if (o && o->def && o->def->builtin->sig[0] == ':')
        latex_out_mark(w->out, 'b');
    return 0;
}

static int begin_list(struct latex_worker *w, struct span name, const struct latex_def *d)
{
    TRY(latex_args(w, d->builtin->sig + 1));
    TRY(push_open(w, name, d, OP_E_LIST));
    latex_out_break(w->out, w->out->lists ? 1 : 2);
    w->out->lists++;
    return 0;
}

static int begin_theorem(struct latex_worker *w, struct span name, const struct latex_def *d)
{
    struct latex_arg note;
    bool noted = latex_optional(w, &note), proof = span_is(name, "proof");
    struct span head = d->builtin ? span_of(d->builtin->sig) : d->body, number = {NULL, 0};
    struct buf b = {0};
    int rc;

    TRY(latex_par(w));
    TRY(push_open(w, name, d, OP_E_THEOREM));
    if (d->end.n) {
        TRY(latex_step(w, d->end, 1));
        latex_kind(w, head);
        number = latex_counter_text(w, d->end);
    }
    rc = buf_printf(&b, "\\textbf{%.*s%s%.*s", proof && noted ? 0 : (int)head.n, head.p, number.n ? " " : "", (int)number.n,
                    number.p);
    if (rc == 0 && noted) {
        struct span s = latex_flat(w, note);
        rc = buf_printf(&b, proof ? "%.*s" : " (%.*s)", (int)s.n, s.p);
    }
    if (rc == 0)
        rc = buf_puts(&b, ".} ");
    head = arena_dup(&w->kept, buf_span(&b));
    buf_free(&b);
    if (rc < 0 || !head.p)
        return latex_limit(w, "memory for headings");
    return latex_push(w, (struct latex_arg){head, NULL, false}, 0);
}

static int begin_abstract(struct latex_worker *w, struct span name, const struct latex_def *d)
{
    TRY(push_open(w, name, d, OP_E_ABSTRACT));
    w->out = &w->body; /* also from the preamble */
    TRY(latex_par(w));
    if (!w->lang.n || span_is(w->lang, "en")) {
        w->out->heading = 2;
        TRY(latex_out_text(w->out, "Abstract", 8));
    }
    return latex_par(w);
}

/* ---- begin ---- */

static int begin_math(struct latex_worker *w, struct span name, const struct latex_def *d)
{
    int kind = d->builtin->sig[0] - '0';

    if (kind == 2)
        latex_out_break(w->out, 1);
    TRY(push_open(w, name, d, OP_E_MATH));
    if (kind > 1 && name.p[name.n - 1] != '*' && !span_is(name, "displaymath"))
        TRY(latex_step(w, span_of("equation"), 1));
    return latex_math_begin(w, kind, name);
}

static int begin_builtin(struct latex_worker *w, struct span name, const struct latex_def *d)
{
    const char *sig = d->builtin->sig;
    uint8_t op = d->builtin->op;
    struct latex_open *o;

    switch (op) {
    case OP_E_DROP: return drop_environment(w, name);
    case OP_E_CODE: return code_environment(w, name, sig);
    case OP_E_TABLE: return begin_table(w, name, d, sig);
    case OP_E_LIST: return begin_list(w, name, d);
    case OP_E_THEOREM: return begin_theorem(w, name, d);
    case OP_E_MATH: return begin_math(w, name, d);
    case OP_E_ABSTRACT: return begin_abstract(w, name, d);
    case OP_E_DOCUMENT:
        w->preamble = false;
        w->out = &w->body;
        return 0;
    default: break;
    }
    TRY(push_open(w, name, d, op));
    o = &w->open[w->n_opens - 1];
    if (op == OP_E_QUOTE) {
        TRY(latex_par(w));
        w->out->quotes++;
    } else if (op == OP_E_FIGURE) {
        latex_out_break(w->out, 2);
        o->boxed = w->out == &w->loose || w->out->row;
        if (!o->boxed) {
            latex_out_reset(&w->loose);
            w->loose.sink = w->out->sink;
            w->out = &w->loose;
        }
    } else if (op == OP_E_TABBING || op == OP_E_LINES) {
        TRY(latex_par(w));
    }
    return latex_args(w, sig);
}

/* Environments that no formula holds. */
static bool is_text(uint8_t op)
{
    return op == OP_E_LIST || op == OP_E_FIGURE || op == OP_E_QUOTE || op == OP_E_ABSTRACT || op == OP_E_THEOREM;
}

int latex_begin(struct latex_worker *w)
{
    struct span name = latex_flat_word(w, latex_arg(w)), plain = name;
    const struct latex_def *d;
    struct latex_arg a;

    if (!name.n)
        return 0;
    d = latex_lookup_env(w, name);
    if (!d && name.n > 1 && name.p[name.n - 1] == '*') {
        plain.n--;
        d = latex_lookup_env(w, plain);
        if (d && d->kind == LATEX_BUILTIN && d->builtin->op == OP_E_MATH)
            d = NULL;
    }
    if (w->math == 1 && d && (d->kind == LATEX_THEOREM || (d->kind == LATEX_BUILTIN && is_text(d->builtin->op))))
        TRY(latex_math_end(w)); /* its own end is missing */
    if (w->math && (!d || d->kind != LATEX_ENVIRONMENT)) {
        w->math_nest++;
        w->math_word = false;
        return buf_printf(&w->m, "\\begin{%.*s}", (int)name.n, name.p);
    }
    if (d && d->kind == LATEX_BUILTIN)
        return begin_builtin(w, name, d);
    if (d && d->kind == LATEX_THEOREM)
        return begin_theorem(w, name, d);
    if (d && d->kind == LATEX_ENVIRONMENT) {
        TRY(push_open(w, name, d, 0));
        return latex_expand_env(w, d);
    }
    if (memmem(name.p, name.n, "erbatim", 7) || memmem(name.p, name.n, "listing", 7))
        return code_environment(w, name, "");
    TRY(push_open(w, name, NULL, 0));
    d = latex_lookup(w, name); /* \def\name ... \def\endname */
    if (d && d->kind == LATEX_MACRO)
        return latex_expand(w, d);
    latex_optional(w, &a);
    return 0;
}

/* ---- end ---- */

static int close_one(struct latex_worker *w)
{
    struct latex_open o = w->open[w->n_opens - 1];

    if (w->math && o.op == OP_E_MATH)
        TRY(latex_math_end(w));
    if (o.op == OP_E_TABLE && !o.boxed && w->out == &w->cells)
        TRY(put_row(w, &w->open[w->n_opens - 1]));
    w->n_opens--;
    w->users -= o.env != NULL;
    w->out = o.out;
    TRY(latex_close_groups(w, o.groups));
    switch (o.op) {
    case OP_E_LIST:
        if (w->out->lists > 0)
            w->out->lists--;
        w->out->item = false;
        latex_out_break(w->out, 2);
        return 0;
    case OP_E_QUOTE:
        TRY(latex_par(w));
        if (w->out->quotes > 0)
            w->out->quotes--;
        return 0;
    case OP_E_FIGURE: return o.boxed ? 0 : put_loose(w);
    case OP_E_TABLE:
        if (!o.boxed)
            latex_out_break(w->out, 2);
        return 0;
    case OP_E_PLAIN: return o.def->builtin->sig[0] == '|' ? latex_par(w) : 0;
    case OP_E_THEOREM: case OP_E_ABSTRACT: case OP_E_TABBING: case OP_E_LINES: return latex_par(w);
    default: return 0;
    }
}

int latex_close_to(struct latex_worker *w, int opens)
{
    while (w->n_opens > opens)
        TRY(close_one(w));
    return 0;
}

/* \end of an environment that the document defines: its end, then what it opened is closed. */
static int end_own(struct latex_worker *w, int k, struct span body, bool at)
{
    struct latex_open *o = &w->open[k];

    o->name = (struct span){"", 0};
    TRY(latex_push(w, (struct latex_arg){body, o->env, at}, LE_GROUP));
    latex_top(w)->groups = o->groups;
    latex_top(w)->opens = k;
    return 0;
}

int latex_end(struct latex_worker *w)
{
    struct span name = latex_flat_word(w, latex_arg(w));
    const struct latex_def *d;
    int k = w->n_opens - 1, floor = latex_top(w)->flags & LE_HARD ? latex_top(w)->opens : 0;

    if (w->math && w->math_nest > 0) {
        d = latex_lookup_env(w, name);
        if (!d || d->kind != LATEX_ENVIRONMENT) {
            w->math_nest--;
            w->math_word = false;
            return buf_printf(&w->m, "\\end{%.*s}", (int)name.n, name.p);
        }
    }
    if (span_is(name, "document")) {
        struct latex_frame *f = latex_top(w);
        struct span inner = k >= 0 ? w->open[k].name : (struct span){"", 0};
        w->ended = !inner.n || !find_end(w, f->p, f->end, inner); /* else it is an example */
        return 0;
    }
    while (k >= floor && !span_eq(w->open[k].name, name))
        k--;
    if (k < floor)
        return 0;
    if (w->math && w->open[k].op != OP_E_MATH && !w->open[k].def)
        TRY(latex_math_end(w));
    TRY(latex_close_to(w, k + 1));
    d = w->open[k].def;
    if (d && d->kind == LATEX_ENVIRONMENT)
        return end_own(w, k, d->end, d->at);
    if (!d) {
        char end[64] = "end";
        if (name.n < sizeof end - 3) {
            memcpy(end + 3, name.p, name.n);
            d = latex_lookup(w, (struct span){end, name.n + 3});
            if (d && d->kind == LATEX_MACRO && d->n == 0 && d->body.n)
                return end_own(w, k, d->body, d->at);
        }
    }
    return close_one(w);
}
