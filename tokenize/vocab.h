/* tokenize/vocab.h -- token bytes by id, and ids by bytes.
 *
 * Ids may have holes (p50k skips 50256).  Two ids may not have the same bytes among
 * those that vocab_find gives back: the first one added is found.
 */
#ifndef TOKENIZE_VOCAB_H
#define TOKENIZE_VOCAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum {
    VOCAB_MAX_ID = (1 << 24) - 2, /* ids are packed in 24 bits (word_table.h) */
    VOCAB_NONE = -1
};

/* Zero-initialise. */
struct vocab {
    struct buf bytes;   /* every token's bytes, one after another */
    struct buf entries; /* struct vocab_entry by id */
    uint32_t n;         /* highest id + 1 */
    struct vocab_slot *slots;    /* hash table: id + 1, 0 is free */
    uint32_t mask, used;
    bool twins;         /* two ids have the same bytes */
};

/* Room for n tokens, so that it need not grow on the way to them. */
int vocab_reserve(struct vocab *v, uint32_t n, struct err *e);
/* Gives id the bytes s.  ERR_FORMAT: the id is out of range or taken; ERR_NOMEM. */
int vocab_add(struct vocab *v, uint32_t id, struct span s, struct err *e);
/* Says that the id is an added token's and not the model's: no piece of text is it. */
void vocab_mark_added(struct vocab *v, uint32_t id);
bool vocab_is_added(const struct vocab *v, uint32_t id);
/* The id of exactly these bytes, or VOCAB_NONE. */
int64_t vocab_find(const struct vocab *v, struct span s);
/* The same among the model's own tokens, not added ones. */
int64_t vocab_find_own(const struct vocab *v, struct span s);
/* The same as vocab_find; fast where the id is the one given. */
int64_t vocab_find_likely(const struct vocab *v, struct span s, uint32_t likely);
/* The bytes of an id; p is NULL for a hole. */
struct span vocab_get(const struct vocab *v, uint32_t id);
void vocab_free(struct vocab *v);

#endif
