/* curate/language/classify_train.h -- trains a fastText classifier on documents. */
#ifndef CURATE_CLASSIFY_TRAIN_H
#define CURATE_CLASSIFY_TRAIN_H

#include "base/opt.h"
#include "curate/language/fasttext_train.h"

struct classify_train_conf {
    const char *label_field;            /* of documents that bring their label */
    struct opt_list positive, negative; /* files whose documents all have one label */
    const char *positive_label, *negative_label;
    int dialect; /* of classify_prepare */
    struct fasttext_train_conf fasttext;
    int loss; /* index in the option's words */
};
/* fastText's defaults for classifiers; label, hq, cc; one thread. */
void classify_train_conf_init(struct classify_train_conf *c);
#define CLASSIFY_TRAIN_OPTS(c)                                                                             \
    OPT_IN_LIST(0, "positive", &(c).positive, "FILE", "documents of the positive label, in JSON lines"),      \
    OPT_IN_LIST(0, "negative", &(c).negative, "FILE", "documents of the negative label"),                     \
    OPT_STR(0, "positive-label", &(c).positive_label, "L", "their label"),                                 \
    OPT_STR(0, "negative-label", &(c).negative_label, "L", "their label"),                                 \
    OPT_STR(0, "label-field", &(c).label_field, "NAME", "where the documents of FILE... have their label"), \
    OPT_ENUM(0, "dialect", &(c).dialect, "fasttext|datatrove|nemo|dclm", "how text is prepared"),          \
    OPT_HEAD("fastText"),                                                                                  \
    OPT_INT(0, "dim", &(c).fasttext.dim, 1, 4096, "numbers in a vector"),                                  \
    OPT_NUM(0, "lr", &(c).fasttext.lr, 1e-9, 1e3, "learning rate"),                                        \
    OPT_INT(0, "epoch", &(c).fasttext.epoch, 1, 10000, "times through the documents"),                     \
    OPT_INT(0, "wordNgrams", &(c).fasttext.word_ngrams, 1, 100, "longest run of words that is a feature"), \
    OPT_INT(0, "minn", &(c).fasttext.minn, 0, 100, "shortest run of characters in a word"),                \
    OPT_INT(0, "maxn", &(c).fasttext.maxn, 0, 100, "longest; 0: none"),                                    \
    OPT_INT(0, "bucket", &(c).fasttext.bucket, 1, INT32_MAX / 2, "rows that those runs share"),            \
    OPT_INT(0, "minCount", &(c).fasttext.min_count, 1, INT32_MAX, "rarer words are left out"),             \
    OPT_ENUM(0, "loss", &(c).loss, "softmax|hs|ns|ova", "softmax, hierarchical, negative sampling, one against all"), \
    OPT_INT(0, "seed", &(c).fasttext.seed, 0, INT32_MAX, "of the first vectors"),                          \
    OPT_INT(0, "thread", &(c).fasttext.threads, 1, 1024, "to train; above 1 the model differs from run to run")

/* What was trained on. */
struct classify_train_result {
    uint64_t docs, bad, bytes;
};

/* Trains on the documents of inputs (none and no positive or negative files: standard
 * input) and puts the model under the name output when it is whole.  The texts lie in a
 * file without a name beside it meanwhile.  Bad records (no label, a label with white
 * space) are logged, counted and skipped.  ERR_ARG: only one label, nothing to train on;
 * errors of fasttext_train. */
int classify_train(const struct classify_train_conf *c, const char *output, char *const *inputs, int n_inputs,
                   int jobs, struct classify_train_result *r, struct err *e);
#endif
