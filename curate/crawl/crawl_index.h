/* curate/crawl/crawl_index.h -- indexes of crawls: which record of which archive is of which URL.
 *
 * Three kinds, told by content: CDXJ, lines "KEY TIMESTAMP {JSON}" (plain or compressed); ZipNum, such lines in gzip members
 * of some thousand, sorted, with a cluster.idx that has the first key, file, offset and length of each member; and the
 * columnar index, Parquet files with a row an entry.  Of ZipNum only the members are read that can hold keys of the
 * condition, found by bisection in cluster.idx; of Parquet only the columns that the condition and a list need, and of these
 * the row groups whose statistics do not rule the condition out.
 *
 * An index is given out in pieces, in order, which threads then read by themselves (curate/crawl/crawl_piece.h).
 *
 * Sources: pywb and Common Crawl, "Announcing the Common Crawl Index" (ZipNum), cc-index-table (columns).
 */
#ifndef CURATE_CRAWL_INDEX_H
#define CURATE_CRAWL_INDEX_H

#include "base/range_in.h"
#include "curate/crawl/crawl_entry.h"
#include "curate/crawl/crawl_key.h"
#include "curate/crawl/crawl_piece.h"

#define CRAWL_DATA "https://data.commoncrawl.org/"

struct crawl_index_conf {
    const char *prefix; /* where the crawl's files are, for indexes that go by the crawl's name */
    int kind;           /* of these: enum crawl_kind */
    struct range_in_pace *pace; /* or NULL */
    const struct where *where; /* or NULL */
};
enum crawl_kind { CRAWL_AUTO, CRAWL_CDX, CRAWL_COLUMNS }; /* auto|cdx|columns */

/* What is counted where an index is given out: not what pieces cost that threads read by themselves. */
struct crawl_index_counts {
    uint64_t files, bytes, requests; /* opened; of indexes as stored */
    uint64_t groups, passed_groups, passed_bytes; /* row groups; those passed over, and what would have been read of them */
};

struct crawl_index;
/* Indexes by their names: files, patterns, addresses, folders (cluster.idx if it has one, else all .cdxj, .cdxj.gz and
 * .parquet files in it), or a crawl's name, CC-MAIN-YYYY-WW: of that the ZipNum index where the condition bounds its keys,
 * else the columns. ERR_ARG: nothing is there; ERR_IO. */
int crawl_index_open(struct crawl_index **x, const struct crawl_index_conf *c, const char *const *names, int n, struct err *e);
void crawl_index_close(struct crawl_index *x);
/* Fills in the next piece, whose memory is used again: 1, or 0 at the end.  ERR_FORMAT, ERR_LIMIT: something is bad, named by
 * file and offset; the next call goes on behind it.  Others end reading. */
int crawl_index_next(struct crawl_index *x, struct crawl_piece *piece, struct err *e);
void crawl_index_count(const struct crawl_index *x, struct crawl_index_counts *n);
#endif
