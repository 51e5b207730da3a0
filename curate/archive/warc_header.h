/* curate/archive/warc_header.h -- how a record of an archive begins.  Inside warc*.c only. */
#ifndef CURATE_WARC_HEADER_H
#define CURATE_WARC_HEADER_H

#include "curate/archive/warc.h"

enum { WARC_HEADER_MAX = 64 << 10 };

static inline bool warc_is_eol(char c)
{
    return c == '\r' || c == '\n';
}

/* Whether "WARC/d.d" and a line end stand at p. */
bool warc_begins(const char *p, size_t n);
/* Whether a whole line of an ARC record's header stands at p. */
bool warc_arc_begins(const char *p, size_t n);

/* Takes the fields of a WARC header, which it unfolds in place; *lf_only: its first line
 * ends without CR.  The spans of r point into it. */
void warc_parse_header(struct buf *header, struct warc_record *r, bool *lf_only);
/* The same for an ARC record's line. */
void warc_parse_arc_header(const struct buf *header, struct warc_record *r);

/* s without white space at its ends. */
struct span warc_trim(struct span s);
#endif
