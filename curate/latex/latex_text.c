/* The main loop, and the commands of text. */
#include "curate/latex/latex_engine.h"

#include <stdlib.h>

#include <unicode/unorm2.h>

#include "base/utf8.h"
#include "curate/latex/latex_names.h"

/* ---- groups ---- */

int latex_open_group(struct latex_worker *w, bool brace)
{
    if (w->n_groups == LATEX_GROUPS)
        return latex_limit(w, "groups in groups");
    w->group[w->n_groups++] = (struct latex_group){.undo = latex_undo_mark(w), .marks = w->out->n_marks, .tt = w->tt,
                                                   .brace = brace, .out = w->out};
    return 0;
}

int latex_close_groups(struct latex_worker *w, int to)
{
    while (w->n_groups > to) {
        struct latex_group *g = &w->group[--w->n_groups];
        TRY(latex_undo(w, g->undo));
        w->tt = g->tt;
        if (g->out == w->out)
            TRY(latex_out_unmark(w->out, g->marks));
    }
    return 0;
}

int latex_end_frame(struct latex_worker *w)
{
    struct latex_frame f = *latex_top(w);

    w->n_frames--;
    w->users -= f.env != NULL;
    if (f.flags & LE_DOLLAR)
        TRY(latex_math_end(w));
    if (f.flags & LE_GROUP) {
        TRY(latex_close_to(w, f.opens));
        TRY(latex_close_groups(w, f.groups));
    }
    if (f.flags & LE_TEXT)
        TRY(latex_out_text(w->out, f.tail, strlen(f.tail)));
    if (f.flags & LE_BREAK)
        latex_out_break(w->out, 2);
    if (f.flags & LE_LINE)
        latex_out_break(w->out, 1);
    if (f.flags & LE_OUT)
        w->out = f.out;
    if (f.flags & LE_FILE)
        w->n_files--;
    return 0;
}

/* ---- paragraphs and notes ---- */

/* Footnotes stand behind the paragraph that they belong to. */
static int put_notes(struct latex_worker *w)
{
    TRY(latex_out_lines(&w->body, buf_span(&w->notes.b), true));
    latex_out_reset(&w->notes);
    return 0;
}

int latex_par(struct latex_worker *w)
{
    latex_out_break(w->out, 2);
    if (w->notes.b.n && w->out == &w->body && !w->body.lists)
        TRY(put_notes(w));
    return 0;
}

int latex_footnote(struct latex_worker *w)
{
    struct latex_arg a;

    latex_optional(w, &a);
    a = latex_arg(w);
    if (w->author_mode || w->out == &w->nowhere)
        return 0;
    if (w->out == &w->notes) { /* a note in a note */
        TRY(latex_out_text(w->out, "(", 1));
        TRY(latex_push(w, a, LE_HARD | LE_GROUP | LE_TEXT));
        latex_top(w)->tail = ")";
        return 0;
    }
    w->n_notes++;
    if (w->out->markdown && !w->out->sink) {
        struct buf b = {0};
        int rc = buf_printf(&b, "[^%d]", w->n_notes);
        w->out->space = false;
        if (rc == 0)
            rc = latex_out_text(w->out, b.p, b.n);
        latex_out_break(&w->notes, 2);
        if (rc == 0)
            rc = latex_out_text(&w->notes, b.p, b.n);
        if (rc == 0)
            rc = latex_out_text(&w->notes, ": ", 2);
        buf_free(&b);
        TRY(rc);
    } else {
        latex_out_break(&w->notes, 2);
    }
    TRY(latex_push(w, a, LE_HARD | LE_GROUP | LE_OUT));
    w->out = &w->notes;
    return 0;
}

/* ---- commands with arguments ---- */

/* sig without a quote before it: dropped and written arguments.  All are read first, then the
 * pieces are put on the stack, the last first.  With a quote the letters outside M and the signs
 * are text. */
int latex_args(struct latex_worker *w, const char *sig)
{
    struct latex_arg piece[12], a;
    char what[12] = {0};
    int n = 0;
    bool words = *sig == '\'';

    for (const char *p = sig + words; *p && n < 12; p++) {
        what[n] = *p;
        switch (*p) {
        case 'M': piece[n++] = latex_arg(w); continue;
        case '|': case '.': case '_':
            piece[n++] = (struct latex_arg){{p, 1}, NULL, false};
            continue;
        default: break;
        }
        if (words && *p != 'p') {
            const char *from = p;
            while (p[1] && !strchr("M|._p", p[1]))
                p++;
            what[n] = 'w';
            piece[n++] = (struct latex_arg){{from, (size_t)(p + 1 - from)}, NULL, false};
            continue;
        }
        switch (*p) {
        case 's': latex_star(w, '*'); break;
        case 'o': latex_optional(w, &a); break;
        case 'p': latex_delimited(w, '(', ')', &a); break;
        case 'a': latex_delimited(w, '<', '>', &a); break;
        case 'm': latex_delimited(w, '(', ')', &a); latex_arg(w); break;
        case 'd': latex_skip_dimension(w); break;
        default:
            what[n] = 'w';
            piece[n++] = (struct latex_arg){{p, strcspn(p, "M|._")}, NULL, false};
            p += piece[n - 1].text.n - 1;
            break;
        }
    }
    /* What is written at once and what waits behind an argument. */
    int i = 0;
    while (i < n && what[i] != 'M') {
        if (what[i] == '|')
            TRY(latex_par(w));
        else if (what[i] == '.')
            latex_out_break(w->out, 1);
        else if (what[i] == '_')
            latex_out_space(w->out);
        else
            TRY(latex_out_text(w->out, piece[i].text.p, piece[i].text.n));
        i++;
    }
    for (int k = n - 1; k >= i; k--) {
        static const char *const signs[][2] = {{"|", "\\par "}, {".", "\\newline "}, {"_", " "}};
        if (what[k] == 'M') {
            TRY(latex_push(w, piece[k], LE_HARD | LE_GROUP));
            continue;
        }
        for (int s = 0; s < 3; s++)
            if (what[k] == signs[s][0][0])
                piece[k].text = span_of(signs[s][1]);
        TRY(latex_push(w, piece[k], 0));
    }
    return 0;
}

int latex_section(struct latex_worker *w, const struct latex_builtin *b)
{
    static const char *const counters[] = {"", "chapter", "section", "subsection", "subsubsection"};
    struct latex_arg a, other;
    bool star = latex_star(w, '*');

    latex_delimited(w, '<', '>', &other);
    latex_optional(w, &other);
    a = latex_arg(w);
    if (!star)
        TRY(latex_step(w, span_of(counters[b->sig[0] - '0']), 1));
    TRY(latex_par(w));
    w->out->heading = b->sig[0] - '0';
    return latex_push(w, a, LE_HARD | LE_GROUP | LE_BREAK);
}

/* \paragraph: a heading in the line. */
int latex_run_in(struct latex_worker *w)
{
    struct latex_arg a, other;

    latex_star(w, '*');
    latex_optional(w, &other);
    a = latex_arg(w);
    TRY(latex_par(w));
    TRY(latex_push(w, (struct latex_arg){span_of(" "), NULL, false}, 0));
    TRY(latex_push(w, a, LE_HARD | LE_GROUP));
    TRY(latex_open_group(w, false));
    latex_out_mark(w->out, 'b');
    return 0;
}

int latex_font(struct latex_worker *w, const struct latex_builtin *b, bool argument)
{
    struct latex_arg a, other;

    if (argument) {
        latex_star(w, '*');
        while (latex_optional(w, &other))
            ;
        a = latex_arg(w);
        TRY(latex_push(w, a, LE_HARD | LE_GROUP));
        TRY(latex_open_group(w, false));
    }
    if (argument || (w->n_groups && w->group[w->n_groups - 1].brace)) {
        if (b->sig[0] != 'n')
            latex_out_mark(w->out, b->sig[0]);
        if (b->sig[0] == 't' || !argument)
            w->tt = b->sig[0] == 't';
    }
    return 0;
}

int latex_put_url(struct latex_worker *w)
{
    struct latex_frame *f;
    struct latex_arg a;
    struct span s;

    latex_skip_space(w);
    if (!latex_more(w))
        return 0;
    f = latex_top(w);
    if ((unsigned char)*f->p >= 0x80)
        return 0;
    if (*f->p != '{') { /* \url|...| */
        const char *to = memchr(f->p + 1, *f->p, (size_t)(f->end - f->p - 1));
        w->work -= (to ? to : f->end) - f->p;
        if (!to)
            return 0;
        s = (struct span){f->p + 1, (size_t)(to - f->p - 1)};
        f->p = to + 1;
    } else {
        const char *p = f->p + 1, *to = p;
        for (int depth = 0; to < f->end && (*to != '}' || depth); to++) /* a '%' is none of a comment */
            if (*to == '\\' && to + 1 < f->end)
                to++;
            else
                depth += *to == '{' ? 1 : *to == '}' ? -1 : 0;
        w->work -= to - p;
        a = (struct latex_arg){{p, (size_t)(to - p)}, f->env, false};
        f->p = to < f->end ? to + 1 : to;
        s = latex_flat_word(w, a);
    }
    buf_clear(&w->tmp);
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\n' || (s.p[i] == '\\' && i + 1 < s.n && strchr("%#&_{}~", s.p[i + 1])))
            continue;
        TRY(buf_putc(&w->tmp, s.p[i]));
    }
    return latex_out_text(w->out, w->tmp.p, w->tmp.n);
}

int latex_put_character(struct latex_worker *w)
{
    struct latex_frame *f;
    uint32_t cp = 0;
    int base = 10;
    char utf8[4];

    latex_skip_space(w);
    if (!latex_more(w))
        return 0;
    f = latex_top(w);
    bool brace = *f->p == '{';
    f->p += brace;
    if (f->p < f->end && (*f->p == '"' || *f->p == '\'')) {
        base = *f->p == '"' ? 16 : 8;
        f->p++;
    } else if (f->p + 1 < f->end && *f->p == '`') {
        f->p += f->p[1] == '\\' && f->end - f->p > 2 ? 2 : 1;
        struct span c = latex_character(f);
        utf8_next(c.p, f->end, &cp);
        base = 0;
    }
    for (; base && f->p < f->end && cp < 0x110000; f->p++) {
        char c = *f->p;
        int v = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
        if (v >= base)
            break;
        cp = cp * (uint32_t)base + (uint32_t)v;
    }
    if (f->p < f->end && *f->p == (brace ? '}' : ' '))
        f->p++;
    if (cp < 32 || cp == 127 || cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000))
        return 0;
    return latex_out_text(w->out, utf8, (size_t)utf8_put(utf8, cp));
}

/* \xspace: a space unless punctuation follows. */
int latex_xspace(struct latex_worker *w)
{
    char c;

    if (w->math || !latex_more(w))
        return 0;
    c = *latex_top(w)->p;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '(' || c == '$' || c == '`' ||
        (unsigned char)c >= 0x80)
        latex_out_space(w->out);
    if (c == '\\' && latex_top(w)->end - latex_top(w)->p > 1 && !strchr("/\\ ,;:!}", latex_top(w)->p[1]))
        latex_out_space(w->out);
    return 0;
}

int latex_csname(struct latex_worker *w, bool argument)
{
    struct latex_frame *f;
    const char *to;
    struct span name;

    if (argument) {
        name = latex_flat_word(w, latex_arg(w));
    } else {
        if (!latex_more(w))
            return 0;
        f = latex_top(w);
        to = memmem(f->p, (size_t)(f->end - f->p), "\\endcsname", 10);
        w->work -= (to ? to : f->end) - f->p;
        if (!to)
            return 0;
        struct latex_arg a = {{f->p, (size_t)(to - f->p)}, f->env, true};
        f->p = to + 10;
        name = latex_flat_word(w, a);
    }
    const struct latex_def *d = latex_lookup(w, name);
    if (!d)
        return 0;
    return d->kind == LATEX_MACRO ? latex_expand(w, d) : d->kind == LATEX_BUILTIN ? latex_command(w, d->builtin, name) : 0;
}

/* ---- about the document ---- */

int latex_remember_author(struct latex_worker *w)
{
    struct latex_arg a;

    latex_optional(w, &a);
    a = latex_arg(w);
    if (w->n_authors < (int)(sizeof w->author_source / sizeof *w->author_source))
        w->author_source[w->n_authors++] = latex_flat(w, a);
    return 0;
}

void latex_set_language(struct latex_worker *w, struct span s, bool last)
{
    const char *p = s.p, *end = s.p + s.n, *code;

    while (p < end) {
        const char *to = memchr(p, ',', (size_t)(end - p));
        to = to ? to : end;
        struct span one = latex_trim((struct span){p, (size_t)(to - p)});
        if (one.n > 5 && memcmp(one.p, "main=", 5) == 0) {
            one.p += 5;
            one.n -= 5;
        }
        code = latex_language(one);
        if (code && (last || !w->lang.n))
            w->lang = span_of(code);
        p = to < end ? to + 1 : end;
    }
}

static int input_file(struct latex_worker *w, struct span name, bool style)
{
    struct span bytes;
    int rc;

    enum { COST = 100 }; /* looking for a file costs as much as so many macros */

    if (!w->files || !name.n || w->n_files >= LATEX_FILES)
        return 0;
    w->expansions -= COST;
    rc = w->files->find(w->files->arg, name, &bytes, w->e);
    if (rc <= 0)
        return rc;
    w->n_files++;
    w->work -= (int64_t)bytes.n;
    return latex_push(w, (struct latex_arg){bytes, NULL, style}, LE_FILE | LE_HARD);
}

int latex_use_package(struct latex_worker *w, bool class)
{
    struct latex_arg options = {{"", 0}, NULL, false};
    struct span names, option = {"", 0};
    char file[128];

    if (latex_optional(w, &options))
        option = latex_flat(w, options);
    names = latex_flat_word(w, latex_arg(w));
    latex_optional(w, &options);
    if (class || span_is(names, "babel"))
        latex_set_language(w, option, true);
    if (class && (span_is(names, "ltxdoc") || span_is(names, "ltxguide") || span_is(names, "ltxdockit")))
        latex_short_verb(w, '|');
    if (span_is(names, "fontenc") && option.n)
        w->t1 = true;
    for (const char *p = names.p, *end = p + names.n; !class && p < end;) {
        const char *to = memchr(p, ',', (size_t)(end - p));
        to = to ? to : end;
        struct span one = latex_trim((struct span){p, (size_t)(to - p)});
        p = to < end ? to + 1 : end;
        if (!one.n || one.n + 5 > sizeof file)
            continue;
        memcpy(file, one.p, one.n);
        memcpy(file + one.n, ".sty", 5);
        int n = w->n_frames;
        TRY(input_file(w, (struct span){file, one.n + 4}, true));
        if (w->n_frames > n) { /* run at once: it may be the first of several */
            bool style = w->style;
            struct latex_out *out = w->out;
            if (w->running >= 8) {
                w->n_frames--;
                w->n_files--;
                continue;
            }
            w->style = true;
            w->out = &w->nowhere;
            TRY(latex_run(w));
            w->style = style;
            w->out = out;
        }
    }
    return 0;
}

/* \input{x}, \input x, \import{dir/}{x} */
int latex_input(struct latex_worker *w, struct span command)
{
    struct span name, dir = {"", 0};
    struct latex_frame *f;

    latex_skip_space(w);
    if (!latex_more(w))
        return 0;
    f = latex_top(w);
    if (*f->p == '{') {
        name = latex_flat_word(w, latex_arg(w));
    } else {
        const char *p = f->p;
        while (f->p < f->end && !strchr(" \t\n}%\\", *f->p))
            f->p++;
        name = (struct span){p, (size_t)(f->p - p)};
    }
    if (span_is(command, "import") || span_is(command, "subimport")) {
        char path[512];
        dir = name;
        name = latex_flat_word(w, latex_arg(w));
        bool slash = dir.n && dir.p[dir.n - 1] != '/';
        if (dir.n + name.n + slash < sizeof path) {
            memcpy(path, dir.p, dir.n);
            path[dir.n] = '/';
            memcpy(path + dir.n + slash, name.p, name.n);
            return input_file(w, arena_dup(&w->kept, (struct span){path, dir.n + name.n + slash}), false);
        }
    }
    return input_file(w, name, false);
}

/* \newacronym{key}{short}{long}; \gls{key} */
int latex_acronym(struct latex_worker *w, const struct latex_builtin *b)
{
    struct latex_arg a, other;
    struct span key, found;
    struct buf name = {0};
    int rc;

    latex_star(w, '*');
    latex_optional(w, &other);
    key = latex_flat_word(w, latex_arg(w));
    if (b->sig[0] == 'd') {
        struct latex_def d = {.kind = LATEX_MACRO};
        if (!latex_optional(w, &a) && !(latex_more(w) && *latex_top(w)->p == '{'))
            return 0;
        struct span shorter = a.text.n ? latex_flat(w, a) : latex_flat(w, latex_arg(w)), longer = latex_flat(w, latex_arg(w));
        for (int i = 0; i < 2; i++) {
            d.body = i ? longer : shorter;
            buf_clear(&name);
            rc = buf_printf(&name, "gls%c%.*s", i ? 'l' : 's', (int)key.n, key.p);
            found = arena_dup(&w->kept, buf_span(&name));
            if (rc == 0 && found.p && d.body.n)
                rc = latex_define(w, found, &d);
            if (rc < 0)
                break;
        }
        buf_free(&name);
        return rc;
    }
    rc = buf_printf(&name, "gls%c%.*s", b->sig[0], (int)key.n, key.p);
    const struct latex_def *d = rc == 0 ? latex_lookup(w, buf_span(&name)) : NULL;
    buf_free(&name);
    return latex_push(w, (struct latex_arg){d ? d->body : key, NULL, false}, LE_HARD | LE_GROUP);
}

int latex_abstract(struct latex_worker *w)
{
    struct latex_arg a, other;

    latex_optional(w, &other);
    a = latex_arg(w);
    if (!a.text.n)
        return 0;
    TRY(latex_push(w, a, LE_HARD | LE_GROUP | LE_BREAK | LE_OUT));
    w->out = &w->body; /* also from the preamble */
    w->body.sink = false;
    return latex_par(w);
}

/* ---- accents ---- */

/* What the argument of an accent begins with: a letter, or a command that stands for one. */
static const char *accent_base(struct latex_worker *w, struct span s, uint32_t *base)
{
    const char *end = s.p + s.n;

    while (s.p < end && (*s.p == '{' || *s.p == ' '))
        s.p++;
    *base = 0;
    if (s.p == end)
        return end;
    if (*s.p != '\\')
        return s.p + utf8_next(s.p, end, base);
    const char *p = s.p + 1;
    while (p < end && ((*p | 32) >= 'a' && (*p | 32) <= 'z'))
        p++;
    struct span name = {s.p + 1, (size_t)(p - s.p - 1)};
    const struct latex_builtin *b = latex_builtin_of(latex_lookup(w, name));
    if (span_is(name, "i") || span_is(name, "j"))
        *base = (unsigned char)name.p[0];
    else if (b && b->op == OP_TEXT && *b->sig)
        utf8_next(b->sig, b->sig + strlen(b->sig), base);
    return p;
}

int latex_accent(struct latex_worker *w, const char *combining)
{
    UErrorCode status = U_ZERO_ERROR;
    const UNormalizer2 *nfc = unorm2_getNFCInstance(&status);
    struct span s = latex_flat_word(w, latex_arg(w));
    const char *rest;
    uint32_t base, mark;
    char out[8];
    int n;

    utf8_next(combining, combining + strlen(combining), &mark);
    rest = accent_base(w, s, &base);
    if (!base) { /* the accent alone */
        if (mark == 0x0303 || mark == 0x0302)
            return latex_out_text(w->out, mark == 0x0303 ? "~" : "^", 1);
        return 0;
    }
    UChar32 whole = U_SUCCESS(status) ? unorm2_composePair(nfc, (UChar32)base, (UChar32)mark) : -1;
    n = utf8_put(out, whole > 0 ? (uint32_t)whole : base);
    if (whole <= 0)
        n += utf8_put(out + n, mark);
    TRY(latex_out_text(w->out, out, (size_t)n));
    for (const char *end = s.p + s.n; rest < end; rest++)
        if (*rest != '{' && *rest != '}')
            TRY(latex_out_text(w->out, rest, 1));
    return 0;
}
