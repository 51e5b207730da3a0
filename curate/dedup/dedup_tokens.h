/* curate/dedup/dedup_tokens.h -- a text as tokens, for repeats that do not depend on white space.
 *
 * A token is a run of letters, digits and marks, or any other single code point but white
 * space; in scripts that put no spaces between words (Han, Kana, Thai, Lao, Burmese, Khmer)
 * every code point is one.  Or tokens are those of a tokenizer, in programs that have any.
 */
#ifndef CURATE_DEDUP_TOKENS_H
#define CURATE_DEDUP_TOKENS_H

#include "base/err.h"
#include "base/mem.h"

/* hash: XXH3-64 of the bytes, its low half: two tokens that differ have the same one with
 * probability 2^-32; of a tokenizer the id.  from, to: bytes in the text. */
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
/* Room for so many.  ERR_NOMEM. */
int dedup_tokens_room(struct dedup_tokens *t, size_t n, struct err *e);

/* Cuts texts by a tokenizer. */
struct dedup_cutter {
    int (*open)(void **cutter, const char *tokenizer, struct err *e);
    void (*close)(void *cutter); /* NULL: nothing */
    int (*thread_open)(void *cutter, void **thread, struct err *e);
    void (*thread_close)(void *thread); /* NULL: nothing */
    /* As dedup_tokens_cut, by ids.  ERR_FORMAT: the tokens are not the text's bytes. */
    int (*cut)(void *thread, struct dedup_tokens *t, struct span text, struct err *e);
};
/* A program that has tokenizers sets it before stages are opened; NULL: there are none. */
extern const struct dedup_cutter *dedup_tokenizers;
#endif
