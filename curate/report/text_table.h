/* curate/report/text_table.h -- tables for a terminal: the first column to the left, others to the right. */
#ifndef CURATE_TEXT_TABLE_H
#define CURATE_TEXT_TABLE_H

#include "base/mem.h"

/* Start with zeroes and the number of columns.  Cells are added row by row. */
struct text_table {
    int columns;
    struct buf bytes; /* cells, each with a NUL behind it */
};

/* A cell; what controls a terminal is escaped.  Errors of buf_put. */
int text_table_add(struct text_table *t, struct span cell);
int text_table_add_int(struct text_table *t, uint64_t v);
/* Six significant digits; "-" for NAN. */
int text_table_add_num(struct text_table *t, double v);
/* As the format of one double says; "-" for what is not finite. */
int text_table_add_as(struct text_table *t, const char *format, double v);
/* n cells. */
int text_table_add_cells(struct text_table *t, int n, const char *const *cell);
/* Appends the table with `indent` blanks before each row, and empties it. */
int text_table_put(struct text_table *t, int indent, struct buf *b);
void text_table_free(struct text_table *t);
#endif
