#include "curate/latex/latex_engine.h"

#include <stdlib.h>

#include "curate/latex/latex_names.h"

enum { AND = '\x1d', NEXT_LINE = '\x1e' };

void latex_conf_init(struct latex_conf *c)
{
    *c = (struct latex_conf){.max_bytes = 16 << 20, .max_expansions = 1000000};
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
        for (const char *p = s.p, *end = s.n ? s.p + s.n : p; p < end;) {
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
    return html_date(&w->dates, w->lang, buf_span(&w->field.b), &w->date);
}

/* Whether the file has a preamble: \begin{document} that is not commented out. */
static bool has_preamble(struct span s)
{
    static const char begin[] = "\\begin{document}";
    const char *p = s.p, *end = s.p + s.n;

    while (p && p < end && (p = memmem(p, (size_t)(end - p), begin, sizeof begin - 1))) {
        const char *line = p;
        while (line > s.p && line[-1] != '\n' && line[-1] != '%')
            line--;
        if (line == s.p || line[-1] == '\n')
            return true;
        p = memchr(p, '\n', (size_t)(end - p)); /* the rest of the line is a comment */
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
    if (!utf8.n)
        utf8.p = "";
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
    html_dates_free(&w->dates);
    free(w);
}
