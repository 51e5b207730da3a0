/* tokenize/pipeline.h -- documents to an indexed dataset of tokens, by many threads.
 *
 * Blocks of lines are read in order, encoded in parallel, and appended in order: the
 * same bytes for any number of threads, and memory for a block or two a thread.
 */
#ifndef TOKENIZE_PIPELINE_H
#define TOKENIZE_PIPELINE_H

#include "base/err.h"
#include "tokenize/corpus.h"
#include "tokenize/tokenizer.h"

struct pipeline_options {
    const struct tokenizer *tokenizer;
    const char *prefix; /* PREFIX.bin and PREFIX.idx */
    const char *key;
    int threads;
    bool append_eod;
    bool allow_special;
    void (*bad)(const struct corpus_line *line, const struct err *e); /* told in order */
};

struct pipeline_result {
    uint64_t documents, empty, tokens, bytes, bad, specials;
    int width; /* of a token: 2 or 4 */
};

/* Reads the files (none: standard input).  On failure no file appears. */
int pipeline_run(char *const *paths, int n_paths, const struct pipeline_options *x, struct pipeline_result *r,
                 struct err *e);

#endif
