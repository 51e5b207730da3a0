/* curate/latex/latex_out.h -- text as it comes out: words, blocks, lists, rows.  Inside latex_*.c only.
 *
 * The same form as HTML's (curate/html/html_text.h).  Functions return 0, ERR_NOMEM or ERR_LIMIT.
 */
#ifndef CURATE_LATEX_OUT_H
#define CURATE_LATEX_OUT_H

#include "base/err.h"
#include "base/mem.h"

enum { LATEX_MARKS_MAX = 16 };

struct latex_out {
    struct buf b;
    bool markdown;
    bool sink;    /* what is written goes nowhere */
    int breaks;   /* line ends due before the next text */
    bool space;   /* a space is due */
    bool row;     /* one line: breaks are spaces */
    int lists, quotes, heading;
    bool item;    /* "- " is due, with */
    int number;   /*   this number if positive */
    char mark[LATEX_MARKS_MAX]; /* open emphasis of Markdown: 'b', 'i', 't' */
    int n_marks, n_written;     /* marks, and those whose beginning is written */
};

/* Empties o; keeps memory, markdown and b.max. */
void latex_out_reset(struct latex_out *o);
/* n 1: the next text begins a line; 2: a paragraph. */
void latex_out_break(struct latex_out *o, int n);
static inline void latex_out_space(struct latex_out *o)
{
    o->space = true;
}
/* Appends text without white space at its ends. */
int latex_out_text(struct latex_out *o, const char *p, size_t n);
/* Appends lines as they are, each behind the prefix of lists and quotations; an empty line
 * before and after if block.  White space at ends of lines and empty lines at both ends go. */
int latex_out_lines(struct latex_out *o, struct span s, bool block);
/* Emphasis from here on; its end.  Nothing happens in plain text. */
void latex_out_mark(struct latex_out *o, char kind);
int latex_out_unmark(struct latex_out *o, int n_marks); /* down to that many */
/* A row: cells are set apart by LATEX_CELL.  columns: of the rows before (0: this is the first),
 * is updated. */
enum { LATEX_CELL = '\x1f' };
int latex_out_row(struct latex_out *o, struct span row, int *columns);
#endif
