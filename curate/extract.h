/* curate/extract.h -- the source of documents that reads archives and HTML files.
 *
 * Reading goes in order: records are taken from the archives and judged by their
 * headers.  Pages are decoded and extracted in parallel.  See docs/extract.md for what
 * becomes a document and what its fields are.
 */
#ifndef CURATE_EXTRACT_H
#define CURATE_EXTRACT_H

#include "curate/driver.h"
#include "curate/html.h"
#include "curate/warc.h"

struct extract_conf {
    struct html_conf html;
    int64_t max_page; /* bytes of a page, decoded; longer ones are bad records */
    bool verify;      /* records whose stated SHA-1 is not that of their bytes are bad */
};

/* Main content as text; 16 MiB. */
void extract_conf_init(struct extract_conf *c);

/* Opens a source over files and folders (curate/walk.h); "-" is standard input, as is no
 * operand at all.  ERR_IO: an operand is missing.  Release with extract_close. */
int extract_open(struct source *s, const struct extract_conf *c, char *const *paths, int n, struct err *e);
void extract_close(struct source *s);

/* A JSON line for each record of the archive at path: where it is, what it is, and what
 * its codings and charset were found to be.  Each is appended to out, then put is
 * called.  Bad records have "error"; their number comes back. */
int extract_list(const char *path, const struct extract_conf *c, struct buf *out,
                 int (*put)(void *arg, struct buf *out, struct err *e), void *arg, struct err *e);
#endif
