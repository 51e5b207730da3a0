/* curate/xml/xml_stream.h -- a stream of XML as UTF-8, in which marks are looked for, in bounded memory and whatever pieces it
 * comes in.  A stream in UTF-16 or UTF-32 is made UTF-8 on the way; other encodings are left as they are, as they keep ASCII. */
#ifndef CURATE_XML_STREAM_H
#define CURATE_XML_STREAM_H

#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

/* Where the bytes come from. */
struct xml_input {
    /* The next at most n bytes, 0 at the end.  ERR_FORMAT: the stream is damaged here. */
    ssize_t (*read)(void *of, void *p, size_t n, struct err *e);
    /* After ERR_FORMAT: 1 if reading can go on further behind, 0 if not. */
    int (*resume)(void *of, struct err *e);
    void *of;
    const char *name;
};

/* How characters are written, where not in bytes. */
struct xml_wide {
    int width; /* 0: bytes; 2, 4 */
    bool big;
};

/* Positions are of buf; reading moves what lies behind `at`, and the position that it is given with it. */
struct xml_stream {
    struct xml_input in;
    struct buf buf;
    size_t at;     /* what lies before is done */
    uint64_t base; /* of buf in the stream */
    bool begun, ended;
    uint64_t n_damaged; /* places, of which ERR_FORMAT told */
    struct xml_wide wide;
    unsigned char *raw; /* what is not yet UTF-8 */
    size_t n_raw;
};

/* in is copied.  ERR_NOMEM. */
int xml_stream_open(struct xml_stream *s, const struct xml_input *in, struct err *e);
void xml_stream_close(struct xml_stream *s);

/* Makes n bytes behind *p readable unless the stream ends: 1, or 0. */
int xml_stream_need(struct xml_stream *s, size_t *p, size_t n, struct err *e);
/* Whether what stands at p. */
bool xml_stream_is(const struct xml_stream *s, size_t p, const char *what);
/* Moves *p to the next byte b at or behind it: 1; 0 at the end of the stream, with *p there.  ERR_LIMIT, without a message: it
 * would be more than max bytes behind at, with *p where reading goes on. */
int xml_stream_find(struct xml_stream *s, size_t *p, char b, size_t max, struct err *e);
/* The same for mark; *p is then behind it. */
int xml_stream_find_mark(struct xml_stream *s, size_t *p, const char *mark, size_t max, struct err *e);
/* Sets ERR_FORMAT: file, offset and reason. */
int xml_stream_fault(const struct xml_stream *s, uint64_t offset, const char *why, struct err *e);

/* Bytes at the start of a file made UTF-8 if they are UTF-16 or UTF-32, by mark or by their zeros, appended to out: 1; 0: they
 * are neither.  ERR_NOMEM. */
int xml_wide_start(struct span start, struct buf *out);
#endif
