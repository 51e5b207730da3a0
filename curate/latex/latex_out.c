#include "curate/latex/latex_out.h"

void latex_out_reset(struct latex_out *o)
{
    struct latex_out empty = {.b = o->b, .markdown = o->markdown, .sink = o->sink, .row = o->row};

    empty.b.n = 0;
    *o = empty;
}

void latex_out_break(struct latex_out *o, int n)
{
    if (o->row) {
        o->space = true;
        return;
    }
    if (n > 1 && o->lists)
        n = 1;
    if (n > o->breaks)
        o->breaks = n;
}

static const char *mark_of(char kind)
{
    return kind == 'b' ? "**" : kind == 'i' ? "*" : "`";
}

static int put_prefix(struct latex_out *o)
{
    for (int i = 0; o->markdown && i < o->quotes; i++)
        TRY(buf_puts(&o->b, "> "));
    for (int i = 1; i < o->lists; i++)
        TRY(buf_puts(&o->b, "  "));
    if (o->item && o->markdown && o->number > 0)
        TRY(buf_printf(&o->b, "%d. ", o->number));
    else if (o->item)
        TRY(buf_puts(&o->b, "- "));
    else if (o->lists)
        TRY(buf_puts(&o->b, "  "));
    for (; o->markdown && o->heading > 0; o->heading--)
        TRY(buf_puts(&o->b, o->heading > 1 ? "#" : "# "));
    o->item = false;
    o->heading = 0;
    return 0;
}

/* Ends the emphasis that would run over a line's end; it is not taken up again. */
static int end_marks(struct latex_out *o)
{
    while (o->n_written > 0)
        TRY(buf_puts(&o->b, mark_of(o->mark[--o->n_written])));
    return 0;
}

static void trim_line(struct latex_out *o)
{
    while (o->b.n && (o->b.p[o->b.n - 1] == ' ' || o->b.p[o->b.n - 1] == '\t'))
        o->b.n--;
}

static int begin_line(struct latex_out *o)
{
    if (o->n_written) {
        TRY(end_marks(o));
        o->n_marks = 0;
    }
    trim_line(o);
    for (int i = 0; o->b.n && i < (o->breaks > 1 ? 2 : 1); i++)
        TRY(buf_putc(&o->b, '\n'));
    return put_prefix(o);
}

/* Appends nothing, but whatever is due before text. */
static int begin(struct latex_out *o)
{
    if (o->sink)
        return 0;
    if (o->breaks || !o->b.n)
        TRY(begin_line(o));
    else if (o->space && o->b.p[o->b.n - 1] != ' ' && o->b.p[o->b.n - 1] != LATEX_CELL)
        TRY(buf_putc(&o->b, ' '));
    o->breaks = 0;
    o->space = false;
    for (; o->n_written < o->n_marks; o->n_written++)
        TRY(buf_puts(&o->b, mark_of(o->mark[o->n_written])));
    return 0;
}

int latex_out_text(struct latex_out *o, const char *p, size_t n)
{
    if (o->sink)
        return 0;
    if (o->breaks || o->space || !o->b.n || o->n_written < o->n_marks)
        TRY(begin(o));
    return buf_put(&o->b, p, n);
}

int latex_out_lines(struct latex_out *o, struct span s, bool block)
{
    const char *p = s.p, *end;

    if (!s.n)
        return 0;
    end = p + s.n;
    while (end > p && strchr(" \t\n", end[-1]))
        end--;
    for (const char *q = p; q < end && strchr(" \t\n", *q); q++)
        if (*q == '\n')
            p = q + 1;
    if (p == end || o->sink)
        return 0;
    latex_out_break(o, block ? 2 : 1);
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p)), *to = nl ? nl : end;
        while (to > p && (to[-1] == ' ' || to[-1] == '\t'))
            to--;
        TRY(begin(o));
        TRY(buf_put(&o->b, p, (size_t)(to - p)));
        if (!nl)
            break;
        p = nl + 1;
        if (o->row)
            o->space = true;
        else
            o->breaks = 1;
    }
    latex_out_break(o, block ? 2 : 1);
    return 0;
}

/* ---- emphasis ---- */

void latex_out_mark(struct latex_out *o, char kind)
{
    if (!o->markdown || o->sink || o->n_marks == LATEX_MARKS_MAX || memchr(o->mark, kind, (size_t)o->n_marks) ||
        (o->n_marks && o->mark[o->n_marks - 1] == 't'))
        return;
    o->mark[o->n_marks++] = kind;
}

int latex_out_unmark(struct latex_out *o, int n_marks)
{
    while (o->n_marks > n_marks) {
        o->n_marks--;
        if (o->n_written > o->n_marks)
            TRY(buf_puts(&o->b, mark_of(o->mark[--o->n_written])));
    }
    return 0;
}

/* ---- rows ---- */

static struct span trimmed(const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p++;
    while (end > p && end[-1] == ' ')
        end--;
    return (struct span){p, (size_t)(end - p)};
}

static int put_cells(struct latex_out *o, struct span row, int n, int columns)
{
    const char *p = row.p, *end = row.p + row.n;
    bool rules = o->markdown && columns > 1;

    for (int i = 0; i < n || (rules && i < columns); i++) {
        const char *sep = p < end ? memchr(p, LATEX_CELL, (size_t)(end - p)) : NULL, *to = sep ? sep : end;
        struct span cell = i < n ? trimmed(p, to) : (struct span){NULL, 0};
        if (i || rules)
            TRY(buf_puts(&o->b, i ? " | " : "| "));
        TRY(buf_put(&o->b, cell.p, cell.n));
        p = sep ? sep + 1 : end;
    }
    return rules ? buf_puts(&o->b, " |") : 0;
}

int latex_out_row(struct latex_out *o, struct span row, int *columns)
{
    bool first = *columns == 0;
    int n = 0, last = 0;

    if (o->sink)
        return 0;
    for (size_t i = 0; i < row.n; i++)
        if (row.p[i] == LATEX_CELL)
            n++;
        else if (row.p[i] != ' ')
            last = n + 1;
    if (!last)
        return 0;
    if (first)
        *columns = n + 1;
    latex_out_break(o, 1);
    TRY(begin(o));
    TRY(put_cells(o, row, last, *columns));
    latex_out_break(o, 1);
    if (!first || !o->markdown || *columns < 2)
        return 0;
    TRY(begin(o));
    for (int i = 0; i < *columns; i++)
        TRY(buf_puts(&o->b, i ? " --- |" : "| --- |"));
    latex_out_break(o, 1);
    return 0;
}
