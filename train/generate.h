/* train/generate.h -- text from a model, token by token.
 *
 * Sampling is reproducible: token i of sample s takes its random number from
 * Philox(seed, i, s), whatever else is sampled beside it.
 */
#ifndef TRAIN_GENERATE_H
#define TRAIN_GENERATE_H

#include <stdbool.h>

#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sampling {
    double temperature; /* 0: always the likeliest */
    int64_t top_k;      /* 0: all */
    double top_p;       /* 1: all; else the fewest tokens whose probabilities reach it */
    double penalty;     /* logits of ids that are in the text already: divided by it if positive, else times it; 1: as they are */
    uint64_t seed;
    int64_t eod;        /* a sample ends when this comes; -1: never */
    const bool *drawn;  /* of each id, whether it may be drawn; NULL: all may */
};

/* Gives s->penalty to the logits (n) of the ids that seen has (the repetition penalty of CTRL, arXiv:1909.05858, as transformers
 * has it: once, however often an id stands there). */
void sampling_penalize(const struct sampling *s, const bool *seen, float *logits, int64_t n);

/* Draws an id from logits (n); u in [0, 1).  Ties go to the lower id.  ERR_LIMIT: a logit is not finite, or no id may be
 * drawn. */
int32_t sampling_draw(const struct sampling *s, const float *logits, int64_t n, double u, struct err *e);

/* Called for each new token, sample by sample within a position; the end of document too.
 * Returning < 0 stops generate with that code. */
typedef int generate_token_fn(void *arg, int64_t sample, int32_t id, struct err *e);

/* Continues prompt (n ids, n >= 1, each below the vocabulary) by up to count tokens in
 * m->b samples at once; m was opened with MODEL_GENERATE and has room for n + count - 1
 * positions.  Stops early when all samples have ended. */
int generate(struct model *m, const struct sampling *s, const int32_t *prompt, int64_t n, int64_t count,
             generate_token_fn *fn, void *arg, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
