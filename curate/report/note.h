/* curate/report/note.h -- strings in the note of a document: their length, then their bytes. */
#ifndef CURATE_NOTE_H
#define CURATE_NOTE_H

#include "base/mem.h"

static inline int note_put_string(struct buf *b, struct span s)
{
    uint32_t n = (uint32_t)s.n;

    buf_put(b, &n, sizeof n);
    return buf_put_span(b, s);
}

/* The next n bytes, which are there, and the next string. */
static inline struct span note_take(struct span *rest, size_t n)
{
    struct span s = {rest->p, n};

    rest->p += n;
    rest->n -= n;
    return s;
}

static inline struct span note_take_string(struct span *rest)
{
    uint32_t n;

    memcpy(&n, note_take(rest, sizeof n).p, sizeof n);
    return note_take(rest, n);
}
#endif
