/* tokenize/added.h -- tokens that are found in the text before it is cut into pieces.
 *
 * As Hugging Face's added tokens: leftmost first, the longest there, not overlapping; those
 * that are not `normalized` in the text as it comes, then the others in the
 * normalised text between.  Special tokens are left alone unless asked for.
 */
#ifndef TOKENIZE_ADDED_H
#define TOKENIZE_ADDED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/isa.h"
#include "base/mem.h"

struct added_token {
    struct span text; /* owned */
    uint32_t id, order; /* of two with the same text the first added is found; set by added_add */
    bool special;
    bool normalized, lstrip, rstrip, single_word; /* false but for Hugging Face's */
};

/* Tokens searched for together, sorted for the search. */
struct added_set {
    struct added_token *v;
    uint32_t n;
    bool specials_only;   /* nothing to find unless special tokens are wanted or counted */
    uint32_t by_first[257]; /* tokens whose first byte is b: v[by_first[b]] to v[by_first[b + 1]] */
    uint8_t next[256 / 8][256]; /* bit b % 8 of [b / 8][c]: a token may stand where there are the bytes b and c */
    /* Eight groups of tokens, by their first bytes: a bit for each that has this half of byte 0 and of byte 1. */
    uint8_t low[2][16], high[2][16];
};

/* Zero-initialise. */
struct added {
    struct added_set raw, normalized;
};

struct added_match {
    size_t begin, end; /* with the white space that it takes along */
    size_t next;       /* where the search goes on */
    const struct added_token *token;
};

/* Copies the token. */
int added_add(struct added *a, const struct added_token *token, struct err *e);
/* Call when all are there. */
void added_finish(struct added *a);
/* The first place at or behind text[at], at most text.n, where a token may begin: by their first two bytes, and one by one. */
ISA_DECLARE(size_t, added_candidate, (const struct added_set *s, struct span text, size_t at));
size_t added_candidate_slow(const struct added_set *s, struct span text, size_t at);
/* The first match at or behind text[from]; false if there is none.  Where
 * white space before it is taken along, begin is at least `from_text`, the end of the match before. */
bool added_find(const struct added_set *s, struct span text, size_t from, size_t from_text, struct added_match *m);
/* The token with this id, or NULL. */
const struct added_token *added_get(const struct added *a, uint32_t id);
/* The special token with this text, or NULL. */
const struct added_token *added_special(const struct added *a, struct span text);
/* Where white space from `at` on ends; where that before `at` begins, not below `least`. */
size_t added_skip_space(struct span text, size_t at);
size_t added_skip_space_back(struct span text, size_t at, size_t least);
void added_free(struct added *a);

#endif
