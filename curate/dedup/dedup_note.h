/* curate/dedup/dedup_note.h -- notes that are made piece by piece: those of long texts lie in a file of their thread, where they
 * may (doc.h, note_rest); else all is in the note.
 */
#ifndef CURATE_DEDUP_NOTE_H
#define CURATE_DEDUP_NOTE_H

#include "base/spill.h"
#include "curate/dedup/dedup_text.h"
#include "curate/stream/doc.h"

/* A thread's; begins with {.file.fd = -1}.  Notes are valid until it is closed. */
struct dedup_note {
    struct buf b;            /* the note in hand, or where there is a file what it does not have yet */
    struct spill file;       /* of long ones that were not read yet */
    const char *dir;         /* for it; NULL: $TMPDIR or /tmp */
    struct spill_part *rest; /* of the note in hand, the document's */
};
void dedup_note_close(struct dedup_note *w);
void dedup_note_begin(struct dedup_note *w, const struct doc *d);
int dedup_note_put(struct dedup_note *w, const void *p, size_t n, struct err *e);
int dedup_note_end(struct dedup_note *w, struct arena *a, struct span *note, struct err *e);

/* A thread of a stage that notes a text's units: `size` bytes, one of these first.  Close is a stage's thread_close. */
struct dedup_noter {
    struct dedup_text text; /* first */
    struct dedup_note note;
};
int dedup_noter_open(void **thread, size_t size, const char *dir, struct err *e);
void dedup_noter_close(void *stage, void *thread);

/* Reads one from front to back; rest: NULL, or of one that goes on in a file.  Close it in any case. */
struct dedup_note_reader {
    struct span left;       /* of the note itself */
    struct spill_reader in; /* of the file, if there is one */
};
int dedup_note_open(struct dedup_note_reader *r, struct span note, const struct spill_part *rest, struct err *e);
/* The next n bytes, or as many as are left: *got. */
int dedup_note_next(struct dedup_note_reader *r, void *to, size_t n, size_t *got, struct err *e);
void dedup_note_reader_close(struct dedup_note_reader *r);
#endif
