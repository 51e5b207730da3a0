#include "curate/report/text_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/err.h"
#include "curate/report/reject.h"

enum { COLUMNS = 16, CELL_BYTES = 120 };

int text_table_add(struct text_table *t, struct span cell)
{
    TRY(put_visible(&t->bytes, cell, CELL_BYTES));
    return buf_putc(&t->bytes, '\0');
}

int text_table_add_int(struct text_table *t, uint64_t v)
{
    char s[24];

    snprintf(s, sizeof s, "%" PRIu64, v);
    return text_table_add(t, span_of(s));
}

int text_table_add_num(struct text_table *t, double v)
{
    char s[32] = "-";

    if (!isnan(v))
        snprintf(s, sizeof s, "%.6g", v);
    return text_table_add(t, span_of(s));
}

int text_table_add_as(struct text_table *t, const char *format, double v)
{
    char s[64] = "-";

    if (isfinite(v))
        snprintf(s, sizeof s, format, v);
    return text_table_add(t, span_of(s));
}

static int width(const char *s)
{
    int n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

int text_table_add_cells(struct text_table *t, int n, const char *const *cell)
{
    for (int i = 0; i < n; i++)
        TRY(text_table_add(t, span_of(cell[i])));
    return 0;
}

int text_table_put(struct text_table *t, int indent, struct buf *b)
{
    int wide[COLUMNS] = {0}, i = 0;

    for (const char *p = t->bytes.p; p < t->bytes.p + t->bytes.n; p += strlen(p) + 1, i++) {
        int *w = &wide[i % t->columns];
        *w = width(p) > *w ? width(p) : *w;
    }
    i = 0;
    for (const char *p = t->bytes.p; p < t->bytes.p + t->bytes.n; p += strlen(p) + 1, i++) {
        int column = i % t->columns, blanks = wide[column] - width(p);

        TRY(buf_printf(b, "%*s", column ? 2 + blanks : indent, ""));
        TRY(buf_puts(b, p));
        if (column == 0 && t->columns > 1)
            TRY(buf_printf(b, "%*s", blanks, ""));
        if (column == t->columns - 1)
            TRY(buf_putc(b, '\n'));
    }
    buf_clear(&t->bytes);
    return 0;
}

void text_table_free(struct text_table *t)
{
    buf_free(&t->bytes);
}
