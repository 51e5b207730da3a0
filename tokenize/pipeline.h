/* tokenize/pipeline.h -- documents to tokens on disk, by many threads.
 *
 * Blocks of lines are read in order, encoded in parallel, and appended in order: the
 * output does not depend on the number of threads, and memory is bounded by two blocks a thread
 * and two more.  Now and then everything so far is made to last, with the place in the input
 * (DIR/.NAME.resume), so that a killed run goes on there.
 */
#ifndef TOKENIZE_PIPELINE_H
#define TOKENIZE_PIPELINE_H

#include "base/err.h"
#include "tokenize/chat.h"
#include "tokenize/line_text.h"
#include "tokenize/tokenizer.h"

/* What is written: Megatron's indexed dataset, or one stream of tokens in shards for llm.c or NumPy
 * (indexed_dataset/token_shards.h). */
enum pipeline_format { PIPELINE_MEGATRON, PIPELINE_LLMC, PIPELINE_NPY };

struct pipeline_options {
    const struct tokenizer *tokenizer;
    const char *const *keys; /* of the texts; in MEGATRON format each has its own dataset */
    int n_keys;              /* 1 .. LINE_KEYS_MAX; 1 for the other formats */
    /* Documents are conversations; NULL: texts.  Then there are two outputs, by the one name of keys: tokens, and which of them
     * have a loss (indexed_dataset/loss_mask.h): n_keys is 2. */
    const struct chat *chat;
    const char *chat_name;   /* its name */
    bool all_loss;           /* all of them have; else answers alone */
    enum pipeline_format format;
    uint64_t shard_tokens;   /* of LLMC and NPY */
    int64_t prepend;         /* LLMC and NPY: the token in front of each document; -1: none */
    const char *version;     /* of quern, for the record */
    int threads;
    bool append_eod;
    bool ledger;             /* MEGATRON: with PREFIX.ledger (indexed_dataset/ledger.h) */
    bool allow_special;
    bool again;              /* begin afresh whatever an earlier run left */
    const char *columns;     /* of Parquet that is read; NULL: all */
    double checkpoint;       /* seconds between */
    double done, total;      /* for progress: bytes as stored that jobs before have read, and that all have (NAN: not known) */
    void (*bad)(const struct line *line, const struct err *e); /* told in order */
};

/* One output and what goes into it. */
struct pipeline_job {
    const char *prefix; /* PREFIX_KEY_document.bin and .idx; or PREFIX_000000.bin or .npy ... */
    char *const *paths; /* checked (lines_check) */
    const struct lines_range *range; /* for each path; NULL: all of it */
    int n_paths;
    uint64_t size;      /* bytes of them as stored, for progress; 0: not known */
};

struct pipeline_key_counts {
    uint64_t tokens, empty, bytes, specials;
};
struct pipeline_result {
    uint64_t documents, bad;
    struct pipeline_key_counts key[LINE_KEYS_MAX];
    double consumed;   /* bytes of its inputs, as they are stored */
    int width;         /* of a token: 2 or 4 */
    bool already;      /* an earlier run had done all of it */
    bool resumed;      /* an earlier run had done some of it */
};

/* Says which token ends documents, of a tokenizer that has one. */
void pipeline_tell_eod(const struct tokenizer *t);

/* Appends a text as the tokens of a document, each `width` bytes, with what stands before and behind a document, and counts it;
 * *length: how many.  ERR_FORMAT: the text cannot be encoded. */
int pipeline_encode(const struct pipeline_options *x, struct encoder *enc, int width, struct span text, struct buf *tokens,
                    struct pipeline_key_counts *c, int32_t *length, struct err *e);

/* On failure no file appears; what the last checkpoint has stays for another run.  ERR_ARG: an
 * earlier run with other inputs or options, or of another version of quern, left its work there. */
int pipeline_run(const struct pipeline_job *job, const struct pipeline_options *x, struct pipeline_result *r,
                 struct err *e);

#endif
