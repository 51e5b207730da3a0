/* tokenize/train_across.h -- the second phase of SuperBPE (Liu et al. 2025, arXiv:2503.13423): text as segments of the tokens
 * that the first phase found within words.  Merges of these go across words.
 *
 * A segment ends where the kind's second pattern cuts, or with the token that reaches across that place.  Its tokens come from
 * the table of words of an encoder, a look-up a word.
 */
#ifndef TOKENIZE_TRAIN_ACROSS_H
#define TOKENIZE_TRAIN_ACROSS_H

#include "tokenize/split.h"
#include "tokenize/tokenizer.h"

enum {
    ACROSS_WORDS = 4,           /* in a token at most, as in the paper */
    ACROSS_SLICE = 1 << 16,     /* bytes: what is sampled, and what no segment is longer than */
    ACROSS_THREAD_NEEDS = 32 << 20 /* bytes of memory: an encoder's table of words */
};

/* Zero-initialise. */
struct train_across {
    struct tokenizer *words; /* of the first phase */
    struct split split;
    uint64_t share;          /* of 2^32 slices, those that are taken */
};

/* json: the tokenizer of the first phase; pattern: what cuts text into segments.  Of `bytes` of text about `sample` are taken.
 * Close it in any case. */
int train_across_open(struct train_across *a, struct span json, const char *pattern, uint64_t bytes, uint64_t sample,
                      struct err *e);
void train_across_close(struct train_across *a);

/* What a thread needs.  Zero-initialise. */
struct across_cutter {
    struct encoder *encoder;
    struct buf ids;  /* uint32_t: the tokens of a slice */
    struct buf ends; /* uint32_t: where in ids segments end, in bytes */
};

/* A slice of a text, at most ACROSS_SLICE bytes, to k->ids and k->ends; both are empty if it is not in the sample, which its
 * bytes alone decide. */
int across_cut(struct across_cutter *k, const struct train_across *a, struct span slice, struct err *e);
void across_cutter_free(struct across_cutter *k);

#endif
