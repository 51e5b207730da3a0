/* base/laps.h -- where the time of a run goes: seconds by phase, added up by any thread.
 *
 *     uint64_t t = laps_now();
 *     ...
 *     t = laps_add(&laps, READING, t);
 *
 * What several threads do at once counts for each of them.
 */
#ifndef BASE_LAPS_H
#define BASE_LAPS_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum { LAPS_MAX = 16 };
struct laps {
    const char *const *name; /* of each phase, as statistics have it */
    int n;                   /* at most LAPS_MAX */
    uint64_t ns[LAPS_MAX];
};

/* Nanoseconds of a clock that only goes on. */
uint64_t laps_now(void);
/* Adds the time since `since` to a phase; now.  laps NULL: nobody wants to know. */
uint64_t laps_add(struct laps *laps, int phase, uint64_t since);
/* The same of so many nanoseconds. */
void laps_more(struct laps *laps, int phase, uint64_t ns);
/* Appends {"NAME":SECONDS,...}. */
int laps_json(const struct laps *laps, struct buf *json);
#endif
