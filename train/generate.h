/* train/generate.h -- text from a model, token by token.
 *
 * Sampling is reproducible: token i of sample s takes its random number from
 * Philox(seed, i, s), whatever else is sampled beside it.
 */
#ifndef TRAIN_GENERATE_H
#define TRAIN_GENERATE_H

#include "train/model.h"
#include "train/sampling.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called for each new token, sample by sample within a position; the end of document too.
 * Returning 1 ends the sample, < 0 stops generate with that code. */
typedef int generate_token_fn(void *arg, int64_t sample, int32_t id, struct err *e);

/* Continues prompts (prompts, n) (n >= 1, each id below the vocabulary) by up to count tokens in
 * m->b samples at once: one prompt that all have, or m->b.  m was opened with MODEL_GENERATE and has room for n + count - 1
 * positions.  Stops early when all samples have ended. */
int generate(struct model *m, const struct sampling *s, const int32_t *prompt, int64_t prompts, int64_t n, int64_t count,
             generate_token_fn *fn, void *arg, struct err *e);

/* A text to be written behind ids[0 .. n): at most `most` tokens, to out, which has room for them; made: how many. */
struct generate_request {
    const int32_t *ids;
    int64_t n, most;
    int32_t *out;
    int64_t made;
};
/* Asked after each token of a request: 1: its text ends here; 0: it goes on; < 0 stops all with that code. */
typedef int generate_ends_fn(void *arg, const struct generate_request *r, struct err *e);
typedef void generate_told_fn(void *arg, int64_t done, int64_t all);
/* Writes n texts, those of equally long prompts together.  told, unless NULL, hears how many of all are done.  Errors as
 * generate's. */
int generate_all(struct model *m, const struct sampling *s, struct generate_request *r, int64_t n, generate_ends_fn *ends,
                 generate_told_fn *told, void *arg, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
