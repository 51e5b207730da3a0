/* curate/language/ngram_model.h -- how n-gram models lie in memory, as KenLM's binary files have them.
 *
 * Inside only.  Words have numbers, 0 being what is unknown.  An n-gram is looked for from its last word to its first, as long
 * as there are longer ones.  Of a unigram and a middle n-gram there is a probability and a backoff, of the longest a
 * probability.  The sign of a stored 0 as a backoff, -0, says that no longer n-gram begins so.
 */
#ifndef CURATE_NGRAM_MODEL_H
#define CURATE_NGRAM_MODEL_H

#include <inttypes.h>

#include "base/file.h"
#include "curate/language/ngram.h"

/* Slots of a key of 8 bytes, 0 where there is none, and a value; a key's place is its remainder, or the next that is free. */
struct ngram_table {
    const uint8_t *slot;
    uint64_t buckets;
    size_t size; /* of a slot */
};

/* The n-grams of one order in a trie: records of bits, those with the same words behind them side by side, in the order of
 * their first word.  One more than there are says where the last one's longer ones end. */
struct ngram_level {
    const uint8_t *base;
    uint64_t n;
    unsigned value_bits, next_bits, total_bits;
    const uint8_t *high; /* array-compressed: from which record on pointers have each high part, uint64_t; NULL: they are whole */
    uint64_t n_high;
    const uint8_t *probs, *backoffs; /* quantised: floats; NULL: they are in the record */
};

struct ngram_model {
    char *name;
    const char *kind;
    struct file_map map; /* or what ARPA files become: */
    void *owned[NGRAM_MAX_ORDER + 2];
    const uint8_t *start; /* of the file's bytes, for offsets */
    int order;
    bool trie, quantised;
    uint64_t count[NGRAM_MAX_ORDER];
    uint32_t bound, begin, end; /* words are below bound; <s> and </s> */
    /* Words by MurmurHash64A: a table to their numbers, or of a trie the sorted hashes, number 1 first. */
    struct ngram_table words;
    const uint8_t *hashes;
    uint64_t n_hashes;
    const uint8_t *unigrams; /* float probability, float backoff; of a trie also uint64_t, its first record */
    struct ngram_table table[NGRAM_MAX_ORDER - 1]; /* of bigrams and so on; the last has no backoff */
    struct ngram_level level[NGRAM_MAX_ORDER - 1];
    unsigned word_bits, prob_bits, backoff_bits;
};

enum { NGRAM_UNIGRAM = 8, NGRAM_TRIE_UNIGRAM = 16, NGRAM_WORD_SLOT = 12, NGRAM_SLOT = 16, NGRAM_LONGEST_SLOT = 12 };

static inline uint64_t ngram_u64(const uint8_t *p)
{
    uint64_t x;

    memcpy(&x, p, sizeof x);
    return x;
}
static inline uint32_t ngram_u32(const uint8_t *p)
{
    uint32_t x;

    memcpy(&x, p, sizeof x);
    return x;
}
static inline float ngram_float(const uint8_t *p)
{
    float x;

    memcpy(&x, p, sizeof x);
    return x;
}

/* The key of an n-gram one word longer (in front) than that of `key`; of a unigram it is the word's number. */
static inline uint64_t ngram_key(uint64_t key, uint32_t word)
{
    return key * 8978948897894561157u ^ (1 + (uint64_t)word) * 17894857484156487943u;
}
/* MurmurHash64A with seed 0. */
uint64_t ngram_hash(struct span word);

/* Where a wrong place of a model was found. */
struct ngram_fault {
    const uint8_t *at; /* NULL: nowhere */
    const char *what;
};

/* What of a sentence so far bears on the next word: words from the last one back, and the backoff of so many of them. */
struct ngram_state {
    int n;
    uint32_t word[NGRAM_MAX_ORDER];
    float backoff[NGRAM_MAX_ORDER];
};
/* Whether an n-gram with this backoff begins a longer one, or has to be charged. */
static inline bool ngram_extends(float backoff)
{
    uint32_t bits;

    memcpy(&bits, &backoff, sizeof bits);
    return bits != 0x80000000u;
}

/* Sets what a trie's file says from p (the search structure) to end; returns its bytes in *size. */
int ngram_trie_layout(struct ngram_model *m, const uint8_t *p, const uint8_t *end, bool compressed, uint64_t *size,
                      struct err *e);
/* The probability of a word after `in`, without what backing off costs; *found: of the longest n-gram that is there. */
float ngram_trie_step(const struct ngram_model *m, const struct ngram_state *in, uint32_t word, struct ngram_state *out,
                      int *found, struct ngram_fault *f);
/* Fetches what it will ask for about a word and the one before. */
void ngram_trie_fetch(const struct ngram_model *m, uint32_t before, uint32_t word);
/* Reads an ARPA file: head, and what f still has. */
int ngram_arpa_read(struct ngram_model *m, struct file_in *f, struct span head, struct err *e);
/* ERR_FORMAT: in the model, at a byte of it. */
static inline int ngram_bad(const struct ngram_model *m, uint64_t at, const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT, "'%s': at byte %" PRIu64 ": %s", m->name, at, what);
}
#endif
