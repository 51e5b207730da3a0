/* curate/crawl/crawl_piece.h -- a part of an index that a thread reads by itself: some lines, members of ZipNum, a row group. */
#ifndef CURATE_CRAWL_PIECE_H
#define CURATE_CRAWL_PIECE_H

#include "base/parquet_table.h"
#include "base/range_in.h"
#include "curate/crawl/crawl_entry.h"
#include "curate/crawl/crawl_zipnum.h"

enum { CRAWL_BLOCK_MAX = 64 << 20 }; /* bytes of a member of ZipNum, as stored */

enum crawl_piece_kind { CRAWL_PIECE_NOTHING, CRAWL_PIECE_LINES, CRAWL_PIECE_MEMBERS, CRAWL_PIECE_ROWS };

/* Zeroed to start. */
struct crawl_piece {
    enum crawl_piece_kind kind;
    const char *name;     /* what messages call the index, until it is closed */
    const char *path;     /* of rows: the file, likewise */
    struct buf lines;     /* whole ones, JSON_PADDING bytes behind them */
    uint64_t offset;      /* where the first line stands */
    struct crawl_run run;
    struct parquet_table *table; /* the piece's own share */
    size_t group;
    struct err why;       /* code below 0: what is wrong behind it */
};
void crawl_piece_free(struct crawl_piece *p);

struct crawl_piece_counts {
    uint64_t entries, members; /* read so far, of all pieces */
};

/* One thread's. */
struct crawl_reader;
int crawl_reader_new(struct crawl_reader **r, const struct where *w, struct range_in_pace *pace, struct err *e);
void crawl_reader_free(struct crawl_reader *r);
/* Takes a piece in hand, which stays until another one is.  ERR_IO, ERR_NOMEM, ERR_FORMAT (its bytes are not there). */
int crawl_reader_begin(struct crawl_reader *r, struct crawl_piece *p, struct err *e);
/* Its next entry that meets the condition, valid until the next call: 1, or 0 at the end.  ERR_FORMAT, ERR_LIMIT: a bad entry,
 * named by file and place; the next call goes on behind it.  Others end reading. */
int crawl_reader_next(struct crawl_reader *r, struct crawl_entry **entry, struct err *e);
void crawl_reader_count(const struct crawl_reader *r, struct crawl_piece_counts *n);
/* Bytes of indexes that it read by ranges, and its requests. */
uint64_t crawl_reader_bytes(const struct crawl_reader *r);
uint64_t crawl_reader_requests(const struct crawl_reader *r);
#endif
