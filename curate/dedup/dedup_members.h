/* curate/dedup/dedup_members.h -- linked documents, put in the order in which they are decided: in memory if
 * there is room for them, else sorted by way of the disk.  Pairs of numbers can be sorted as well.
 */
#ifndef CURATE_DEDUP_MEMBERS_H
#define CURATE_DEDUP_MEMBERS_H

#include <stdbool.h>

#include "base/spill.h"

struct member {
    uint64_t rank;
    uint32_t root, number;
};

/* A pair of numbers as a member: sorted by the first, then by the second. */
static inline struct member member_of_pair(uint64_t first, uint64_t second)
{
    return (struct member){.root = (uint32_t)(first >> 32), .rank = ~(first << 32 | second >> 32), .number = (uint32_t)second};
}
static inline uint64_t member_first(const struct member *m)
{
    return (uint64_t)m->root << 32 | ~m->rank >> 32;
}
static inline uint64_t member_second(const struct member *m)
{
    return ~m->rank << 32 | m->number;
}

struct members {
    struct member *m; /* all of them, in order, unless they are on disk */
    size_t room, used;
    uint64_t n;
    bool on_disk;
    struct spill runs, sorted; /* each run has room members, but the last */
    const char *dir;
};

/* room: members in memory, more than 0; half as many bytes more are taken while runs are merged.  Close it in any
 * case. */
int members_open(struct members *s, size_t room, const char *dir, struct err *e);
void members_close(struct members *s);
/* None, again. */
void members_clear(struct members *s);
int members_add(struct members *s, const struct member *m, struct err *e);
/* After the last: groups together, by their roots; in each the highest rank first, then the smallest number. */
int members_sort(struct members *s, struct err *e);
/* Copies numbers [at, at + n). */
int members_get(const struct members *s, uint64_t at, size_t n, struct member *to, struct err *e);
#endif
