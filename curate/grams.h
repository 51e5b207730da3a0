/* curate/grams.h -- repetition: repeated spans, the most frequent n-grams, repeated n-grams.
 *
 * All results are exact: hashes only choose where to look, what counts is compared.
 */
#ifndef CURATE_GRAMS_H
#define CURATE_GRAMS_H

#include "curate/words.h"

/* Distinct words of a text. */
struct word_type {
    uint64_t key; /* the first 8 bytes, or a hash of a longer word */
    uint32_t off, len, chars;
    uint32_t count;
};

/* Scratch memory for one thread; start with zeroes. */
struct grams {
    struct word_type *type;
    size_t n_types, cap_types;
    uint32_t *id; /* of each word: its type */
    size_t cap_id;
    uint32_t *slot;
    size_t cap_slot;
    struct gram *gram;
    size_t cap_gram;
    uint32_t *here; /* number of the n-gram at each word */
    size_t cap_here;
    uint8_t *seen;
    size_t cap_seen;
    uint32_t *hash; /* of each word's place, later the places in question */
    size_t cap_hash;
    char *joined; /* the words without anything between */
    size_t cap_joined;
    uint32_t *start; /* of each word in joined */
    size_t cap_start;
};
void grams_free(struct grams *g);

/* Numbers the words: g->id[i] is the type of word i, types in order of appearance with
 * their counts.  ERR_NOMEM. */
int grams_number_words(struct grams *g, const struct words *ws, struct span text, bool ascii);

/* The most frequent n-gram; of several the one seen first. */
struct gram_top {
    size_t first, count; /* word at which it begins first; 0 times if there is none */
};
/* For n = 2, 3, 4 in top[0..2].  After grams_number_words.  ERR_NOMEM. */
int grams_find_top(struct grams *g, size_t n_words, struct gram_top top[3]);

/* Characters in n-grams that were there before, for n = 5..10 in chars[0..5].  n-grams
 * are equal if their words are without anything between; behind one that was there
 * before the search goes on n words later (datatrove).  After grams_number_words. */
int grams_find_duplicates(struct grams *g, const struct words *ws, struct span text, size_t chars[6]);

/* Extra copies among spans: how many, and their code points.  ERR_NOMEM. */
struct copies {
    size_t spans, copies, chars;
};
int grams_count_copies(struct grams *g, const struct span *s, size_t n, struct copies *c);
#endif
