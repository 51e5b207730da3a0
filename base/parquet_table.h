/* base/parquet_table.h -- some columns of a Parquet file or object, read where they stand: rows as JSON lines (docs/parquet.md).
 *
 * Bytes of other columns are not read.  Memory: a page and what is read ahead of each column.
 */
#ifndef BASE_PARQUET_TABLE_H
#define BASE_PARQUET_TABLE_H

#include "base/mem.h"
#include "base/range_in.h"

struct parquet_table;
/* The file that r has in hand, which stays there until the table is closed; keep says which columns are wanted.  ERR_FORMAT,
 * ERR_UNSUPPORTED, ERR_LIMIT, ERR_IO with its name. */
int parquet_table_open(struct parquet_table **t, struct range_in *r, bool (*keep)(void *arg, struct span name), void *arg,
                       struct err *e);
void parquet_table_close(struct parquet_table *t);
/* Whether it has a column that was wanted. */
bool parquet_table_has(const struct parquet_table *t, const char *column);
/* Appends the next row: 1; 0: there is none.  ERR_FORMAT, ERR_LIMIT, ERR_UNSUPPORTED with file, row group and row: the group is
 * damaged from there on; the next call goes on behind it.  Others end reading. */
int parquet_table_next(struct parquet_table *t, struct buf *line, struct err *e);
/* Rows so far, those that were not read of damaged groups too. */
uint64_t parquet_table_row(const struct parquet_table *t);
#endif
