/* base/parquet_write.h -- JSON lines to a Parquet file, for base/file_out.c.
 *
 * A column for each key of the lines, in the order in which they first come, all optional.  Its type is found of all its values:
 * docs/parquet.md has the rule.  Row groups are written on the way, each column with the type that its values so far ask for;
 * what turns out to be of another type is written again at the end, and so are columns that had nothing but nulls.  The bytes
 * are a function of the lines alone.
 */
#ifndef BASE_PARQUET_WRITE_H
#define BASE_PARQUET_WRITE_H

#include "base/err.h"
#include "base/mem.h"

enum {
    PARQUET_GROUP_BYTES = 64 << 20, /* of lines in a row group, about */
    PARQUET_GROUP_ROWS = 1 << 17, PARQUET_GROUP_ROWS_MAX = 1 << 20,
    PARQUET_COLUMNS_MAX = 2000
};

/* Where the file's bytes go, from its first one on; and how they are read again. */
struct parquet_sink {
    int (*put)(void *arg, const void *p, size_t n, struct err *e);
    int (*get)(void *arg, uint64_t at, void *p, size_t n, struct err *e);
    void *arg;
};

struct parquet_writer;
/* group_rows: a row group has so many rows, or PARQUET_GROUP_BYTES; 0: PARQUET_GROUP_ROWS.  ERR_NOMEM.  Memory: the lines of a
 * row group, 16 bytes for each of its values, a page. */
int parquet_writer_open(struct parquet_writer **w, const struct parquet_sink *s, int64_t group_rows, struct err *e);
/* The next n bytes of the lines, cut anywhere.  ERR_FORMAT with the line's number: it is no JSON object; ERR_LIMIT: more keys
 * than columns can be; those of put and get. */
int parquet_writer_put(struct parquet_writer *w, const char *p, size_t n, struct err *e);
/* All that is left; then the file is whole. */
int parquet_writer_finish(struct parquet_writer *w, struct err *e);
void parquet_writer_close(struct parquet_writer *w); /* NULL is fine */
#endif
