/* base/name_table.h -- different strings, numbered in the order in which they came. */
#ifndef BASE_NAME_TABLE_H
#define BASE_NAME_TABLE_H

#include "base/err.h"
#include "base/mem.h"

/* Below, at or above 0: by bytes, of two that are alike so far the shorter first. */
static inline int span_compare(struct span a, struct span b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;

    return c ? c : (a.n > b.n) - (a.n < b.n);
}

/* Start with zeroes.  name[0..n) stay where they are until the table is freed. */
struct name_table {
    struct span *name;
    size_t n, cap;
    struct name_slot *slot;
    size_t slots; /* a power of two, or 0 */
    struct arena bytes;
};

/* The number of s, which is copied when it is new.  1: it is new; 0: it was there; ERR_NOMEM. */
int name_table_add(struct name_table *t, struct span s, size_t *number);
/* The number of s; false if it is not there. */
bool name_table_find(const struct name_table *t, struct span s, size_t *number);
void name_table_free(struct name_table *t);
#endif
