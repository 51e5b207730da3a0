/* tokenize/train_conf.h -- the settings of training as options of a command give them.
 */
#ifndef TOKENIZE_TRAIN_CONF_H
#define TOKENIZE_TRAIN_CONF_H

#include "base/opt.h"
#include "base/run_files.h"
#include "tokenize/train.h"

/* As options write them: struct train_options says what each is. */
struct train_conf {
    const char *output, *folder, *ranks, *spm, *tmp;
    int64_t vocab_size, min_frequency, max_length, memory; /* memory 0: by the machine */
    int64_t subwords, sample; /* subwords 0: two in five */
    int model, ties;
    bool byte_fallback;
    double coverage;
    struct opt_list specials; /* none: the kind's; free with opt_list_free */
};

#define TRAIN_CONF_INIT {.vocab_size = 32000, .sample = 16 << 20, .coverage = 0.9995}

/* The rows of an option table. */
#define TRAIN_OPTS(c)                                                                                                        \
    OPT_ENUM(0, "model", &(c).model, TRAIN_MODELS,                                                                           \
             "bpe: of bytes; byte-fallback: of characters, as Llama 2's; wordpiece: as BERT's; unigram: as SentencePiece's; " \
             "superbpe: of bytes, across words too"),                                                                        \
    OPT_INT(0, "vocab-size", &(c).vocab_size, 257, 1 << 23, "tokens, special ones and 256 bytes included"),                  \
    OPT_INT(0, "subwords", &(c).subwords, 0, 1 << 23, "superbpe: the tokens of words and their parts; 0: two in five"),      \
    OPT_SIZE(0, "across-sample", &(c).sample, 0, INT64_MAX,                                                                  \
             "superbpe: merges across words are found in about so much of the text; 0: in all of it"),                       \
    OPT_INT(0, "min-frequency", &(c).min_frequency, 0, INT64_MAX, "join no pair that is rarer"),                             \
    OPT_INT(0, "max-token-length", &(c).max_length, 0, UINT32_MAX,                                                           \
            "tokens are shorter than this, in bytes; 0: no bound"),                                                          \
    OPT_ENUM(0, "ties", &(c).ties, "huggingface|tiktoken",                                                                   \
             "which of two equally frequent pairs: the one of lower ids, or the one that comes first"),                      \
    OPT_NUM(0, "character-coverage", &(c).coverage, 0, 1,                                                                    \
            "kinds of characters: the most frequent characters that make up this share of all have tokens"),                 \
    OPT_FLAG(0, "byte-fallback", &(c).byte_fallback, "unigram: other characters are the tokens of their bytes"),             \
    OPT_LIST(0, "special-tokens", &(c).specials, "TOKEN",                                                                    \
             "a special token; may be repeated (the first: for what is unknown); if none is given, the usual ones"),         \
    OPT_OUT('o', "output", &(c).output, "FILE", "where the tokenizer.json goes"),                                            \
    OPT_FOLDER(0, "vocab-merges", &(c).folder, "FOLDER", "where vocab.json and merges.txt go"),                              \
    OPT_OUT(0, "ranks", &(c).ranks, "FILE", "where tiktoken's ranks go"),                                                    \
    OPT_OUT(0, "sentencepiece-model", &(c).spm, "FILE", "byte-fallback, unigram: where a SentencePiece model goes"),         \
    OPT_SIZE(0, "memory", &(c).memory, 0, INT64_MAX,                                                                         \
             "memory to take, from 64M; the rest is on disk (unigram: an error); "                                           \
             "0: half of what the machine, the container and ulimit allow"),                                                 \
    OPT_FOLDER(0, "tmp", &(c).tmp, "DIR",                                                                                    \
               "for temporary files, up to 40 times the bytes of distinct words; TMPDIR or /tmp otherwise")

/* The same for train_tokenizer(), valid as long as c is.  The caller sets what c does not have: pattern, key, threads, bad. */
struct train_options train_conf_options(const struct train_conf *c);
/* Puts the files of --vocab-merges on the account of what the run reads and writes.  ERR_ARG: one of them is read too. */
int train_conf_account(const struct train_conf *c, struct run_files *files, struct err *e);

#endif
