/* curate/archive/warc.h -- web archives, a record at a time.
 *
 * Reads WARC 0.17, 0.18, 1.0 and 1.1 (so WET and WAT too) and ARC 1 and 2 from a stream of
 * base/file.h: plain, gzip a member a record, one member for all or records cut over
 * members, zstd.  Nothing in the bytes is fatal: a record that is damaged, and bytes
 * that are no record, are reported as such, and reading goes on at the next place
 * where a record begins.  Memory is bounded by max_block.
 *
 * Sources: ISO 28500:2009 and :2017 (WARC), "ARC_IA, Internet Archive ARC file format"
 * (Burner and Kahle), IIPC "WARC compression with Zstandard".
 */
#ifndef CURATE_WARC_H
#define CURATE_WARC_H

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum warc_kind { WARC_NONE, WARC_WARC, WARC_ARC };

/* Spans live until the reader's next call; a field that the record lacks has p NULL. */
struct warc_record {
    uint64_t offset;     /* of the record in the decompressed stream */
    uint64_t member;     /* of its gzip member or zstd frame in the file; plain: offset */
    uint64_t within;     /* bytes that this member decompresses to before the record; plain: 0 */
    uint64_t stored;     /* bytes of the file, from member on, in which the record lies; 0: not known, as of a member
                          * that goes on behind it */
    bool arc;
    struct span version; /* "WARC/1.0", "ARC/1" */
    struct span type;    /* as written: "response"; ARC: "arc", and "filedesc" for the first */
    struct span id;      /* as written, with <>; ARC records have none */
    struct span uri;     /* without the <> that some writers put around it */
    struct span date;    /* as written */
    struct span mime;    /* Content-Type of the block */
    struct span identified; /* WARC-Identified-Payload-Type: what the crawler found the payload to be */
    struct span payload_digest, block_digest;
    int64_t length;      /* of the block as the header says; -1: says nothing usable */
    struct span block;   /* what of it there is, at most max_block */
    bool cut;            /* longer than max_block: block holds only its beginning */
};

struct warc;

/* Reads records from f, which stays the caller's and must outlive the reader. */
int warc_open(struct warc **w, struct file_in *f, size_t max_block, struct err *e);
void warc_close(struct warc *w);

/* Says, before anything is read, that the stream is a part of an archive and begins with some record: of an ARC that need not be
 * its first one. */
void warc_begin_within(struct warc *w);

/* What the stream is, by its first bytes.  WARC_NONE is read too: its first record decides, and all that
 * comes before that is reported.  Negative: the stream cannot be read. */
int warc_kind(struct warc *w, struct err *e);

/* What stands at the start, before the first warc_next: 64 KiB unless there is less. */
struct span warc_peek(const struct warc *w);

/* The next record: 1, or 0 at the end.  ERR_FORMAT: bytes that are no good record; the
 * message names file, offset and reason, r has what could be read of it (r->length is
 * -1 and block empty if nothing), and the next call goes on behind it.  Others are
 * failures of the file or of memory. */
int warc_next(struct warc *w, struct warc_record *r, struct err *e);

/* The value of a field of a warcinfo record's block (application/warc-fields), "isPartOf"; p NULL: it has none. */
struct span warc_info(struct span block, const char *name);

/* For streams of WARC_NONE, before the first warc_next: all of the stream, at most max
 * bytes (ERR_LIMIT).  ERR_FORMAT when it is damaged. */
int warc_read_whole(struct warc *w, size_t max, struct span *all, struct err *e);
/* After it: the block of malloc in which these bytes lie is the caller's. */
char *warc_take_whole(struct warc *w);

/* For the same streams, instead of warc_next: the next at most n bytes from the start on; 0
 * at the end.  Errors of file_read. */
ssize_t warc_read(struct warc *w, void *p, size_t n, struct err *e);
/* After its ERR_FORMAT: goes on with the next member, as file_skip_member. */
int warc_skip_member(struct warc *w, struct err *e);

/* Records so far that were whole but not set apart by empty lines as they should be. */
uint64_t warc_unseparated(const struct warc *w);
#endif
