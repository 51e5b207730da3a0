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
#include "tokenize/trie.h"

struct added_token {
    struct span text;
    uint32_t id;
    bool special;
    bool normalized, lstrip, rstrip, single_word; /* false but for Hugging Face's */
};

/* Tokens searched for together. */
struct added_set {
    struct trie texts; /* to places in the list; of two with the same text the first added is found */
    uint8_t next[256 / 8][256]; /* bit b % 8 of [b / 8][c]: a token may stand where there are the bytes b and c */
    /* Eight groups of tokens, by their first bytes: a bit for each that has this half of byte 0 and of byte 1. */
    uint8_t low[2][16], high[2][16];
    uint8_t group[256]; /* the bit of those that begin with this byte */
    uint8_t firsts;     /* how many such bytes there are, modulo 8 */
};

/* Zero-initialise. */
struct added {
    struct buf list;    /* struct added_token, as they were added */
    struct arena texts; /* what they are written as */
    struct trie ids;    /* the four bytes of an id to its place in the list */
    struct added_set set[2]; /* those that are not `normalized`, the others */
};

struct added_match {
    size_t begin, end; /* with the white space that it takes along */
    size_t next;       /* where the search goes on */
    const struct added_token *token;
};

/* Copies the token, whose text is not empty.  ERR_NOMEM, ERR_LIMIT (TRIE_NODES_MAX). */
int added_add(struct added *a, const struct added_token *token, struct err *e);
/* The n tokens, as they were added. */
static inline const struct added_token *added_list(const struct added *a, size_t *n)
{
    *n = a->list.n / sizeof(struct added_token);
    return (const struct added_token *)(const void *)a->list.p;
}
/* The first place at or behind text[at], at most text.n, where a token may begin: by their first two bytes, and one by one. */
ISA_DECLARE(size_t, added_candidate, (const struct added_set *s, struct span text, size_t at));
size_t added_candidate_slow(const struct added_set *s, struct span text, size_t at);
/* The first match of the tokens that are `normalized`, or are not, at or behind text[from]; false if there is none.  Where
 * white space before it is taken along, begin is at least `from_text`, the end of the match before. */
bool added_find(const struct added *a, bool normalized, struct span text, size_t from, size_t from_text,
                struct added_match *m);
/* The token with this id, of two the one that is not `normalized`, or NULL. */
const struct added_token *added_get(const struct added *a, uint32_t id);
/* The special token with this text, or NULL. */
const struct added_token *added_special(const struct added *a, struct span text);
/* Where white space from `at` on ends; where that before `at` begins, not below `least`. */
size_t added_skip_space(struct span text, size_t at);
size_t added_skip_space_back(struct span text, size_t at, size_t least);
void added_free(struct added *a);

#endif
