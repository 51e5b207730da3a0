/* base/parquet_table.h -- some columns of a Parquet file or object, read where they stand: rows as JSON lines (docs/parquet.md).
 *
 * Of a table the metadata are read once; its row groups are then read by any number of threads, each with a scan of its own.
 * Bytes of other columns and of row groups that are not wanted are not read.  Memory of a scan: a page and what is read ahead of
 * each column.
 */
#ifndef BASE_PARQUET_TABLE_H
#define BASE_PARQUET_TABLE_H

#include "base/mem.h"
#include "base/range_in.h"

enum { PARQUET_RANGE_TEXT = 40 };

/* What the statistics of a row group say of a column's values. */
struct parquet_range {
    enum parquet_range_kind { PARQUET_RANGE_NONE, PARQUET_RANGE_INTS, PARQUET_RANGE_TEXTS } kind; /* NONE: it says no bounds */
    int64_t least_int, most_int;
    struct span least, most; /* texts, by bytes, as rows have them; what lies between need not be there, nor these */
    char own[2][PARQUET_RANGE_TEXT];
    bool nulls, values;      /* whether there may be nulls, and others */
};

struct parquet_table;
/* Which columns are wanted, and which row groups.  A group's ranges may be asked for then, of any column. */
struct parquet_wants {
    bool (*column)(void *arg, struct span name);
    bool (*group)(void *arg, const struct parquet_table *t, size_t group); /* NULL: all */
    void *arg;
};
/* The file that r has in hand, which is not needed any more behind this.  ERR_FORMAT, ERR_UNSUPPORTED, ERR_LIMIT, ERR_IO with its
 * name. */
int parquet_table_open(struct parquet_table **t, struct range_in *r, const struct parquet_wants *wants, struct err *e);
/* The same table for another who will close it.  Any thread. */
struct parquet_table *parquet_table_share(struct parquet_table *t);
void parquet_table_close(struct parquet_table *t);
/* Whether it has a column that was wanted. */
bool parquet_table_has(const struct parquet_table *t, const char *column);
/* What is said of a column; false: there is no such column, or it is a list or an object.  For wants->group alone. */
bool parquet_table_range(const struct parquet_table *t, size_t group, const char *column, struct parquet_range *r);
size_t parquet_table_groups(const struct parquet_table *t);
bool parquet_table_wanted(const struct parquet_table *t, size_t group);
/* The bytes of the columns that are wanted, as they are stored. */
uint64_t parquet_table_bytes(const struct parquet_table *t, size_t group);

/* One thread's way through a row group.  Zeroed to start. */
struct parquet_scan;
int parquet_scan_new(struct parquet_scan **s, struct err *e);
void parquet_scan_free(struct parquet_scan *s);
/* Goes to the beginning of a row group; r has the table's file in hand.  ERR_NOMEM. */
int parquet_scan_begin(struct parquet_scan *s, struct parquet_table *t, size_t group, struct range_in *r, struct err *e);
/* Appends the next row: 1; 0: there is none.  ERR_FORMAT, ERR_LIMIT, ERR_UNSUPPORTED with file, row group and row: the group is
 * damaged from there on.  Others: it could not be read. */
int parquet_scan_next(struct parquet_scan *s, struct buf *line, struct err *e);
/* The number of the row that was read last, among those of the file. */
uint64_t parquet_scan_row(const struct parquet_scan *s);
#endif
