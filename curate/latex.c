#include "curate/latex_engine.h"

#include <stdlib.h>

#include "curate/html_meta.h"
#include "curate/latex_names.h"

enum { AND = '\x1d', NEXT_LINE = '\x1e' };

void latex_conf_init(struct latex_conf *c)
{
    *c = (struct latex_conf){.max_bytes = 16 << 20, .max_expansions = 1000000};
}

/* ---- commands ---- */

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
        f->p += f->end - f->p > 2 && f->p[1] == '\\' ? 3 : f->end - f->p > 1 ? 2 : 1;
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
    latex_short_verb(w, on && s.n == 1 ? s.p[0] : 0);
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

static bool begins_with(struct span s, const char *word)
{
    size_t n = strlen(word);

    return s.n >= n && memcmp(s.p, word, n) == 0;
}

static int unknown(struct latex_worker *w, struct span name)
{
    static const char *const settings[] = {"set", "Set", "new", "renew", "Declare", "define", "Define", "pgf",
                                           "tikz", "tcb", "lst", "hyper", "Setup", "setup"};
    static const struct latex_builtin citation = {"", "", OP_CITE, 0};
    struct latex_arg a;

    if (begins_with(name, "if@"))
        return latex_conditional(w, 'f', name, NULL);
    if (name.n > 4 && ((begins_with(name, "cite") && name.n < 8) || memcmp(name.p + name.n - 4, "cite", 4) == 0))
        return cite(w, &citation);
    latex_star(w, '*');
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (begins_with(name, settings[i])) { /* what it sets is no text */
            while (latex_more(w) && (*latex_top(w)->p == '{' || *latex_top(w)->p == '['))
                if (*latex_top(w)->p == '{')
                    latex_arg(w);
                else if (!latex_optional(w, &a))
                    break;
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
    case LATEX_CHARACTER: return d->body.n == 1 ? latex_push(w, (struct latex_arg){d->body, NULL, false}, 0) : 0;
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

/* ---- text ---- */

/* Bytes that end a run of plain text: all below '(' but '!', '&' and others that mean something. */
static const bool special[256] = {
    [0] = true, [1] = true, [2] = true, [3] = true, [4] = true, [5] = true, [6] = true, [7] = true, [8] = true,
    ['\t'] = true, ['\n'] = true, [11] = true, [12] = true, ['\r'] = true, [14] = true, [15] = true, [16] = true,
    [17] = true, [18] = true, [19] = true, [20] = true, [21] = true, [22] = true, [23] = true, [24] = true, [25] = true,
    [26] = true, [27] = true, [28] = true, [29] = true, [30] = true, [31] = true, [127] = true,
    [' '] = true, ['\\'] = true, ['{'] = true, ['}'] = true, ['$'] = true, ['%'] = true, ['~'] = true, ['&'] = true,
    ['#'] = true, ['-'] = true, ['`'] = true, ['\''] = true, ['"'] = true, ['<'] = true, ['>'] = true, ['?'] = true,
    ['!'] = true,
};

/* The line end at p: a space, or with an empty line behind it a paragraph's end. */
static int newline(struct latex_worker *w, struct latex_frame *f)
{
    const char *p = f->p + 1;
    bool empty = false;

    while (p < f->end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        empty |= *p++ == '\n';
    f->p = p;
    if (empty)
        return latex_par(w);
    if (w->n_opens && w->open[w->n_opens - 1].op == OP_E_LINES)
        latex_out_break(w->out, 1);
    else
        latex_out_space(w->out);
    return 0;
}

/* '-', quotes, and what fonts make of two characters. */
static int ligature(struct latex_worker *w, struct latex_frame *f)
{
    static const struct {
        const char *from, *to;
        bool t1;
    } table[] = {{"---", "—", false}, {"--", "–", false}, {"``", "“", false},  {"''", "”", false}, {"`", "‘", false},
                 {"'", "’", false},   {",,", "„", true},  {"<<", "«", true},   {">>", "»", true},  {"?`", "¿", false},
                 {"!`", "¡", false}};
    size_t left = (size_t)(f->end - f->p);

    for (size_t i = 0; i < sizeof table / sizeof *table && !w->tt; i++) {
        size_t n = strlen(table[i].from);
        if (n > left || memcmp(f->p, table[i].from, n) != 0 || (table[i].t1 && !w->t1))
            continue;
        f->p += n;
        return latex_out_text(w->out, table[i].to, strlen(table[i].to));
    }
    return latex_out_text(w->out, f->p++, 1);
}

/* babel's shorthands of German: "a is ä. */
static int german(struct latex_worker *w, struct latex_frame *f)
{
    static const char from[] = "aouAOUs`'-=|~<>";
    static const char *const to[] = {"ä", "ö", "ü", "Ä", "Ö", "Ü", "ß", "„", "“", "", "-", "", "-", "«", "»"};
    const char *at = f->end - f->p > 1 ? strchr(from, f->p[1]) : NULL;

    if (!at || !*at || w->tt)
        return latex_out_text(w->out, f->p++, 1);
    f->p += 2;
    return latex_out_text(w->out, to[at - from], strlen(to[at - from]));
}

static int begin_dollar(struct latex_worker *w, struct latex_frame *f)
{
    f->p++;
    if (f->p < f->end && *f->p == '$' && !w->out->row) {
        f->p++;
        latex_out_break(w->out, 1);
        return latex_math_begin(w, 2, (struct span){"", 0});
    }
    return latex_math_begin(w, 1, (struct span){"", 0});
}

static int text_step(struct latex_worker *w)
{
    struct latex_frame *f = latex_top(w);
    const char *p = f->p, *end = f->end;

    for (;;) {
        while (p < end && !w->special[(unsigned char)*p])
            p++;
        if (p + 1 < end && p > f->p && *p == ' ' && !w->special[(unsigned char)p[1]])
            p += 2;
        else
            break;
    }
    if (p > f->p) {
        const char *from = f->p;
        f->p = p;
        return latex_out_text(w->out, from, (size_t)(p - from));
    }
    switch (*p) {
    case '\\': return latex_control(w);
    case '{': f->p++; return latex_open_group(w, true);
    case '}':
        f->p++;
        return w->n_groups && w->group[w->n_groups - 1].brace ? latex_close_groups(w, w->n_groups - 1) : 0;
    case '$': return begin_dollar(w, f);
    case '%':
        latex_skip_comment(f);
        if (f->p < f->end && *f->p == '\n')
            return latex_par(w);
        return 0;
    case '&': f->p++; return latex_cell(w);
    case '\n': return newline(w, f);
    case '#':
        f->p += f->env && end - p > 1 && p[1] == '#' ? 2 : 1;
        return latex_out_text(w->out, "#", 1);
    case '"':
        return span_is(w->lang, "de") ? german(w, f) : latex_out_text(w->out, f->p++, 1);
    case '-': case '`': case '\'': case '<': case '>': case '?': case '!': return ligature(w, f);
    default: /* ~, spaces, control characters */
        if (*p == w->short_verb)
            return latex_verb_text(w);
        f->p++;
        latex_out_space(w->out);
        return 0;
    }
}

int latex_run(struct latex_worker *w)
{
    int base = w->n_frames - 1;

    w->running++;
    while (w->n_frames > base && !w->ended) {
        if (w->expansions < 0)
            return latex_limit(w, "expansions");
        if (w->work < 0)
            return latex_limit(w, "work");
        if (w->users == 0 && w->args.used > 1 << 18)
            arena_reset(&w->args);
        if (!latex_more(w))
            TRY(latex_end_frame(w));
        else if (w->math)
            TRY(latex_math_step(w));
        else
            TRY(text_step(w));
    }
    w->running--;
    return 0;
}

/* ---- a document ---- */

/* Writes source as one line to w->field. */
static int run_field(struct latex_worker *w, struct span source)
{
    latex_out_reset(&w->field);
    w->n_frames = w->n_groups = w->n_opens = w->users = w->math = 0;
    w->ended = w->tt = false;
    w->out = &w->field;
    TRY(latex_push(w, (struct latex_arg){source, NULL, false}, LE_HARD | LE_GROUP));
    return latex_run(w);
}

static int put_title(struct latex_worker *w)
{
    buf_clear(&w->title);
    if (!w->title_source.n)
        return 0;
    TRY(run_field(w, w->title_source));
    return latex_resolve(w, buf_span(&w->field.b), &w->title);
}

/* A name of the author field: what stands before the first line's end, without the marks of
 * footnotes. */
static struct span one_author(struct span s)
{
    const char *line = s.n ? memchr(s.p, NEXT_LINE, s.n) : NULL;

    if (line)
        s.n = (size_t)(line - s.p);
    s = latex_trim(s);
    while (s.n && strchr(" ,;*0123456789", s.p[s.n - 1]))
        s.n--;
    while (s.n && strchr(" ,;", s.p[0]))
        s.p++, s.n--;
    return s;
}

static int put_authors(struct latex_worker *w)
{
    enum { NAME_MAX_BYTES = 1000 };

    buf_clear(&w->author);
    w->author_mode = true;
    for (int i = 0; i < w->n_authors; i++) {
        TRY(run_field(w, w->author_source[i]));
        struct span s = buf_span(&w->field.b);
        for (const char *p = s.p, *end = s.p + s.n; p && p < end;) {
            const char *to = memchr(p, AND, (size_t)(end - p));
            to = to ? to : end;
            struct span name = one_author((struct span){p, (size_t)(to - p)});
            p = to < end ? to + 1 : end;
            if (!name.n || name.n > NAME_MAX_BYTES || memchr(name.p, '@', name.n))
                continue;
            if (w->author.n)
                TRY(buf_puts(&w->author, ", "));
            TRY(buf_put_span(&w->author, name));
        }
    }
    w->author_mode = false;
    return 0;
}

static int put_date(struct latex_worker *w)
{
    buf_clear(&w->date);
    if (!w->date_source.n)
        return 0;
    TRY(run_field(w, w->date_source));
    return html_date(buf_span(&w->field.b), &w->date);
}

/* Whether the file has a preamble: \begin{document} that is not commented out. */
static bool has_preamble(struct span s)
{
    static const char begin[] = "\\begin{document}";
    const char *p = s.p, *end = s.p + s.n;

    while (p < end && (p = memmem(p, (size_t)(end - p), begin, sizeof begin - 1))) {
        const char *line = p;
        while (line > s.p && line[-1] != '\n' && line[-1] != '%')
            line--;
        if (line == s.p || line[-1] == '\n')
            return true;
        p++;
    }
    return false;
}

static void reset(struct latex_worker *w, const struct latex_files *files, size_t n, struct err *e)
{
    struct latex_out *const outs[] = {&w->body, &w->notes, &w->loose, &w->cells, &w->field, &w->nowhere};

    for (size_t i = 0; i < sizeof outs / sizeof *outs; i++) {
        latex_out_reset(outs[i]);
        outs[i]->b.max = w->conf.max_bytes;
        outs[i]->sink = false;
    }
    w->nowhere.sink = w->cells.row = w->field.row = true;
    w->m.max = w->tmp.max = w->conf.max_bytes;
    latex_table_reset(w->table);
    latex_refs_reset(w->refs);
    arena_reset(&w->kept);
    arena_reset(&w->args);
    w->kept.max = w->args.max = (size_t)256 << 20;
    w->files = files;
    w->e = e;
    w->n_frames = w->n_files = w->users = w->n_groups = w->n_opens = w->n_authors = w->n_notes = w->n_cites = 0;
    w->math = w->running = 0;
    w->short_verb = 0;
    memcpy(w->special, special, sizeof special);
    w->title_source = w->date_source = w->lang = (struct span){NULL, 0};
    w->tt = w->at = w->style = w->ended = w->author_mode = w->t1 = false;
    w->expansions = w->conf.max_expansions;
    w->work = (int64_t)n * 64 + (64 << 20);
}

static int run_document(struct latex_worker *w, struct span utf8, struct latex_doc *out)
{
    w->preamble = has_preamble(utf8);
    w->out = w->preamble ? &w->nowhere : &w->body;
    w->n_files = 1;
    TRY(latex_push(w, (struct latex_arg){utf8, NULL, false}, LE_FILE | LE_HARD));
    TRY(latex_run(w));
    if (w->math)
        TRY(latex_math_end(w));
    TRY(latex_close_to(w, 0));
    TRY(latex_close_groups(w, 0));
    w->out = &w->body;
    w->body.lists = w->body.quotes = 0;
    TRY(latex_out_unmark(&w->body, 0));
    TRY(latex_par(w));
    while (w->body.b.n && strchr(" \n", w->body.b.p[w->body.b.n - 1]))
        w->body.b.n--;
    if (w->body.b.n)
        TRY(buf_putc(&w->body.b, '\n'));
    TRY(put_title(w));
    TRY(put_authors(w));
    TRY(put_date(w));
    buf_clear(&w->notes.b);
    TRY(latex_resolve(w, buf_span(&w->body.b), &w->notes.b));
    out->text = buf_span(&w->notes.b);
    out->title = buf_span(&w->title);
    out->author = buf_span(&w->author);
    out->date = buf_span(&w->date);
    out->lang = w->lang;
    return 0;
}

int latex_extract(struct latex_worker *w, struct span utf8, const struct latex_files *files, struct latex_doc *out,
                  struct err *e)
{
    int rc;

    *out = (struct latex_doc){.text = {NULL, 0}};
    *e = (struct err){0};
    reset(w, files, utf8.n, e);
    rc = run_document(w, utf8, out);
    if (rc == 0 || e->code)
        return rc < 0 ? e->code : 0;
    if (rc == ERR_LIMIT)
        return latex_limit(w, "text");
    return err_set(e, rc, "out of memory for a document");
}

int latex_worker_new(struct latex_worker **out, const struct latex_conf *c, struct err *e)
{
    struct latex_worker *w = *out = calloc(1, sizeof *w);
    bool markdown = c->format == HTML_MARKDOWN;

    if (!w || latex_table_new(&w->table) < 0 || latex_refs_new(&w->refs) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    w->conf = *c;
    w->body.markdown = w->notes.markdown = w->loose.markdown = w->cells.markdown = markdown;
    return 0;
}

void latex_worker_free(struct latex_worker *w)
{
    if (!w)
        return;
    struct buf *const bufs[] = {&w->body.b, &w->notes.b, &w->loose.b, &w->cells.b, &w->field.b, &w->nowhere.b,
                                &w->title, &w->author, &w->date, &w->m, &w->tmp};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        buf_free(bufs[i]);
    arena_free(&w->kept);
    arena_free(&w->args);
    latex_table_free(w->table);
    latex_refs_free(w->refs);
    free(w);
}
