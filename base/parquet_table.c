#include "base/parquet_table.h"

#include <stdlib.h>

#include "base/parquet.h"

enum { AHEAD = 1 << 20 }; /* bytes of a column a request */

struct parquet_table {
    struct parquet_meta meta;
    bool *unwanted; /* a row group each */
    int users;
};

struct parquet_scan {
    struct parquet_table *table;
    struct range_in *ranges;
    struct parquet_reader reader;
    uint64_t first; /* row of the group */
};

static int read_at(void *ranges, uint64_t at, void *p, size_t n, struct err *e)
{
    return range_in_read(ranges, at, p, n, e);
}

/* ---- a table ---- */

/* Finds the row groups that are not wanted, while the metadata of all columns are there; then leaves those out that are not. */
static int choose(struct parquet_table *t, const struct parquet_wants *wants, struct err *e)
{
    t->unwanted = calloc(t->meta.n_groups + 1, sizeof *t->unwanted);
    if (!t->unwanted)
        return err_set(e, ERR_NOMEM, "out of memory for a table");
    for (size_t g = 0; wants->group && g < t->meta.n_groups; g++)
        t->unwanted[g] = !wants->group(wants->arg, t, g);
    return parquet_meta_keep(&t->meta, wants->column, wants->arg) ? 0
           : err_set(e, ERR_FORMAT, "it has none of the columns that are wanted");
}

int parquet_table_open(struct parquet_table **out, struct range_in *r, const struct parquet_wants *wants, struct err *e)
{
    struct parquet_table *t = calloc(1, sizeof *t);
    struct parquet_source source = {.read = read_at, .arg = r, .ahead = AHEAD};
    int rc;

    *out = NULL;
    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory for '%s'", range_in_name(r));
    t->users = 1;
    rc = range_in_size(r, &source.size, e);
    if (rc == 0) {
        rc = parquet_meta_read(&t->meta, &source, e);
        if (rc == 0)
            rc = choose(t, wants, e);
        if (rc < 0)
            err_wrap(e, "'%s'", range_in_name(r));
    }
    if (rc < 0)
        parquet_table_close(t);
    else
        *out = t;
    return rc;
}

struct parquet_table *parquet_table_share(struct parquet_table *t)
{
    __atomic_fetch_add(&t->users, 1, __ATOMIC_RELAXED);
    return t;
}

void parquet_table_close(struct parquet_table *t)
{
    if (!t || __atomic_sub_fetch(&t->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    parquet_meta_free(&t->meta);
    free(t->unwanted);
    free(t);
}

static const struct parquet_node *find_column(const struct parquet_table *t, const char *name)
{
    for (const struct parquet_node *k = t->meta.root->child; k; k = k->next)
        if (span_is(k->name, name))
            return k;
    return NULL;
}

bool parquet_table_has(const struct parquet_table *t, const char *column)
{
    return find_column(t, column) != NULL;
}

bool parquet_table_range(const struct parquet_table *t, size_t group, const char *column, struct parquet_range *r)
{
    const struct parquet_node *k = find_column(t, column);

    if (!k || k->shape != PARQUET_LEAF)
        return false;
    parquet_range_read(r, &t->meta, k, &t->meta.group[group].chunk[k->first_leaf]);
    return true;
}

size_t parquet_table_groups(const struct parquet_table *t)
{
    return t->meta.n_groups;
}

bool parquet_table_wanted(const struct parquet_table *t, size_t group)
{
    return !t->unwanted[group];
}

uint64_t parquet_table_bytes(const struct parquet_table *t, size_t group)
{
    uint64_t n = 0;

    for (int i = 0; i < t->meta.n_leaves; i++)
        n += t->meta.group[group].chunk[i].bytes;
    return n;
}

/* ---- a scan ---- */

int parquet_scan_new(struct parquet_scan **s, struct err *e)
{
    *s = calloc(1, sizeof **s);
    return *s ? 0 : err_set(e, ERR_NOMEM, "out of memory for a table");
}

/* Puts down the table in hand. */
static void put_down(struct parquet_scan *s)
{
    if (s->table)
        parquet_reader_close(&s->reader);
    parquet_table_close(s->table);
    s->reader = (struct parquet_reader){.group = 0};
    s->table = NULL;
}

void parquet_scan_free(struct parquet_scan *s)
{
    if (!s)
        return;
    put_down(s);
    free(s);
}

int parquet_scan_begin(struct parquet_scan *s, struct parquet_table *t, size_t group, struct range_in *r, struct err *e)
{
    if (s->table != t) {
        put_down(s);
        s->table = parquet_table_share(t);
        s->reader.source = (struct parquet_source){.read = read_at, .ahead = AHEAD};
        TRY(parquet_reader_open_with(&s->reader, &t->meta, e));
    }
    s->ranges = s->reader.source.arg = r;
    s->first = 0;
    for (size_t g = 0; g < group; g++)
        s->first += t->meta.group[g].rows;
    s->reader.group = group;
    parquet_reader_start(&s->reader);
    return 0;
}

int parquet_scan_next(struct parquet_scan *s, struct buf *line, struct err *e)
{
    int rc = parquet_reader_row(&s->reader, line, e);

    return rc < 0 ? err_wrap(e, "'%s'", range_in_name(s->ranges)) : rc;
}

uint64_t parquet_scan_row(const struct parquet_scan *s)
{
    return s->first + s->reader.row - (s->reader.row > 0);
}
