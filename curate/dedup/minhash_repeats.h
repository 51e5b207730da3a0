/* curate/dedup/minhash_repeats.h -- which of many hashes came before. */
#ifndef CURATE_MINHASH_REPEATS_H
#define CURATE_MINHASH_REPEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Those that came so far.  Zero-initialise to start. */
struct repeats {
    uint64_t *table; /* open addressing; 0: free */
    size_t cap, mask;
    bool zero;
};

/* None came, and there is room for so many.  ERR_NOMEM. */
int repeats_begin(struct repeats *r, size_t count);
void repeats_free(struct repeats *r);

/* Which of so many parts, a power of two up to 1024, a hash of 32 bits or more belongs to. */
static inline size_t repeats_part(uint64_t h, size_t parts)
{
    return h >> 22 & (parts - 1);
}

/* Whether the next one came before. */
static inline bool repeats_next(struct repeats *r, uint64_t h)
{
    size_t at = h & r->mask;
    bool before;

    while (r->table[at] && r->table[at] != h)
        at = (at + 1) & r->mask;
    before = h == 0 ? r->zero : r->table[at] == h;
    r->zero |= h == 0;
    r->table[at] = h;
    return before;
}
#endif
