/* curate/dedup/dedup_repeats.h -- the passages of a given length that a corpus has more than once,
 * by suffix arrays, in bounded memory.
 *
 * A corpus is texts of elements (bytes, or tokens as 32-bit numbers); a passage lies within
 * one text.  Four steps (after Lee et al. 2021, "Deduplicating Training Data Makes Language
 * Models Better"):
 * 1. Candidates.  Anchors (curate/dedup/dedup_anchors.h) that come once have no repeated passage.
 *    What the others cover is copied out: a superset of all repeats.
 * 2. Shards.  Suffix arrays (libdivsufsort) of as much of that as fits in memory at a time,
 *    overlapping by a passage.
 * 3. Merging.  The shards' sorted lists become one; equal passages then stand together.
 *    Texts are read through a map, so this wants the candidates in the page cache.
 * 4. Ranges.  What is struck, in the order of the corpus.
 * The answer is that of one suffix array over everything, for any memory and threads.
 * Disk: the corpus, once more its candidates, 4 bytes each of their elements, about 1 byte
 * each of the corpus' elements.
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
    uint64_t elements, candidates, shards; /* candidates: elements that were sorted */
};
struct repeats_tally repeats_tally(const struct repeats *r);
#endif
