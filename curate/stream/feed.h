/* curate/stream/feed.h -- where a pass gets its documents from, a block at a time.
 *
 * Inside passes only.  A feed fills blocks in order, one thread at a time; making
 * documents of a block's items is done in parallel.  Three feeds: JSON lines from
 * files, a source (curate/stream/source.h), and the spool that keeps documents aside while a
 * stage that must see them all makes up its mind.
 */
#ifndef CURATE_FEED_H
#define CURATE_FEED_H

#include <stdio.h>

#include "base/lines.h"
#include "curate/stream/doc_out.h"
#include "curate/stream/source.h"
#include "curate/stream/spool.h"

/* Bytes of input that a thread takes at a time: small enough to share a small input
 * among threads, large enough that the gates cost nothing. */
enum { BLOCK_BYTES = LINES_BLOCK, BLOCK_ITEMS = 4096 };

struct item {
    const char *file;
    uint64_t offset;
    struct span line; /* JSON; p NULL: raw of a source, or a bad record */
    void *raw;
    const char *bad;  /* why this record is no document; in the block */
    struct verdict judged; /* spool: what the stage before decided, */
    struct span reply;     /*   and what it has to say of the document */
};

struct feed_block {
    struct arena arena; /* for all that the documents of this block hold */
    struct line_block lines; /* of files; of a spool its bytes alone, frames */
    struct item *item;
    int n;
    size_t cap;
    uint64_t first;  /* number of item[0] among all items */
    uint64_t weight; /* bytes of input that it holds */
};
/* Empties a block and keeps its memory, unless a long line made it large. */
void block_reset(struct feed_block *b);
void block_free(struct feed_block *b);

/* What was decided of kept documents: asked about each, in order.  NULL: nothing had to be. */
struct judge {
    int (*ask)(void *of, uint64_t n, struct verdict *v, struct span *reply, struct arena *a, struct err *e);
    void *of;
};

/* What the tools that read documents have: --columns, --json-key. */
#define FEED_OPTS(c)                                                           \
    LINES_OPTS(c),                                                             \
    OPT_STR(0, "json-key", &(c).text_key, "KEY", "where a document has its text, which becomes \"text\" [text]")

struct feed {
    struct lines_in lines; /* of files; its block_bytes holds for all feeds */
    const char *text_key;  /* of lines: doc_parse_key's */
    const struct source *source;
    struct spool *spool; /* frames, of which each piece is a block, */
    char *const *kept;   /*   or those of the files of these names, */
    int n_kept, at_kept;
    FILE *file;          /*   of which this is read */
    struct judge judge;  /* of the spool */
    bool account;        /* survivors are wanted of it */
    uint64_t count;      /* items given so far */
    uint64_t size, consumed;   /* bytes of all input files (0: unknown); of a spool, those read */
};

/* Fills b (reset before) with the next items; none means the end.  Failures are of
 * the whole run; what is wrong with one record is in item.bad. */
int feed_fill(struct feed *f, struct feed_block *b, struct err *e);
/* Passes over the first n items, which ended where a block did; of lines, at this place (feed.lines.now then).  Nothing is said
 * of bad ones: they were reported when they were first read. */
int feed_skip(struct feed *f, uint64_t n, const struct lines_place *place, struct err *e);
/* Checks that all inputs can be opened, before any work; but for pipes. */
int feed_check(struct feed *f, struct err *e);
void feed_close(struct feed *f);
/* How far it has come; called where feed_fill is.  Of a spool, what was read of it. */
void feed_where(const struct feed *f, struct source_where *w);

/* A frame is a document with where it came from; a spool has frames. */
int frame_put_doc(struct doc_out *o, const struct doc *d);
/* A stage's note, kept beside: its length, its bytes, filled up so that the next begins at
 * a multiple of 16. */
int frame_put_note(struct buf *b, struct span note);
/* The same of a block, of whose long notes no copy is made; rest: what follows the note in a file, if anything does. */
int frame_put_note_of(struct doc_out *o, struct span note, const struct spill_part *rest);
/* The note at *at in the mapped bytes; *at moves behind it.  1, 0 at the end, ERR_FORMAT. */
int frame_next_note(struct span all, size_t *at, struct span *note, struct err *e);
#endif
