/* curate/dedup/dedup_bloom.h -- what has come before, in a fixed memory and with known mistakes (Bloom 1970).
 *
 * m bits and k functions: a key sets k bits, and has come before if all of them are set already.  For n keys and a rate p of
 * mistakes m = -n ln p / (ln 2)^2 and k = m / n ln 2 take the least memory, 1.44 log2(1 / p) bits a key; k = log2(1 / p).
 * The functions are lo + i hi of a key of 128 bits (Kirsch and Mitzenmacher 2006).
 */
#ifndef CURATE_DEDUP_BLOOM_H
#define CURATE_DEDUP_BLOOM_H

#include "base/err.h"
#include "base/hash.h"

struct dedup_bloom {
    uint64_t *word;
    uint64_t bits, ones; /* m; how many are set */
    uint64_t keys;       /* added that were new */
    int functions;
};
/* For so many keys (1 to 2^40), of which the last is mistaken at this rate in (0, 1).  ERR_NOMEM. */
int dedup_bloom_open(struct dedup_bloom *b, uint64_t keys, double rate, struct err *e);
/* false: the key was not there; now it is. */
bool dedup_bloom_has(struct dedup_bloom *b, struct hash128 key);
/* The probability that a new key is taken for one that came before, as full as the filter is. */
double dedup_bloom_rate(const struct dedup_bloom *b);
void dedup_bloom_close(struct dedup_bloom *b);
#endif
