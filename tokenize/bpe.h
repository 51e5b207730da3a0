/* tokenize/bpe.h -- byte pair encoding: one piece of text to its ids, exactly.
 *
 * A merge (a, b) -> id has a rank; as long as two neighbours have a merge, the pair of
 * the lowest rank is joined, the leftmost first (Sennrich et al. 2016, as GPT-2 does it).
 * Rank files (tiktoken) give ranks to tokens and not to pairs: bpe_add_ranks derives
 * for each token the one pair that can form it.
 */
#ifndef TOKENIZE_BPE_H
#define TOKENIZE_BPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/isa.h"
#include "base/mem.h"
#include "tokenize/bpe_cut.h"
#include "tokenize/pages.h"
#include "tokenize/vocab.h"

#define BPE_NO_BYTE UINT32_MAX

/* A short piece, and room for n ids; count is how many it has. */
struct bpe_word {
    const uint8_t *p;
    uint32_t *ids;
    uint32_t n, count;
};
enum { BPE_SHORT = 48 };

/* Zero-initialise, then bpe_set_bytes, then the merges. */
struct bpe {
    uint32_t byte_id[256];
    bool lacks_bytes; /* some of those that UTF-8 never has; their id is BPE_NO_BYTE */
    /* The pairs, in one of two hash tables (bpe_pairs.h). */
    struct bpe_pair *pairs;
    uint32_t mask, n;
    unsigned shift; /* of a pair's hash */
    struct pages pages, dense_pages;
    uint64_t *dense, *dense_end; /* NULL: pairs is the one */
    uint32_t dense_lines, dense_id; /* id - rank */
    bool sparse; /* they cannot be dense */
    bool ranked, unreached; /* by bpe_add_ranks; some token outside ASCII got no pair */
    size_t (*join)(const struct bpe *b, uint32_t *id, uint32_t *rank, uint32_t *joined, size_t n);
    void (*words)(const struct bpe *b, struct bpe_word *words, size_t n);
    void (*symbols)(const struct bpe *b, struct bpe_word *words, size_t n);
    struct bpe_byte_pair *byte_pairs; /* [256][256] */
    struct bpe_crossings crossings;
};

/* What a thread needs to merge; grows to the longest piece.  Zero-initialise. */
struct bpe_scratch {
    struct buf symbols, heap;
};

/* Finds the tokens of one byte in v.  ERR_FORMAT if one is missing that UTF-8 can have. */
int bpe_set_bytes(struct bpe *b, const struct vocab *v, struct err *e);
/* Instead of bpe_set_bytes where symbols are no bytes; n: merges to have room for. */
int bpe_begin(struct bpe *b, uint32_t n, struct err *e);
/* Says that a merge of these is about to be added: the table's memory is asked for. */
void bpe_ask(const struct bpe *b, uint32_t left, uint32_t right);
/* (left, right) -> id at this rank.  A pair given again keeps its first rank. */
int bpe_add_merge(struct bpe *b, uint32_t left, uint32_t right, uint32_t rank, uint32_t id, struct err *e);
/* Two neighbours whose bytes are a token are joined, its id being the rank, as tiktoken does it.
 * Tokens that no order of merges reaches get no pair. */
int bpe_add_ranks(struct bpe *b, const struct vocab *v, struct err *e);
/* Call when all merges are there, with the tokens they make. */
int bpe_finish(struct bpe *b, const struct vocab *v, struct err *e);

/* For tokenizers that take a piece which is a token as it is: no crossings, so no piece is taken apart, if merging
 * would make another of some token, since a part may not be taken as it is. */
int bpe_check_cuts(struct bpe *b, const struct vocab *v, struct err *e);

/* True if there is a token for each byte. */
bool bpe_has_bytes(const struct bpe *b, const uint8_t *piece, size_t n);
/* Writes the ids of the piece (bpe_has_bytes, n < 2^31) to ids, which has room for n.
 * Returns their number or ERR_NOMEM.  O(n log n); quadratic only below 50 bytes. */
int64_t bpe_encode(const struct bpe *b, struct bpe_scratch *s, const uint8_t *piece, size_t n, uint32_t *ids);

/* The same for many pieces of 1 to BPE_SHORT bytes, whose bytes all have tokens; faster than one by one. */
void bpe_encode_words(const struct bpe *b, struct bpe_word *words, size_t n);

/* Joins the symbols ids[0..n-1], which may be numbers that no pair has, in place; their number
 * or ERR_NOMEM.  As fast as bpe_encode. */
int64_t bpe_merge(const struct bpe *b, struct bpe_scratch *s, uint32_t *ids, size_t n);

/* The same for many words, of which each has `count` <= BPE_SHORT symbols in its ids and then what is left of them. */
void bpe_merge_words(const struct bpe *b, struct bpe_word *words, size_t n);

/* True if a pair has one of these n ids, of which negative ones do not count. */
bool bpe_uses(const struct bpe *b, const int64_t *ids, size_t n);

/* A hash of all merges, whatever the order they were added in. */
uint64_t bpe_hash(const struct bpe *b);
void bpe_free(struct bpe *b);
void bpe_scratch_free(struct bpe_scratch *s);

#endif
