/* curate/crawl/record_fetch.h -- the bytes of a list's records, in its order, by as few requests as are worth it.
 *
 * Records that follow each other, or nearly, are one request: at most 4 % of what is read was not asked for.  Of an archive
 * whose dump the list does not say the first KiB is read too, which may say it.  Threads read ahead, each with a connection
 * of its own; two requests a thread are held, of 4 MiB or a longer record each.
 */
#ifndef CURATE_RECORD_FETCH_H
#define CURATE_RECORD_FETCH_H

#include "base/opt.h"
#include "base/range_in.h"
#include "curate/crawl/record_list.h"

struct record_fetch_conf {
    const char *prefix;    /* folder or address that files are below; NULL: that of the list */
    int64_t connections;
    int64_t max_rate;      /* bytes a second; 0: no bound */
    double max_requests;   /* a second; 0: no bound */
    bool trust;            /* files may be anywhere */
};
void record_fetch_conf_init(struct record_fetch_conf *c);
/* What reading by ranges can be told. */
#define RANGE_IN_OPTS(c)                                                                                                  \
    OPT_SIZE(0, "max-rate", &(c).max_rate, 0, INT64_MAX, "bytes a second of all that is read by ranges; 0: no bound"),    \
    OPT_NUM(0, "max-requests", &(c).max_requests, 0, 1e6, "requests a second; 0: no bound")
#define RECORD_FETCH_OPTS(c)                                                                                              \
    OPT_HEAD("Lists of records"),                                                                                         \
    OPT_STR(0, "crawl-prefix", &(c).prefix, "PREFIX",                                                                     \
            "folder or address that a list's files are below; without it the list's own folder"),                         \
    OPT_INT(0, "connections", &(c).connections, 1, 64, "files of a list that are read at a time"),                        \
    RANGE_IN_OPTS(c),                                                                                                     \
    OPT_FLAG(0, "trust-list", &(c).trust, "a list's files may be absolute, addresses, or lead out of the prefix")

struct record_fetch_counts {
    uint64_t records, bytes;          /* that were asked for */
    uint64_t fetched_bytes, requests; /* what was read for that */
};

struct record_bytes {
    const struct record_entry *entry;
    const char *path, *dump; /* of the archive; dump NULL: not known */
    struct span head;        /* with the first record of an archive whose dump is not known: what this begins with */
    struct span bytes;
};

struct record_fetch;
/* Of a sorted list, which the caller keeps; folder: where files are unless the settings say it; max: bytes of a record as
 * stored that is read.  ERR_NOMEM, ERR_ARG. */
int record_fetch_open(struct record_fetch **f, const struct record_list *l, const struct record_fetch_conf *c, const char *folder,
                      uint64_t max, struct err *e);
void record_fetch_close(struct record_fetch *f);
/* The next record's bytes, valid until the next call: 1, or 0 at the end.  ERR_FORMAT: it is too long, or the archive ends
 * before: the reason with file and offset; the next call goes on behind it.  ERR_IO, ERR_NOMEM and others end reading.
 * b->entry is set but for 0. */
int record_fetch_next(struct record_fetch *f, struct record_bytes *b, struct err *e);
void record_fetch_count(const struct record_fetch *f, struct record_fetch_counts *n);
#endif
