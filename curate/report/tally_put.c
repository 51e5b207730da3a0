#include "curate/report/tally_put.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"

size_t tally_shown(int64_t top, size_t n)
{
    return top && (uint64_t)top < n ? (size_t)top : n;
}

int tally_put_row(const struct name_tally *t, size_t k, const char *key, struct buf *b)
{
    const struct name_count *n = &t->count[k];

    TRY(buf_putc(b, '{'));
    TRY(json_put_key(b, key));
    TRY(json_put_string(b, t->names.name[k]));
    TRY(json_put_count(b, "documents", n->docs));
    TRY(json_put_count(b, "bytes", n->bytes));
    TRY(json_put_count(b, "characters", n->chars));
    TRY(json_put_count(b, "words", n->words));
    if (n->missed)
        TRY(json_put_count(b, "missed", n->missed));
    return buf_putc(b, '}');
}

int tally_put_json(const struct name_tally *t, const char *name, const char *key, int64_t top, struct buf *b)
{
    size_t *order = name_tally_order(t);
    int rc = order ? json_put_key(b, name) : ERR_NOMEM;

    if (rc == 0)
        rc = buf_putc(b, '{');
    if (rc == 0)
        rc = json_put_count(b, t->missed ? "kept" : "different", t->names.n);
    if (rc == 0)
        rc = json_put_count(b, "missed", t->missed);
    if (rc == 0)
        rc = buf_puts(b, ",\"top\":[");
    for (size_t i = 0; i < tally_shown(top, t->names.n) && rc == 0; i++) {
        rc = i ? buf_putc(b, ',') : 0;
        if (rc == 0)
            rc = tally_put_row(t, order[i], key, b);
    }
    free(order);
    return rc < 0 ? rc : buf_puts(b, "]}");
}

int tally_put_text(const struct name_tally *t, const char *name, uint64_t docs, int64_t top, struct text_table *table,
                   struct buf *b)
{
    static const char *const heads[] = {"", "documents", "%", "bytes", "characters", "words"};
    size_t *order = name_tally_order(t);
    int rc = order ? 0 : ERR_NOMEM;

    table->columns = 6;
    if (rc == 0)
        rc = text_table_add_cells(table, 6, heads);
    for (size_t i = 0; i < tally_shown(top, t->names.n) && rc == 0; i++) {
        const struct name_count *n = &t->count[order[i]];
        struct span s = t->names.name[order[i]];

        rc = text_table_add(table, s.n ? s : span_of("(none)"));
        if (rc == 0)
            rc = text_table_add_int(table, n->docs);
        if (rc == 0)
            rc = text_table_add_num(table, round(1e4 * (double)n->docs / (double)docs) / 100);
        if (rc == 0)
            rc = text_table_add_int(table, n->bytes);
        if (rc == 0)
            rc = text_table_add_int(table, n->chars);
        if (rc == 0)
            rc = text_table_add_int(table, n->words);
    }
    free(order);
    TRY(rc);
    TRY(buf_printf(b, "\n%s: %zu%s\n", name, t->names.n, t->missed ? " kept" : ""));
    if (t->missed)
        TRY(buf_printf(b, "  too many to count exactly: each may have %llu documents more, and so many may be missing here\n",
                       (unsigned long long)t->missed));
    return text_table_put(table, 2, b);
}
