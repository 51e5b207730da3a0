/* train/guard.h -- steps that must not be taken: losses or gradients that are not finite, or leap.
 *
 * A running mean of the loss and of the gradient norm, over some `window` of good steps (weight
 * 1 / window for a new one, 1 / n for the n-th of the first), is what a step is held against.  It goes
 * into checkpoints, so that a resumed run judges as one that was not stopped.
 */
#ifndef TRAIN_GUARD_H
#define TRAIN_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bad_action { BAD_STOP, BAD_SKIP, BAD_ROLLBACK };

struct guard {
    double loss, norm; /* running means */
    int64_t n;         /* good steps so far */
};

enum verdict_of_step { STEP_GOOD, STEP_NOT_FINITE, STEP_SPIKE };

/* A step's loss and gradient norm: more than factor times their mean is a spike, once half a window
 * of good steps is there; factor 0: never. */
enum verdict_of_step guard_judge(const struct guard *g, double loss, double norm, double factor, int64_t window);

/* Takes a good step into the means. */
void guard_add(struct guard *g, double loss, double norm, int64_t window);

#ifdef __cplusplus
}
#endif
#endif
