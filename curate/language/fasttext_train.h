/* curate/language/fasttext_train.h -- trains a fastText classifier (libfasttext). */
#ifndef CURATE_FASTTEXT_TRAIN_H
#define CURATE_FASTTEXT_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* fastText's settings, under its names. */
struct fasttext_train_conf {
    double lr;
    int64_t dim, epoch, word_ngrams, minn, maxn, bucket, min_count, seed, threads;
    int loss; /* enum fasttext_loss */
};

/* Trains on the file at text_path, a text a line with its label before it
 * ("__label__hq some text"), and writes the model to model_path.  With one thread the same
 * text and seed give the same bytes; with more they do not, as threads of fastText race.
 * ERR_UNSUPPORTED: built without libfasttext; ERR_ARG: it cannot train on this (its reason
 * in e); ERR_NOMEM, ERR_IO. */
int fasttext_train(const char *text_path, const char *model_path, const struct fasttext_train_conf *c, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
