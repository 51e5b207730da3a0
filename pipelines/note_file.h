/* pipelines/note_file.h -- the notes of a part of a plan (curate/stream/feed.h has their form), one after the other, through
 * little memory.
 */
#ifndef PIPELINES_NOTE_FILE_H
#define PIPELINES_NOTE_FILE_H

#include "base/mem.h"
#include "base/spill.h"

struct note_file {
    struct spill file;
    struct spill_reader in;
    uint64_t left;
    struct buf note;        /* the one in hand, aligned as a stage wants it, */
    struct spill_part rest; /*   or its head, and where the rest is; else empty */
};
/* ERR_IO, ERR_NOMEM: nothing is open. */
int note_file_open(struct note_file *f, const char *path, struct err *e);
/* The next note; heads: of long ones the head alone (curate/stream/stage.h, commit_long).  1, 0 at the end, ERR_FORMAT, ERR_IO,
 * ERR_NOMEM. */
int note_file_next(struct note_file *f, bool heads, struct err *e);
void note_file_close(struct note_file *f);
#endif
