/* curate/text/grams.h -- repetition: repeated spans, the most frequent n-grams, repeated n-grams.
 *
 * All results are exact: hashes only choose where to look, what counts is compared.
 */
#ifndef CURATE_GRAMS_H
#define CURATE_GRAMS_H

#include "curate/text/words.h"

/* Distinct words of a text. */
struct word_type {
    uint64_t key; /* the first 8 bytes, or a hash of a longer word */
    uint32_t off, len, chars;
    uint32_t count;
};

/* Distinct n-grams. */
struct gram {
    uint64_t key;
    uint32_t count, first; /* first: the word at which it begins first */
};

/* Scratch memory for one thread; start with zeroes. */
struct grams {
    struct word_type *type;
    size_t n_types, cap_types;
    uint32_t *id; /* of each word: its type */
    size_t cap_id;
    uint32_t *slot;
    size_t cap_slot;
    struct gram *gram; /* after grams_step: those looked at */
    size_t n_grams, cap_gram;
    uint32_t *here; /* after grams_step: number of the n-gram at a place */
    size_t cap_here;
    uint32_t *place; /* after grams_step: words at which an n-gram begins that occurs twice */
    size_t n_places, cap_place;
    uint8_t *seen;
    size_t cap_seen;
    uint32_t *hash; /* of each place */
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

/* The n-grams that occur more than once, for n = 2, then 3, and so on up, one call each:
 * g->place[0..n_places) are the words at which they begin, in order, and
 * g->gram[g->here[place]] is the n-gram there.  After grams_number_words.  ERR_NOMEM. */
int grams_step(struct grams *g, size_t n_words, size_t n);

/* The most frequent n-gram; of several the one seen first. */
struct gram_top {
    size_t first, count; /* word at which it begins first; 0 times if there is none */
};
/* After grams_step for the same n. */
struct gram_top grams_top(const struct grams *g, size_t n_words, size_t n);
/* Code points of n words from the word at `first`, nothing between. */
size_t grams_chars(const struct grams *g, size_t first, size_t n);
/* After grams_step: code points of the words that are in an n-gram that occurs twice. */
size_t grams_covered(const struct grams *g, size_t n);

/* Characters in n-grams that were there before, for n = 5..10 in chars[0..5].  n-grams
 * are equal if their words are without anything between; behind one that was there
 * before the search goes on n words later (datatrove).  After grams_number_words. */
int grams_find_duplicates(struct grams *g, const struct words *ws, struct span text, size_t chars[6]);

/* Copies among spans: extra ones, and all that have an equal, with their code points.
 * Fewer than 2^31 spans.  ERR_NOMEM. */
struct copies {
    size_t spans, copies, chars;
    size_t all, all_chars;
};
int grams_count_copies(struct grams *g, const struct span *s, size_t n, struct copies *c);
#endif
