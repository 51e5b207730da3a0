/* curate/stream/note_index.h -- notes of a collection in a file, to hold other documents against.
 *
 * An index is what a stage remembers of each document that it kept (curate/stream/stage.h, notes).  It
 * begins with the line "quern-index 1", then a line that says of which stage and settings; then
 * blocks: length and XXH3-64 of the bytes (64 bits each), then the bytes, which are notes as in
 * curate/stream/feed.h.  A block of length 0 ends it; its hash is that of all blocks' hashes.
 */
#ifndef CURATE_NOTE_INDEX_H
#define CURATE_NOTE_INDEX_H

#include "base/file_group.h"
#include "base/opt.h"
#include "curate/stream/stage.h"

enum { NOTE_INDEX_KIND = 4096 }; /* bytes of a kind, at most, and a zero */
struct note_index;
/* kind: one line that must be equal when the index is used, such as "dedup exact normalize=none". */
int note_index_create(struct note_index **x, const char *path, const char *kind, struct err *e);
int note_index_put(struct note_index *x, struct span note, struct err *e);
/* The file is whole, and gets its name with the group; x is freed, whatever happens. */
int note_index_finish(struct note_index *x, struct file_group *files, struct err *e);
/* One of the two: rc < 0 is what failed before, and comes back. */
int note_index_end(struct note_index *x, int rc, struct file_group *files, struct err *e);
/* The kind of the index at path, its line without the newline, into kind.  Its version: 1, or 2, which has no notes
 * (curate/dedup/dedup_index.h); 0: some other file, or what can be read but once (a pipe).  ERR_IO; ERR_FORMAT: damaged;
 * ERR_UNSUPPORTED: of a later version. */
int note_index_kind(const char *path, char kind[NOTE_INDEX_KIND], struct err *e);

typedef int note_taker(void *to, struct span note, struct err *e);
/* Gives every note of the collection at path, in order: an index of this kind, or a file of
 * documents, of which the stage makes notes with `jobs` threads.  ERR_FORMAT: an index that is
 * damaged or of another kind, with file, offset and reason. */
int notes_of(const char *path, const struct stage *st, const char *kind, int jobs, note_taker *take, void *to,
             struct err *e);
/* The same for several, in order, while a document is being looked at: whatever fails is ERR_IO, for that
 * document is not bad. */
int notes_of_all(const struct opt_list *paths, const struct stage *st, const char *kind, note_taker *take, void *to,
                 struct err *e);
/* Copies the list, having seen that all can be opened. */
int notes_list(struct opt_list *to, const struct opt_list *paths, struct err *e);
#endif
