/* base/parquet_ahead.h -- row groups of a Parquet file made lines by threads, ahead of the one that is read; for
 * base/file_parquet.c.  The blocks are the same as one thread makes. */
#ifndef BASE_PARQUET_AHEAD_H
#define BASE_PARQUET_AHEAD_H

#include "base/parquet.h"

enum {
    PARQUET_BLOCK = 64 << 10,      /* bytes of lines made at a time */
    PARQUET_ROW_MAX = 1 << 30,     /* bytes of a row as JSON */
    PARQUET_AHEAD_THREADS = 4,     /* at most: more would not be read from */
    PARQUET_AHEAD_BYTES = 96 << 20 /* of lines that are held, about */
};

/* Some lines of a row group. */
struct parquet_block {
    struct buf lines;
    struct err why; /* code below 0: what is wrong behind them */
    uint64_t row;   /* rows of the group up to here */
};
/* Makes the next ones of the group that r is in; none and no error: it has ended. */
void parquet_block_make(struct parquet_block *b, struct parquet_reader *r);

struct parquet_ahead;
/* From row group `first` on, by up to n threads; source and metadata are r's.  ERR_NOMEM. */
int parquet_ahead_open(struct parquet_ahead **a, const struct parquet_reader *r, size_t first, int n, struct err *e);
void parquet_ahead_close(struct parquet_ahead *a); /* NULL is fine */
/* Makes *b, which is zeroed to start, the next block of the group in hand: 1; 0: it has ended.  Its lines are the caller's. */
int parquet_ahead_next(struct parquet_ahead *a, struct parquet_block *b);
/* Goes to the next group. */
void parquet_ahead_turn(struct parquet_ahead *a);
#endif
