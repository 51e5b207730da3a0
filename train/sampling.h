/* train/sampling.h -- an id from logits: by temperature, top-k, top-p and a penalty of what is there already. */
#ifndef TRAIN_SAMPLING_H
#define TRAIN_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

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

/* Draws an id from logits (n); u in [0, 1).  Ties go to the lower id.  room: sampling_room(n) bytes, aligned as malloc's, for
 * this call.  ERR_LIMIT: a logit is not finite, or no id may be drawn. */
size_t sampling_room(int64_t n);
int32_t sampling_draw(const struct sampling *s, const float *logits, int64_t n, double u, void *room, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
