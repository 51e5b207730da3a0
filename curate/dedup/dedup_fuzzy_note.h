/* curate/dedup/dedup_fuzzy_note.h -- the note of a document for near-duplicates, byte by byte.
 *
 * A head, the hashes of its shingles, packed, and zeros up to a multiple of 8 bytes; the keys of its bands and its sketch; its
 * id, and its text if there is to be a report.  No keys and sketch if there are no shingles, or if a GPU is to make them; keys
 * and a sketch without shingles of a document of an index that nothing is verified by, or where similarities are not asked for.
 */
#ifndef CURATE_DEDUP_FUZZY_NOTE_H
#define CURATE_DEDUP_FUZZY_NOTE_H

#include "base/mem.h"
#include "base/spill.h"
#include "curate/dedup/dedup_bands.h"

struct fuzzy_note {
    uint64_t count, id_n, rank, text_n;
};
/* Where the parts are. */
struct fuzzy_parts {
    void *hash;               /* packed; NULL: */
    struct spill_part hashes; /*   in a file */
    struct band_record record;
    bool has_record;
    char *id; /* and the text behind it */
};

/* Bytes of n hashes in a note, with the zeros. */
static inline size_t fuzzy_note_hashes(const struct dedup_bands *shape, uint64_t n)
{
    return ((size_t)n * shape->hash_bytes + 7) / 8 * 8;
}

/* Makes a note with this head in a, its parts to be filled but for the zeros.  NULL: out of memory. */
struct fuzzy_note *fuzzy_note_new(const struct dedup_bands *shape, struct arena *a, const struct fuzzy_note *head,
                                  bool has_record, struct fuzzy_parts *p, struct span *note, struct err *e);
/* Takes a note apart, which may come from a file that others made.  ERR_IO: it is none of bands of this shape. */
int fuzzy_note_parse(const struct dedup_bands *shape, struct span note, struct fuzzy_note **h, struct fuzzy_parts *p,
                     struct err *e);
/* The same of one of which all but the head is in a file (curate/stream/stage.h, commit_long), where its hashes stay; what else
 * it has comes into a.  rest NULL: it is whole. */
int fuzzy_note_parse_long(const struct dedup_bands *shape, struct span note, const struct spill_part *rest, struct arena *a,
                          struct fuzzy_note **h, struct fuzzy_parts *p, struct err *e);
#endif
