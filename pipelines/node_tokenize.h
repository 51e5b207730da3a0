/* pipelines/node_tokenize.h -- the end of a branch that makes indexed datasets of its documents.
 *
 * Tokens are made in parallel, where the documents are; they wait as notes, and the end appends them to the datasets, in order.
 * So PREFIX_KEY_document.bin and .idx are what `quern tokenize` would make of the branch's documents, and so is .ledger (of
 * documents with an id and a source; others are named by their lines, which are those of the plan's input).  Of several shards
 * each has the documents of whole inputs, and different tasks write them at the same time.
 */
#ifndef PIPELINES_NODE_TOKENIZE_H
#define PIPELINES_NODE_TOKENIZE_H

#include "base/run_files.h"
#include "curate/stream/stage.h"
#include "tokenize/tokenizer.h"

/* As `quern tokenize` has them. */
struct tokens_conf {
    const char *tokenizer;
    struct tokenizer_settings settings;
    const char *prefix; /* with a slash at its end a folder: a dataset for each input, of its number */
    const char *keys;
    bool append_eod, allow_special, ledger;
    int64_t shards; /* PREFIX-00000-of-00008_..., of about as many inputs each; 0: one, PREFIX_... */
};
void tokens_conf_init(struct tokens_conf *c);
#define TOKENS_OPTS(c)                                                                                             \
    OPT_IN(0, "tokenizer", &(c).tokenizer, "PATH", "as for quern tokenizer"),                                      \
    OPT_STR(0, "pattern", &(c).settings.pattern, "NAME", "as for quern tokenizer"),                                \
    OPT_IN(0, "special-tokens-file", &(c).settings.special_tokens, "FILE", "as for quern tokenizer"),              \
    OPT_STR(0, "output-prefix", &(c).prefix, "PREFIX", "the files' names but for _text_document.bin and .idx"),    \
    OPT_STR(0, "json-keys", &(c).keys, "KEY[,KEY]", "where a document has its texts; a dataset for each"),         \
    OPT_FLAG(0, "append-eod", &(c).append_eod, "end each document with the token for that"),                       \
    OPT_STR(0, "eod-token", &(c).settings.eod, "TOKEN", "which token that is, or its id"),                         \
    OPT_FLAG(0, "allow-special", &(c).allow_special, "special tokens in a text are special"),                      \
    OPT_FLAG(0, "ledger", &(c).ledger, "keep where each document came from: PREFIX_text_document.ledger"),         \
    OPT_INT(0, "shards", &(c).shards, 0, 99999, "so many datasets, each of whole inputs; 0: one")

/* ERR_ARG: a setting is missing or impossible; errors of tokenizer_open. */
int tokens_stage_open(struct stage *s, const struct tokens_conf *c, struct err *e);
/* A node's end (pipelines/nodes.h). */
int tokens_groups(const void *conf, int inputs);
int tokens_begin(void *stage, int group, int groups, struct err *e);
int tokens_files(const void *conf, int inputs, const char *before, struct run_files *files, struct err *e);
const char *tokens_name(const void *conf, struct err *e);
#endif
