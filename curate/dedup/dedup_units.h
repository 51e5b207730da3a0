/* curate/dedup/dedup_units.h -- which of very many numbered keys are there already.
 *
 * Units (lines, sentences, passages) are numbered in the order in which they are added.
 * Their keys go to disk, apart by their first bits; then each part is looked through by
 * itself, with as much of it in memory at a time as is allowed.  So the answer is exact for
 * any bound on memory, and the same for any number of threads.  24 bytes of disk a key, one
 * bit a unit.
 */
#ifndef CURATE_DEDUP_UNITS_H
#define CURATE_DEDUP_UNITS_H

#include "base/hash.h"
#include "base/err.h"

struct dedup_units;
/* memory: bytes that it may take.  dir: for temporary files (NULL: $TMPDIR or /tmp). */
int dedup_units_open(struct dedup_units **u, const char *dir, int64_t memory, struct err *e);
void dedup_units_close(struct dedup_units *u);

/* The next unit: one with a key, and one that is never marked. */
int dedup_units_add(struct dedup_units *u, struct hash128 key, struct err *e);
int dedup_units_add_unmarked(struct dedup_units *u, struct err *e);
/* The next unit is of another document than the one before.  Of use for DEDUP_DOCS_NONE and DEDUP_DOCS_ONE alone. */
void dedup_units_next_doc(struct dedup_units *u);

/* Which units of a key that comes too often are marked. */
enum dedup_rule {
    DEDUP_FIRST,     /* all but the first */
    DEDUP_NONE,      /* all */
    DEDUP_DOCS_NONE, /* all; the documents that have it are counted */
    DEDUP_DOCS_ONE,  /* these too; and of a key that comes not too often all but the first of each document */
};
/* Told of a key that comes too often: its first unit, and how often.  By one thread at a time, in any order. */
typedef int dedup_units_taker(void *to, uint64_t unit, uint32_t count, struct err *e);
/* Before resolve, which then tells of all such keys; 4 bytes of memory more a different key. */
void dedup_units_tell(struct dedup_units *u, dedup_units_taker *tell, void *to);
/* Marks units of keys that come more than `over` (1 or more) times.  Once, after the last unit. */
int dedup_units_resolve(struct dedup_units *u, enum dedup_rule rule, uint32_t over, int jobs, struct err *e);
/* After that: the marks of the next n units, a byte each, 0 or 1. */
void dedup_units_next(struct dedup_units *u, size_t n, uint8_t *mark);
/* How many units were counted: those with keys, by the rules of documents once a document. */
uint64_t dedup_units_counted(const struct dedup_units *u);

uint64_t dedup_units_count(const struct dedup_units *u);
#endif
