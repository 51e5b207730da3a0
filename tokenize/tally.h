/* tokenize/tally.h -- how often each word occurs: a growing hash table, one a thread, and a
 * file that takes in what tables hold when memory is short.
 */
#ifndef TOKENIZE_TALLY_H
#define TOKENIZE_TALLY_H

#include <pthread.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/spill.h"

struct tally_entry {
    uint64_t lo, hi; /* the word, its length in hi >> 56; longer than 15 bytes: where it lies in the store, a
                      * mark, a part of its hash, its length in 32 bits; hi 0: free */
    uint64_t count;
    uint64_t place;  /* the lowest it has been counted at */
};

/* Zero-initialise. */
struct tally {
    struct tally_entry *entries;
    uint64_t mask, n;
    struct buf store;
};

/* Counts the words begin..ends[0], ..., ..ends[n-1] of a text, each once, at place, place + 1 ...
 * ERR_NOMEM. */
int tally_text(struct tally *t, const uint8_t *text, uint32_t begin, const uint32_t *ends, size_t n, uint64_t place);
/* Counts a word of 1 to 2^32-1 bytes `times` more. */
int tally_add(struct tally *t, struct span word, uint64_t times, uint64_t place);
/* The bytes of an entry; in the entry or in t. */
struct span tally_word(const struct tally *t, const struct tally_entry *x);
/* The next entry behind x (NULL: the first), in no order; NULL: there is none. */
const struct tally_entry *tally_next(const struct tally *t, const struct tally_entry *x);
/* Bytes of memory that it takes, and that it takes at most while n more words come that have
 * so many bytes together. */
uint64_t tally_size(const struct tally *t);
uint64_t tally_size_with(const struct tally *t, uint64_t n, uint64_t bytes);
/* Forgets all words but keeps the memory. */
void tally_clear(struct tally *t);
void tally_free(struct tally *t);

/* Tallies on disk: each in parts by the hash of its words, so that what belongs together can be read
 * a part at a time. */
enum { TALLY_PARTS = 256 }; /* 8 bits of the hash */

struct tally_disk {
    struct spill file;
    struct buf runs; /* struct tally_run */
    pthread_mutex_t lock;
};

int tally_disk_open(struct tally_disk *d, const char *dir, struct err *e);
/* Writes the tally out and frees it; any number of threads. */
int tally_disk_put(struct tally_disk *d, struct tally *t, struct err *e);
/* Adds what was written of one part to `into`.  No puts any more. */
int tally_disk_get(const struct tally_disk *d, int part, struct tally *into, struct err *e);
bool tally_disk_empty(const struct tally_disk *d);
void tally_disk_close(struct tally_disk *d);

#endif
