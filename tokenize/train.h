/* tokenize/train.h -- byte-level BPE training.
 *
 * The merges are those of Hugging Face's BpeTrainer on the same texts: the pair that
 * occurs most is joined, the one of the lowest ids among equals; its alphabet (all 256
 * bytes, in the order of the characters that write them), its order of ids (special
 * tokens, alphabet, merges).  Counts have 64 bits.  The same for any number of threads.
 */
#ifndef TOKENIZE_TRAIN_H
#define TOKENIZE_TRAIN_H

#include "base/err.h"
#include "tokenize/corpus.h"

struct train_options {
    uint32_t vocab_size;
    uint64_t min_frequency; /* pairs that occur less are not joined */
    const char *const *specials;
    int n_specials;
    const char *pattern; /* NULL: gpt2 */
    const char *key;     /* of documents */
    int threads;
    void (*bad)(const struct corpus_line *line, const struct err *e); /* told of each bad line */
};

struct train_result {
    uint64_t texts, bytes, words, bad;
    uint32_t tokens, merges;
};

/* Reads the files (none: standard input) and writes a tokenizer.json. */
int train_tokenizer(char *const *paths, int n_paths, const struct train_options *x, const char *output,
                    struct train_result *r, struct err *e);

#endif
