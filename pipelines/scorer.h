/* pipelines/scorer.h -- a checkpoint's model in a thread of its own, which answers how likely texts are.
 *
 * Stages are called by any thread of a pool.  A model's ops start a team of threads for whoever calls them, and a GPU is held by
 * a thread, so one thread opens the device and asks the model, and the others wait for it.  It starts when something is asked
 * first: processes of a plan are forked before that, and those that ask nothing have no model.
 */
#ifndef PIPELINES_SCORER_H
#define PIPELINES_SCORER_H

#include "train/likelihood.h"

struct scorer;

struct scorer_conf {
    const char *load; /* the checkpoint's folder */
    int64_t step;     /* -1: the last whole one */
    int64_t rows;     /* sequences at once */
    int64_t length;   /* tokens of each; 0: the model's positions */
    bool bf16;
    int device;       /* as train_config_device names them */
};

/* Looks at the checkpoint.  ERR_IO: there is none; ERR_ARG: length is above its positions. */
int scorer_open(struct scorer **s, const struct scorer_conf *c, struct err *e);
void scorer_close(struct scorer *s); /* NULL is fine */
/* Tokens of a sequence: a request has at most one more.  The vocabulary. */
int64_t scorer_length(const struct scorer *s);
int64_t scorer_vocab(const struct scorer *s);
/* Answers n requests.  One thread at a time.  Errors of opening device and model too. */
int scorer_ask(struct scorer *s, struct likelihood *r, int64_t n, struct err *e);
#endif
