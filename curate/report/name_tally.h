/* curate/report/name_tally.h -- counts by name, in bounded memory.
 *
 * Exact while there are at most as many names as the bound.  Then the half that was counted
 * least is forgotten (lossy counting, Manku and Motwani 2002): a count may from then on be
 * too low, by at most `missed`; who has more than `missed` is there.
 */
#ifndef CURATE_NAME_TALLY_H
#define CURATE_NAME_TALLY_H

#include "base/name_table.h"

struct name_count {
    uint64_t docs, bytes, chars, words;
    uint64_t missed; /* documents of this name that may have been forgotten */
};

/* Start with zeroes and the bound, at least 2. */
struct name_tally {
    size_t bound;
    struct name_table names;
    struct name_count *count; /* of each name */
    size_t cap;
    uint64_t missed; /* the most that a name that is not there may have had; 0: all is exact */
};

/* Adds to a name's counts.  ERR_NOMEM. */
int name_tally_add(struct name_tally *t, struct span name, const struct name_count *more);
/* The numbers of all names, the most frequent first, equal ones by bytes and then by name;
 * malloc'd.  NULL: memory is out. */
size_t *name_tally_order(const struct name_tally *t);
void name_tally_free(struct name_tally *t);
#endif
