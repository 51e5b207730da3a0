/* tokenize/merges_round.h -- the inside of merges.c: which pairs and words a round of joining is about.
 */
#ifndef TOKENIZE_MERGES_ROUND_H
#define TOKENIZE_MERGES_ROUND_H

#include "tokenize/merges.h"
#include "tokenize/pair_table.h"
#include "tokenize/word_file.h"

/* What the neighbours of one kind of a joined pair lose and gain. */
struct merges_side {
    int64_t loss, gain;
    uint64_t list;
    uint32_t n; /* places */
    bool met, kept;
};

/* Counts of pairs by hash: several pairs may share one. */
struct merges_counters {
    uint64_t *of, n; /* n <= 2^32 */
};

static inline uint64_t merges_counter(const struct merges_counters *c, uint64_t hash)
{
    return (hash >> 32) * c->n >> 32;
}

struct merges_state {
    struct merges_words *words;
    struct word_file *file; /* NULL: words has all */
    const struct merges_rules *rules;
    uint32_t ids;     /* more than any token's */
    uint32_t *length; /* of each token, in bytes */
    uint32_t *width;  /* of each token, in cells */
    int64_t floor;    /* no pair below it is joined */
    int64_t most;     /* no pair occurs more often */
    /* This round's pairs are all those above the bar, and those that reach it whose tie is no more than `tie`. */
    int64_t bar;
    uint64_t tie;
    struct merges_counters few, counters; /* few: fit into the cache; counters: this round's, maybe those */
    struct pair_table pairs;
    uint64_t *filter;   /* a bit for each pair that the round begins with, by hash */
    struct buf heap;    /* struct pair_entry */
    uint64_t listed;    /* of words->lists */
    word_file_renew *renew; /* what the file is to take over on the next reading */
    struct merge alone; /* a pair that is joined then */
    struct pair_table refused; /* pairs that are not to be joined */
    bool read;
    struct merges_side *left, *right; /* by token */
    struct buf lefts, rights;         /* those met */
};

static inline bool merges_is_at(const struct merges_state *t, uint64_t key, uint32_t at)
{
    uint32_t left = (uint32_t)(key >> 32);
    const uint32_t *c = t->words->cells;

    return c[at] == left && c[at + t->width[left]] == (uint32_t)key;
}

enum { MERGES_FILTER_BITS = 20 };

/* A pair of the round; NULL: it is none. */
static inline struct pair *merges_find_pair(const struct merges_state *t, uint64_t key)
{
    uint64_t bit = pair_hash(key) >> (64 - MERGES_FILTER_BITS);

    return t->filter[bit / 64] >> bit % 64 & 1 ? pairs_find(&t->pairs, key) : NULL;
}

static inline bool merges_is_refused(const struct merges_state *t, uint64_t key)
{
    return t->refused.n && pairs_find(&t->refused, key);
}

static inline bool merges_is_allowed(const struct merges_state *t, uint64_t key)
{
    uint32_t bytes = t->length[key >> 32] + t->length[(uint32_t)key];

    return !t->rules->max_length || bytes < t->rules->max_length || bytes == 2;
}

/* What decides among pairs of the same count. */
uint64_t merges_tie(const struct merges_state *t, struct pair *p);
/* Finds the pairs of a round, and fills the table, the lists and the heap; the heap stays empty if none was
 * found above the bar, or if *alone is the pair to join, for want of memory.  1; 0: no pair is left. */
int merges_begin_round(struct merges_state *t, struct pair_entry *alone, struct err *e);
/* Gives each token one cell again. */
void merges_end_round(struct merges_state *t);

#endif
