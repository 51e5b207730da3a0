/* curate/crawl/crawl_lines.h -- lines of a stream, of bounded length: of indexes, and of lists of records. */
#ifndef CURATE_CRAWL_LINES_H
#define CURATE_CRAWL_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

enum { CRAWL_LINE_MAX = 1 << 20 }; /* bytes */

struct crawl_lines {
    /* The stream: as file_read and, after its ERR_FORMAT, file_skip_member. */
    ssize_t (*read)(void *arg, void *p, size_t n, struct err *e);
    int (*skip)(void *arg, struct err *e);
    void *arg;
    struct buf buf;
    size_t at;       /* of the next line in buf */
    uint64_t offset; /* of the next line in the stream */
    bool ended, damaged, passing; /* passing: the rest of a line that is too long */
};
/* The next line, without its end, and where it begins; JSON_PADDING bytes behind it are readable, and all is valid up to the next
 * call.  1; 0: the end.  ERR_FORMAT: it is too long, or the stream is damaged here; the next call goes on behind that.  Errors of
 * read. */
int crawl_lines_next(struct crawl_lines *l, struct span *line, uint64_t *offset, struct err *e);
/* Forgets the stream; what is set stays. */
void crawl_lines_reset(struct crawl_lines *l);
void crawl_lines_free(struct crawl_lines *l);
#endif
