/* pipelines/node_model.h -- the stage "perplexity model": how unlikely a checkpoint of quern's finds a document.
 *
 * Documents are tokenised in parallel, and their ids are what the stage notes.  They are asked of the model in input order, many
 * at once: which ones stand in a batch depends on nothing else, so the answers have the same bits for any number of threads and
 * tasks.  So the stage sees all documents before the first goes on.
 */
#ifndef PIPELINES_NODE_MODEL_H
#define PIPELINES_NODE_MODEL_H

#include "base/opt.h"
#include "curate/stream/stage.h"
#include "pipelines/scorer.h"
#include "tokenize/tokenizer.h"

struct by_model_conf {
    struct scorer_conf scorer;
    const char *tokenizer, *field, *bos;
    struct tokenizer_settings settings;
    double least, most; /* documents below or above are dropped; 0: none */
};
void by_model_conf_init(struct by_model_conf *c);
#define BY_MODEL_OPTS(c)                                                                                             \
    OPT_FOLDER(0, "load", &(c).scorer.load, "DIR", "the checkpoint's folder"),                                       \
    OPT_INT(0, "ckpt-step", &(c).scorer.step, -1, INT64_MAX, "the checkpoint of this step; -1: the last whole one"), \
    OPT_IN(0, "tokenizer", &(c).tokenizer, "FILE", "the model's tokenizer"),                                         \
    OPT_STR(0, "pattern", &(c).settings.pattern, "NAME", "how text is cut into pieces (default: what the tokenizer says)"), \
    OPT_STR(0, "bos-token", &(c).bos, "TOKEN", "what each text follows (default: the end of a document)"),           \
    OPT_INT(0, "window", &(c).scorer.length, 0, 1 << 24, "tokens that the model sees at once; 0: its positions"),    \
    OPT_INT(0, "micro-batch-size", &(c).scorer.rows, 1, 1 << 20, "windows at once"),                                 \
    OPT_STR('f', "field", &(c).field, "NAME", "field to set, beside NAME_log10, NAME_tokens and NAME_bits"),         \
    OPT_NUM(0, "min-perplexity", &(c).least, 0, 1e300, "drop what is below; 0: nothing"),                            \
    OPT_NUM(0, "max-perplexity", &(c).most, 0, 1e300, "drop what is above; 0: nothing"),                             \
    OPT_FLAG(0, "bf16", &(c).scorer.bf16, "compute in bf16"),                                                        \
    OPT_ENUM(0, "device", &(c).scorer.device, "auto|cpu|cuda", "where to run")

/* ERR_ARG: a setting is missing, or the tokenizer has more tokens than the model; errors of scorer_open and of the tokenizer. */
int by_model_stage_open(struct stage *s, const struct by_model_conf *c, struct err *e);
#endif
