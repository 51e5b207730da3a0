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
#include "tokenize/pages.h"

enum {
    VOCAB_MAX_ID = (1 << 24) - 2, /* ids are packed in 24 bits (word_table.h) */
    VOCAB_NONE = -1
};

/* Zero-initialise. */
struct vocab {
    struct buf bytes;   /* every token's bytes, one after another */
    struct buf entries; /* struct vocab_entry by id */
    uint32_t n, there;  /* highest id + 1; how many ids up to that are tokens' */
    struct vocab_slot *slots;    /* hash table: id + 1, 0 is free */
    struct pages pages;
    uint32_t mask, used;
    bool twins;         /* two ids have the same bytes */
};

/* Room for n tokens, so that it need not grow on the way to them. */
int vocab_reserve(struct vocab *v, uint32_t n, struct err *e);
/* Gives id the bytes s.  ERR_FORMAT: the id is out of range or taken; ERR_NOMEM. */
int vocab_add(struct vocab *v, uint32_t id, struct span s, struct err *e);
/* The same for many, which are not found before vocab_index; nothing else is to be added meanwhile. */
int vocab_put(struct vocab *v, uint32_t id, struct span s, struct err *e);
int vocab_index(struct vocab *v, struct err *e);
/* Of ids with the same bytes the last is found from here on, not the first. */
void vocab_find_last(struct vocab *v);
/* Says that the id is an added token's and not the model's: no piece of text is it. */
void vocab_mark_added(struct vocab *v, uint32_t id);
bool vocab_is_added(const struct vocab *v, uint32_t id);
/* The id of exactly these bytes, or VOCAB_NONE. */
int64_t vocab_find(const struct vocab *v, struct span s);
/* The same in steps, so that memory is asked early for several.  The vocabulary has tokens. */
uint64_t vocab_ask(const struct vocab *v, struct span s);
void vocab_ask_more(const struct vocab *v, uint64_t asked); /* may be left out */
bool vocab_may_have(const struct vocab *v, uint64_t asked); /* false: certainly not; true: by 32 bits of a hash */
int64_t vocab_find_asked(const struct vocab *v, struct span s, uint64_t asked);
/* The same among the model's own tokens, not added ones. */
int64_t vocab_find_own(const struct vocab *v, struct span s);
/* True if the bytes of an id are two others, neither of them empty, one after the other. */
bool vocab_is_joined(const struct vocab *v, uint32_t id, struct span left, struct span right);
/* The same as vocab_find; fast where the id is the one given. */
int64_t vocab_find_likely(const struct vocab *v, struct span s, uint32_t likely);
/* The bytes of an id; p is NULL for a hole. */
struct span vocab_get(const struct vocab *v, uint32_t id);
void vocab_free(struct vocab *v);

#endif
