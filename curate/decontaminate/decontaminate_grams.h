/* curate/decontaminate/decontaminate_grams.h -- where a run of words occurs in a set of texts.
 *
 * All the words of all the texts stand in one array; each n words in a row of one text
 * are a gram.  A rolling hash of the words' hashes asks a small filter that stays in the
 * cache, then a table whose entries chain the places of equal grams.
 */
#ifndef CURATE_DECONTAMINATE_GRAMS_H
#define CURATE_DECONTAMINATE_GRAMS_H

#include "base/hash.h"
#include "curate/decontaminate/decontaminate_words.h"

/* Places kept of one gram: what occurs more often tells nothing of where a text is from. */
enum { GRAM_MAX_PLACES = 256 };
#define GRAM_NONE UINT32_MAX
#define GRAM_FACTOR UINT64_C(0x9e3779b97f4a7c15)

struct gram_slot {
    uint64_t hash;
    uint32_t first; /* place; GRAM_NONE: free */
    uint32_t count; /* texts that have the gram, or GRAM_MAX_PLACES */
};

struct gram_index {
    int width;
    uint64_t power;  /* GRAM_FACTOR to the width */
    uint64_t *word;  /* of all texts */
    size_t n_words, cap_words;
    uint32_t *start; /* of each text in word, and the end of the last */
    size_t n_texts, cap_texts;
    uint32_t *next;  /* the place of an equal gram behind it; GRAM_NONE: none */
    struct gram_slot *slot;
    size_t mask, used; /* slots less 1; slots in use */
    uint64_t *filter;
    int filter_shift; /* the hash shifted by it is a number of a filter word */
};

/* Zero-initialise, add texts, then build with grams of width words.  ERR_NOMEM;
 * ERR_LIMIT: 2^32 words or more. */
int gram_index_add(struct gram_index *x, const struct hashed_words *ws, struct err *e);
int gram_index_build(struct gram_index *x, int width, struct err *e);
void gram_index_free(struct gram_index *x);
/* The text that has the word at place. */
uint32_t gram_index_text(const struct gram_index *x, uint32_t place);
/* Bytes that it holds. */
size_t gram_index_bytes(const struct gram_index *x);

/* A hash that rolls: push the next word's hash, and out the one width words before it. */
static inline uint64_t gram_push(uint64_t hash, uint64_t word)
{
    return hash * GRAM_FACTOR + word;
}
static inline uint64_t gram_drop(const struct gram_index *x, uint64_t hash, uint64_t word)
{
    return hash - word * x->power;
}
/* The hash of the gram of these words, as gram_push makes it word by word. */
uint64_t gram_hash(const uint64_t *word, int width);

/* Three bits of a word of the filter. */
static inline uint64_t gram_filter_bits(uint64_t mixed)
{
    return UINT64_C(1) << (mixed & 63) | UINT64_C(1) << (mixed >> 6 & 63) | UINT64_C(1) << (mixed >> 12 & 63);
}
/* False: there is no such gram.  True: gram_find may find it. */
static inline bool gram_maybe(const struct gram_index *x, uint64_t hash)
{
    uint64_t mixed = hash_mix64(hash), bits = gram_filter_bits(mixed);

    return (x->filter[mixed >> x->filter_shift] & bits) == bits;
}
/* The slot of the gram; NULL if there is none. */
const struct gram_slot *gram_find(const struct gram_index *x, uint64_t hash);
#endif
