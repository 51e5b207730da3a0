#include "base/parquet_table.h"

#include <stdlib.h>

#include "base/parquet.h"

enum { AHEAD = 1 << 20 }; /* bytes of a column a request */

struct parquet_table {
    struct range_in *ranges;
    struct parquet_reader reader;
    bool started;    /* the group has been begun */
    uint64_t before; /* rows of the groups before it */
};

static int read_at(void *ranges, uint64_t at, void *p, size_t n, struct err *e)
{
    return range_in_read(ranges, at, p, n, e);
}

int parquet_table_open(struct parquet_table **out, struct range_in *r, bool (*keep)(void *arg, struct span name), void *arg,
                       struct err *e)
{
    struct parquet_table *t = calloc(1, sizeof *t);
    int rc;

    *out = NULL;
    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory for '%s'", range_in_name(r));
    t->ranges = r;
    t->reader.source = (struct parquet_source){.read = read_at, .arg = r, .ahead = AHEAD};
    rc = range_in_size(r, &t->reader.source.size, e);
    if (rc == 0 && (rc = parquet_reader_open_some(&t->reader, keep, arg, e)) < 0)
        err_wrap(e, "'%s'", range_in_name(r));
    if (rc < 0)
        parquet_table_close(t);
    else
        *out = t;
    return rc;
}

void parquet_table_close(struct parquet_table *t)
{
    if (!t)
        return;
    parquet_reader_close(&t->reader);
    free(t);
}

bool parquet_table_has(const struct parquet_table *t, const char *column)
{
    for (const struct parquet_node *k = t->reader.meta.root->child; k; k = k->next)
        if (span_is(k->name, column))
            return true;
    return false;
}

/* Goes behind the group in hand. */
static void end_group(struct parquet_table *t)
{
    t->before += t->reader.meta.group[t->reader.group++].rows;
    t->reader.row = 0;
    t->started = false;
}

int parquet_table_next(struct parquet_table *t, struct buf *line, struct err *e)
{
    while (t->reader.group < t->reader.meta.n_groups) {
        int rc;

        if (!t->started)
            parquet_reader_start(&t->reader);
        t->started = true;
        rc = parquet_reader_row(&t->reader, line, e);
        if (rc < 0)
            err_wrap(e, "'%s'", range_in_name(t->ranges));
        if (rc == ERR_FORMAT || rc == ERR_LIMIT || rc == ERR_UNSUPPORTED || rc == 0)
            end_group(t);
        if (rc != 0)
            return rc;
    }
    return 0;
}

uint64_t parquet_table_row(const struct parquet_table *t)
{
    return t->before + t->reader.row;
}
