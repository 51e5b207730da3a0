/* base/s3_write.h -- an object that is written to S3: it appears whole, or not at all.
 *
 * What fits into one part of 32 MiB is put at once when it is committed; more goes up in parts (a multipart upload, API of
 * 2006-03-01) of that size, of which one is sent while the next is filled, and the store makes an object of them when it is
 * committed.  At most 10,000 parts: 312 GiB.  Each part is signed with its SHA-256, which the store checks.  Requests that
 * fail are made again as reads are (base/http.h).  A process that is killed leaves parts under no name: a rule of the bucket's
 * life cycle (AbortIncompleteMultipartUpload) removes them.
 */
#ifndef BASE_S3_WRITE_H
#define BASE_S3_WRITE_H

#include <stddef.h>

#include "base/err.h"

/* One thread at a time uses it. */
struct s3_writer;

/* address: s3://BUCKET/KEY.  Asks nothing of the store yet.  ERR_ARG, ERR_NOMEM, ERR_IO, ERR_UNSUPPORTED. */
int s3_writer_open(struct s3_writer **w, const char *address, struct err *e);
/* Errors of these two name the address and what the store says: ERR_IO, ERR_NOMEM, ERR_LIMIT (too many parts). */
int s3_writer_put(struct s3_writer *w, const void *p, size_t n, struct err *e);
/* Gives the object its name.  Nothing may be put any more. */
int s3_writer_commit(struct s3_writer *w, struct err *e);
/* Frees w; parts of what was not committed are removed.  NULL is fine. */
void s3_writer_close(struct s3_writer *w);

#endif
