/* curate/stream/source.h -- where documents come from when not from JSON lines. */
#ifndef CURATE_SOURCE_H
#define CURATE_SOURCE_H

#include "curate/stream/stage.h"

/* `read` is called in order, one thread at a time; `make` in parallel, each thread with its
 * own state. */
/* How far reading has come. */
struct source_where {
    const char *input;        /* the file in hand; NULL: none, or not known */
    uint64_t consumed, total; /* bytes of all inputs, as they are stored; total 0: not known (a pipe) */
    const char *state;        /* of the file that was opened last (file_state); NULL: none was */
};
struct source_ops {
    const char *name;
    /* The threads that reading may use, before it begins.  May be NULL. */
    void (*set_jobs)(void *source, int jobs);
    /* Fills *item (malloc'd by the source, or NULL at the end of all input).  size is
     * its weight in bytes, for blocks and progress.  A record that is bad is reported
     * with *bad = true and the reason in e (file and offset in it), item NULL. */
    int (*read)(void *source, void **item, size_t *size, bool *bad, struct err *e);
    int (*thread_open)(void *source, void **thread, struct err *e);
    void (*thread_close)(void *source, void *thread);
    /* Makes the document of an item; may instead drop it (v) or call it bad
     * (ERR_FORMAT, ERR_LIMIT). */
    int (*make)(void *source, void *thread, void *item, struct doc *d, struct verdict *v,
                struct err *e);
    void (*item_free)(void *source, void *item);
    /* Called where read is, between two of its calls.  May be NULL. */
    void (*where)(void *source, struct source_where *w);
    /* As a stage's: pairs of its own for the JSON statistics.  May be NULL. */
    int (*stats)(void *source, struct buf *json);
};
struct source {
    const struct source_ops *ops;
    void *state;
};
#endif
