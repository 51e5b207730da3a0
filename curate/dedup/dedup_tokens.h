/* curate/dedup/dedup_tokens.h -- a text as tokens, for repeats that do not depend on white space.
 *
 * A token is a run of letters, digits and marks, or any other single code point but white
 * space; in scripts that put no spaces between words (Han, Kana, Thai, Lao, Burmese, Khmer)
 * every code point is one.
 */
#ifndef CURATE_DEDUP_TOKENS_H
#define CURATE_DEDUP_TOKENS_H

#include "base/err.h"
#include "base/mem.h"

/* hash: XXH3-64 of the bytes, its low half: two tokens that differ have the same one with
 * probability 2^-32.  from, to: bytes in the text. */
struct token_place {
    uint32_t from, to;
};
/* One a thread; start with zeroes. */
struct dedup_tokens {
    uint32_t *hash;
    struct token_place *place;
    size_t n, cap_hash, cap_place;
};
/* ERR_NOMEM; ERR_LIMIT from 2^30 bytes on. */
int dedup_tokens_cut(struct dedup_tokens *t, struct span text, struct err *e);
void dedup_tokens_free(struct dedup_tokens *t);
#endif
