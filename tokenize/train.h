/* tokenize/train.h -- training of tokenizers (train_kind.h has the kinds): by byte pair encoding, or Unigram (unigram_train.h).
 *
 * The pair that occurs most is joined, again and again.  Ties and ids of BPE of bytes are those of Hugging Face's
 * BpeTrainer on the same texts (the pair of the lowest ids; special tokens, then all 256 bytes in
 * the order of the characters that write them, then merges) or of tiktoken's educational
 * trainer (the pair that comes first; bytes by value, merges, special tokens).  Of the kinds of characters: the pair of the
 * lowest ids; special tokens, bytes, characters by code point, merges.
 *
 * Counts have 64 bits.  The result is the same for any number of threads and any bound on memory.
 */
#ifndef TOKENIZE_TRAIN_H
#define TOKENIZE_TRAIN_H

#include "base/err.h"
#include "tokenize/line_text.h"
#include "tokenize/train_kind.h"

enum train_ties { TRAIN_TIES_HUGGINGFACE, TRAIN_TIES_TIKTOKEN };

struct train_options {
    int model;               /* enum train_model */
    uint32_t vocab_size;     /* special tokens and bytes included */
    uint32_t subwords;       /* merges across words: those within words end with so many tokens */
    uint64_t sample;         /* and bytes of text that they are found in, about; 0: all */
    uint64_t min_frequency;  /* pairs that occur less are not joined */
    uint32_t max_length;     /* Hugging Face's max_token_length: tokens are shorter, in bytes; 0: no bound */
    int ties;                /* enum train_ties; tiktoken's: BPE of bytes only */
    bool byte_fallback;      /* Unigram: a character without a token is the tokens of its bytes */
    double coverage;         /* kinds of characters: the share of all characters whose own have tokens */
    const char *const *specials;
    int n_specials;
    const char *pattern;     /* BPE of bytes: what cuts text into words; NULL: the kind's */
    const char *key;         /* of documents */
    const char *columns;     /* of Parquet; NULL: all */
    int threads;
    uint64_t memory;         /* bytes; what does not fit goes to temporary files, or is ERR_LIMIT: Unigram's words */
    const char *tmp;         /* folder for those; NULL: $TMPDIR or /tmp */
    const char *output;      /* a tokenizer.json; any of the four may be NULL */
    const char *folder;      /* BPE of bytes: which gets vocab.json and merges.txt; made if need be */
    const char *ranks;       /* BPE of bytes: tiktoken's; the 256 bytes and the merges, from 0 on */
    const char *spm;         /* byte fallback, Unigram: a SentencePiece model */
    void (*bad)(const struct line *line, const struct err *e); /* told of each bad line */
};

struct train_result {
    uint64_t texts, bytes, words, bad;
    uint32_t tokens, merges;
};

enum { TRAIN_MEMORY_MIN = 64 << 20 };

/* Reads the files (none: standard input) and writes what is asked for, each file whole or not at
 * all. */
int train_tokenizer(char *const *paths, int n_paths, const struct train_options *x, struct train_result *r,
                    struct err *e);

#endif
