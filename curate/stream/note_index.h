/* curate/stream/note_index.h -- notes of a collection in a file, to hold other documents against.
 *
 * An index is what a stage remembers of each document that it kept (curate/stream/stage.h, notes).  It
 * begins with the line "quern-index 1", then a line that says of which stage and settings; then
 * blocks: length and XXH3-64 of the bytes (64 bits each), then the bytes, which are notes as in
 * curate/stream/feed.h.  A block of length 0 ends it; its hash is that of all blocks' hashes.
 */
#ifndef CURATE_NOTE_INDEX_H
#define CURATE_NOTE_INDEX_H

#include "base/file.h"
#include "curate/stream/stage.h"

struct note_index;
/* kind: one line that must be equal when the index is used, such as "dedup exact normalize=none". */
int note_index_create(struct note_index **x, const char *path, const char *kind, struct err *e);
int note_index_put(struct note_index *x, struct span note, struct err *e);
/* The file appears under its name; x is freed, whatever happens. */
int note_index_commit(struct note_index *x, struct err *e);
/* Nothing appears.  NULL is fine. */
void note_index_abort(struct note_index *x);

typedef int note_taker(void *to, struct span note, struct err *e);
/* Gives every note of the collection at path, in order: an index of this kind, or a file of
 * documents, of which the stage makes notes with `jobs` threads.  ERR_FORMAT: an index that is
 * damaged or of another kind, with file, offset and reason. */
int notes_of(const char *path, const struct stage *st, const char *kind, int jobs, note_taker *take, void *to,
             struct err *e);
#endif
