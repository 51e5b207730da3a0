/* curate/dedup/dedup_set.h -- a set of 128-bit keys, and a number with each: 24 bytes a slot, 32 to 64 a key. */
#ifndef CURATE_DEDUP_SET_H
#define CURATE_DEDUP_SET_H

#include <stdint.h>

#include "base/err.h"

struct hash_set;
struct hash_set *hash_set_new(void); /* NULL: out of memory */
void hash_set_free(struct hash_set *s);
/* Adds key with value unless it is there.  1 added; 0 there, its value in *value;
 * ERR_NOMEM (the set stays as it was). */
int hash_set_add(struct hash_set *s, uint64_t lo, uint64_t hi, uint64_t *value);
#endif
