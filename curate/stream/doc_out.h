/* curate/stream/doc_out.h -- what the documents of a block come to: lines, or frames (curate/stream/feed.h) of them or
 * of their notes.
 *
 * Inside passes only.  Bytes, but for long documents: of these there is only where they lie, so that they are not in memory once
 * more.  What documents hold, and their blocks, must outlive that.
 */
#ifndef CURATE_DOC_OUT_H
#define CURATE_DOC_OUT_H

#include "curate/stream/doc.h"

enum { DOC_OUT_LONG = 1 << 20 }; /* bytes of a line, or a text, for which that is worth it */

/* Zero-initialise to start. */
struct doc_out {
    struct buf b;
    struct doc_out_part {
        size_t at;   /* it is before these of b */
        struct span s;
        struct spill_part file; /* or these bytes of a file */
        bool escape; /* for a string of JSON */
    } *part;
    size_t n, cap;
    uint64_t more; /* bytes of parts, escaped */
};
void doc_out_free(struct doc_out *o);
/* Empties it; one that has grown beyond `most` bytes gives its memory back. */
void doc_out_clear(struct doc_out *o, size_t most);
/* Appends the document as one line with its newline.  ERR_NOMEM. */
int doc_out_put(struct doc_out *o, const struct doc *d);
/* Appends bytes that are long, without a copy.  ERR_NOMEM. */
int doc_out_put_long(struct doc_out *o, struct span s);
/* Appends bytes of a file, which are read, and done with, when all bytes are given.  ERR_NOMEM. */
int doc_out_put_file(struct doc_out *o, const struct spill_part *p);

static inline uint64_t doc_out_size(const struct doc_out *o)
{
    return o->b.n + o->more;
}
/* Gives all bytes, in order. */
typedef int doc_out_taker(void *to, struct span bytes, struct err *e);
int doc_out_give(const struct doc_out *o, doc_out_taker *take, void *to, struct err *e);
/* Brings all of them into b.  ERR_NOMEM. */
int doc_out_join(struct doc_out *o);
#endif
