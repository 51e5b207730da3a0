/* curate/xml/xml_cut.h -- a stream of XML cut into records, in order and in bounded memory.
 *
 * A record is an element of one of some names (the rows of a table, the items of a feed), or a document:
 * where several lie in one file, one begins with each XML declaration.  Only the ends are looked for, with
 * comments, CDATA and quotes passed over; what is in a record is for other threads.  A stream in UTF-16 or
 * UTF-32 is made UTF-8 on the way; other encodings are left as they are, as they keep ASCII.
 *
 * Damage is reported with file, offset and reason, and reading goes on with the next record.
 */
#ifndef CURATE_XML_CUT_H
#define CURATE_XML_CUT_H

#include "curate/xml/xml_stream.h"

struct xml_cut;

enum { XML_HEAD_MAX = 64 << 10 }; /* bytes before the first record that are kept */

/* Spans live until the next call. */
struct xml_piece {
    uint64_t offset;    /* of the record in the stream (of UTF-16, UTF-32: of its UTF-8) */
    struct span head;   /* what stands before the first record; empty for documents */
    struct span record; /* with its tags */
    bool utf8;          /* it was made UTF-8, whatever the declaration says */
};

/* A reader over in, which is copied.  records: the local names of elements, NULL at the end; NULL: documents.  One that is
 * longer than max bytes is a fault.  ERR_NOMEM. */
int xml_cut_open(struct xml_cut **c, const struct xml_input *in, const char *const *records, size_t max, struct err *e);
void xml_cut_close(struct xml_cut *c);
/* The next record: 1, or 0 at the end.  ERR_FORMAT: the next call goes on behind it.  Others end it. */
int xml_cut_next(struct xml_cut *c, struct xml_piece *piece, struct err *e);
#endif
