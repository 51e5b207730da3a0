/* tokenize/tally.h -- how often each word occurs: a growing hash table, one a thread. */
#ifndef TOKENIZE_TALLY_H
#define TOKENIZE_TALLY_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct tally_entry {
    union {
        struct {
            uint64_t lo, hi; /* hi >> 56: the length, or a mark; lo of a long word: its hash */
        };
        char bytes[16]; /* a word of up to 15 bytes */
    };
    uint64_t count;  /* 0: free */
    uint64_t at;     /* of a longer word in the store */
};

/* Zero-initialise. */
struct tally {
    struct tally_entry *entries;
    uint64_t mask, n;
    struct buf store;
};

/* Counts a word (n > 0 bytes) `times` more.  ERR_NOMEM. */
int tally_add(struct tally *t, const uint8_t *p, size_t n, uint64_t times);
/* The bytes of an entry with a count; in the entry or in t. */
struct span tally_word(const struct tally *t, const struct tally_entry *x);
void tally_free(struct tally *t);

#endif
