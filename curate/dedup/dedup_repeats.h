/* curate/dedup/dedup_repeats.h -- the passages of a given length that a corpus has more than once, in bounded memory.
 *
 * A corpus is texts of elements (bytes, or tokens as 32-bit numbers); a passage lies within one text.  What is struck is
 * that of Lee et al. 2021, "Deduplicating Training Data Makes Language Models Better"; not by a suffix array, but in four
 * steps of which each takes time in proportion to the corpus, and reads and writes in order:
 * 1. Anchors (curate/dedup/dedup_anchors.h): one that comes once has no repeated passage.
 * 2. Pieces.  What the others cover is copied out, into parts by the anchors' hashes: a superset of all repeats, and equal
 *    passages are in one part.
 * 3. Matching (curate/dedup/dedup_repeats_match.h).  Each part's passages are looked up in memory, and compared.
 * 4. Ranges.  What is struck, in the order of the corpus.
 * The answer is the same for any memory and threads, and no hash decides.
 * Disk: the corpus, about 1.5 bytes each of its elements for anchors, about 6 each of its candidates' bytes.
 */
#ifndef CURATE_DEDUP_REPEATS_H
#define CURATE_DEDUP_REPEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "curate/dedup/dedup_anchors.h"

struct repeats_conf {
    size_t length;   /* elements of a passage: at least 8 bytes' worth */
    int width;       /* bytes of an element: 1 or 4 */
    bool all;        /* strike every copy; else those behind the first: a passage is struck
                        if the first one like it ends before it begins */
    int64_t memory;  /* bytes */
    const char *dir; /* for temporary files; NULL: $TMPDIR or /tmp */
};

struct repeats;
int repeats_open(struct repeats **r, const struct repeats_conf *c, struct err *e);
void repeats_close(struct repeats *r);
/* The next text, with its anchors for the length and width. */
int repeats_add(struct repeats *r, const void *text, size_t n, const struct anchor *a, size_t n_anchors,
                struct err *e);
/* Once, after the last text. */
int repeats_resolve(struct repeats *r, int jobs, struct err *e);
/* After that, text by text in order: appends what is struck of it, pairs of uint64_t [from,
 * to) in elements, ascending, apart. */
int repeats_next(struct repeats *r, struct buf *ranges, struct err *e);

struct repeats_tally {
    uint64_t elements, candidates; /* candidates: passages that were compared */
    uint64_t parts, slices;        /* of the candidates; what had no room was looked through in more slices than parts */
};
struct repeats_tally repeats_tally(const struct repeats *r);
#endif
