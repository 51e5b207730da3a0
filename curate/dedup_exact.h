/* curate/dedup_exact.h -- the stage that drops copies: same text, byte for byte.
 *
 * The first document of a text stays.  Texts are told apart by their XXH3-128 (two
 * different ones among 10^10 collide with probability 10^-19).
 */
#ifndef CURATE_DEDUP_EXACT_H
#define CURATE_DEDUP_EXACT_H

#include "curate/stage.h"

/* Makes the stage; its state is freed by ops->close.  ERR_NOMEM. */
int dedup_exact_stage_open(struct stage *st, struct err *e);

/* ---- the set, for itself ---- */

/* 128-bit keys and a number with each: 24 bytes a slot, 32 to 64 a key. */
struct hash_set;
struct hash_set *hash_set_new(void); /* NULL: out of memory */
void hash_set_free(struct hash_set *s);
/* Adds key with value unless it is there.  1 added; 0 there, its value in *value;
 * ERR_NOMEM (the set stays as it was). */
int hash_set_add(struct hash_set *s, uint64_t lo, uint64_t hi, uint64_t *value);
size_t hash_set_count(const struct hash_set *s);
#endif
