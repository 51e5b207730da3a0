/* What the commands do, and what happens at a backslash. */
#include "curate/latex/latex_engine.h"
#include "curate/latex/latex_names.h"

static int cite(struct latex_worker *w, const struct latex_builtin *b)
{
    struct latex_arg a;
    struct span keys;
    bool first = true;

    latex_star(w, '*');
    while (latex_optional(w, &a))
        ;
    keys = latex_flat_word(w, latex_arg(w));
    if (w->math || w->author_mode || !keys.n || b->sig[0] == '-')
        return 0;
    buf_clear(&w->tmp);
    TRY(buf_putc(&w->tmp, '['));
    for (const char *p = keys.p, *end = p + keys.n; p < end;) {
        const char *to = memchr(p, ',', (size_t)(end - p));
        to = to ? to : end;
        struct span key = latex_trim((struct span){p, (size_t)(to - p)});
        p = to < end ? to + 1 : end;
        if (!key.n)
            continue;
        if (!first)
            TRY(buf_puts(&w->tmp, ", "));
        first = false;
        if (latex_citation(w, key, &w->tmp) < 0)
            return err_set(w->e, ERR_NOMEM, "out of memory for citations");
    }
    TRY(buf_putc(&w->tmp, ']'));
    if (w->out->b.n && w->out->b.p[w->out->b.n - 1] != '(')
        latex_out_space(w->out);
    return latex_out_text(w->out, w->tmp.p, w->tmp.n);
}

static int reference(struct latex_worker *w, const struct latex_builtin *b)
{
    struct latex_arg a;
    struct span keys;
    bool first = true;

    latex_star(w, '*');
    latex_optional(w, &a);
    keys = latex_flat_word(w, latex_arg(w));
    if (b->sig[0] == '-' || w->author_mode)
        return 0;
    buf_clear(&w->tmp);
    if (b->sig[0] == '(')
        TRY(buf_putc(&w->tmp, '('));
    for (const char *p = keys.p, *end = p + keys.n; p < end;) {
        const char *to = memchr(p, ',', (size_t)(end - p));
        to = to ? to : end;
        if (!first)
            TRY(buf_puts(&w->tmp, ", "));
        TRY(latex_reference(w, latex_trim((struct span){p, (size_t)(to - p)}), first && b->sig[0] == 'N', &w->tmp));
        first = false;
        p = to < end ? to + 1 : end;
    }
    if (b->sig[0] == '(')
        TRY(buf_putc(&w->tmp, ')'));
    return w->math ? buf_put_span(&w->m, buf_span(&w->tmp)) : latex_out_text(w->out, w->tmp.p, w->tmp.n);
}

static struct span arg_flat(struct latex_worker *w)
{
    struct latex_arg a;

    latex_optional(w, &a);
    return latex_flat(w, latex_arg(w));
}

/* \advance\x by 1, \catcode`\@=11, \font\x=cmr10: all of it goes. */
static int drop_assignment(struct latex_worker *w)
{
    struct latex_frame *f;

    latex_skip_space(w);
    if (!latex_more(w))
        return 0;
    f = latex_top(w);
    if (*f->p == '`') {
        f->p += f->end - f->p > 2 && f->p[1] == '\\' ? 2 : 1;
        if (f->p < f->end)
            latex_character(f);
    } else if (*f->p == '\\') {
        struct span name = latex_command_name(w, f);
        if (span_is(name, "value"))
            latex_arg(w);
    } else {
        int64_t v;
        latex_read_number(w, &v);
    }
    if (!latex_more(w))
        return 0;
    f = latex_top(w);
    while (f->p < f->end && *f->p == ' ')
        f->p++;
    bool by = f->end - f->p > 2 && memcmp(f->p, "by", 2) == 0;
    if (f->p == f->end || (*f->p != '=' && !by))
        return 0;
    f->p += by ? 2 : 1;
    while (f->p < f->end && *f->p == ' ')
        f->p++;
    if (f->p < f->end && *f->p == '\\')
        latex_command_name(w, f);
    else if (f->p < f->end && *f->p == '{')
        latex_arg(w);
    while (f->p < f->end && !strchr(" \n\\}%{", *f->p))
        f->p++;
    return 0;
}

static int choice(struct latex_worker *w)
{
    struct latex_arg a[4];

    for (int i = 0; i < 4; i++)
        a[i] = latex_arg(w);
    return latex_push(w, a[w->math == 1], 0);
}

static int ensure(struct latex_worker *w)
{
    struct latex_arg a = latex_arg(w);

    if (w->math)
        return latex_push(w, a, 0);
    TRY(latex_push(w, a, LE_HARD | LE_DOLLAR));
    return latex_math_begin(w, 1, (struct span){"", 0});
}

static int step_counter(struct latex_worker *w, const char *sig)
{
    struct latex_arg a;

    if (*sig == 'a') {
        latex_appendix(w);
        return 0;
    }
    latex_optional(w, &a);
    struct span name = latex_flat_word(w, latex_arg(w));
    if (*sig == 'w')
        return latex_counter(w, name, latex_flat_word(w, latex_arg(w)), (struct span){NULL, 0});
    return latex_step(w, name, 1);
}

static int language(struct latex_worker *w)
{
    struct latex_arg a;

    latex_optional(w, &a);
    struct span s = latex_flat_word(w, latex_arg(w));
    if (!w->lang.n || w->preamble)
        latex_set_language(w, s, true);
    return 0;
}

/* \MakeShortVerb{\|} */
static int short_verb(struct latex_worker *w, bool on)
{
    struct latex_arg a;
    struct span s;

    latex_star(w, '*');
    latex_optional(w, &a);
    s = latex_flat_word(w, latex_arg(w));
    if (s.n && s.p[0] == '\\')
        s.p++, s.n--;
    latex_short_verb(w, on && s.n == 1 && (unsigned char)s.p[0] < 0x80 ? s.p[0] : 0);
    return 0;
}

int latex_command(struct latex_worker *w, const struct latex_builtin *b, struct span name)
{
    switch ((enum latex_op)b->op) {
    case OP_ARGS: return latex_args(w, b->sig);
    case OP_TEXT: return latex_out_text(w->out, b->sig, strlen(b->sig));
    case OP_ACCENT: return latex_accent(w, b->sig);
    case OP_SPACE: latex_out_space(w->out); return 0;
    case OP_BREAK: return latex_row(w);
    case OP_PAR: return latex_par(w);
    case OP_CHAR: return latex_put_character(w);
    case OP_FONT_ARG: return latex_font(w, b, true);
    case OP_FONT: return latex_font(w, b, false);
    case OP_SECTION: return latex_section(w, b);
    case OP_RUNIN: return latex_run_in(w);
    case OP_FOOTNOTE: return latex_footnote(w);
    case OP_CAPTION: return latex_caption(w);
    case OP_CITE: return cite(w, b);
    case OP_REF: return reference(w, b);
    case OP_LABEL: return latex_label(w, latex_flat_word(w, latex_arg(w)));
    case OP_URL: return latex_put_url(w);
    case OP_VERB: return latex_verb(w, b);
    case OP_SHORT_VERB: return short_verb(w, b->sig[0] == '+');
    case OP_DEFINE: return latex_definition(w, b);
    case OP_PREFIX: case OP_FI: return 0;
    case OP_IF: return latex_conditional(w, b->sig[0], name, NULL);
    case OP_ELSE: latex_skip_branch(w, false); return 0;
    case OP_CHOOSE: return latex_choose(w, b);
    case OP_CSNAME: return latex_csname(w, b->sig[0] == 'm');
    case OP_CHOICE: return choice(w);
    case OP_AT: w->at = b->sig[0] == '1'; return 0;
    case OP_BEGIN: return latex_begin(w);
    case OP_END: return latex_end(w);
    case OP_OPEN: return latex_open_group(w, true);
    case OP_CLOSE: return w->n_groups && w->group[w->n_groups - 1].brace ? latex_close_groups(w, w->n_groups - 1) : 0;
    case OP_INPUT: return latex_input(w, name);
    case OP_ENDINPUT:
        while (w->n_frames > 1 && !(latex_top(w)->flags & LE_FILE))
            TRY(latex_end_frame(w));
        latex_top(w)->p = latex_top(w)->end;
        return 0;
    case OP_CLASS: return latex_use_package(w, true);
    case OP_PACKAGE: return latex_use_package(w, false);
    case OP_LANGUAGE: return language(w);
    case OP_TITLE: w->title_source = arg_flat(w); return 0;
    case OP_AUTHOR: return latex_remember_author(w);
    case OP_DATE: w->date_source = arg_flat(w); return 0;
    case OP_AND: return w->author_mode ? latex_out_text(w->out, "\x1d", 1) : 0;
    case OP_DROP_NAME: return drop_assignment(w);
    case OP_ABSTRACT: return latex_abstract(w);
    case OP_ACRONYM: return latex_acronym(w, b);
    case OP_ITEM:
        if (w->math)
            TRY(latex_math_end(w));
        return latex_item(w);
    case OP_MATH:
        if (b->sig[0] == '2')
            latex_out_break(w->out, 1);
        return latex_math_begin(w, b->sig[0] == '2' ? 2 : 1, (struct span){"", 0});
    case OP_ENSURE: return ensure(w);
    case OP_XSPACE: return latex_xspace(w);
    case OP_STEP: return step_counter(w, b->sig);
    case OP_FINISH: w->ended = true; return 0;
    default: return 0;
    }
}

/* ---- what is not known ---- */

static int unknown(struct latex_worker *w, struct span name)
{
    static const char *const settings[] = {"set", "Set", "new", "renew", "Declare", "define", "Define", "pgf",
                                           "tikz", "tcb", "lst", "hyper", "Setup", "setup"};
    static const struct latex_builtin citation = {"", "", OP_CITE, 0};
    struct latex_arg a;

    if (span_starts(name, "if@"))
        return latex_conditional(w, 'f', name, NULL);
    if (name.n > 4 && ((span_starts(name, "cite") && name.n < 8) || memcmp(name.p + name.n - 4, "cite", 4) == 0))
        return cite(w, &citation);
    latex_star(w, '*');
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (span_starts(name, settings[i])) { /* what it sets is no text */
            latex_drop_arguments(w);
            return 0;
        }
    if (latex_more(w) && *latex_top(w)->p == '[')
        latex_optional(w, &a);
    return 0;
}

int latex_run_definition(struct latex_worker *w, const struct latex_def *d, struct span name)
{
    switch (d->kind) {
    case LATEX_MACRO: return latex_expand(w, d);
    case LATEX_BUILTIN: return latex_command(w, d->builtin, name);
    case LATEX_CHARACTER:
        if (!d->body.n || d->body.p[0] == '\\')
            return 0;
        return latex_push(w, (struct latex_arg){d->body, NULL, false}, 0);
    case LATEX_IF: return latex_conditional(w, 'v', name, d);
    case LATEX_SET_IF:
        return latex_define(w, d->end, &(struct latex_def){.kind = LATEX_IF, .value = d->value});
    default: return 0;
    }
}

int latex_control(struct latex_worker *w)
{
    struct latex_frame *f = latex_top(w);
    struct span name = latex_command_name(w, f);
    const struct latex_def *d;

    if (!name.n)
        return 0;
    if (strchr(" \t\n\r", name.p[0])) {
        latex_out_space(w->out);
        return 0;
    }
    if (w->n_opens && w->open[w->n_opens - 1].op == OP_E_TABBING && strchr("=>'`+-<", name.p[0])) {
        latex_out_space(w->out);
        return 0;
    }
    d = latex_lookup(w, name);
    return d ? latex_run_definition(w, d, name) : unknown(w, name);
}
