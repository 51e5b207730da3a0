/* train/step_log.h -- what a run tells of its steps to files: JSON lines (--log-file) and TensorBoard's events. */
#ifndef TRAIN_STEP_LOG_H
#define TRAIN_STEP_LOG_H

#include "train/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a step has reached. */
struct step_rates {
    double tokens; /* a second */
    double flops;  /* a second */
    double mfu;    /* of the peak; NaN: the peak that was measured is less than what was reached */
};

/* What the evaluations after the last step found: NaN where there were none. */
struct step_final {
    double valid_loss;   /* mean over the sets */
    const double *valid; /* of each set */
    double test_loss;
};

struct step_log;
/* Opens what c names, for appending; *log is to be closed, NULL where c names nothing. */
int step_log_open(struct step_log **log, const struct train_config *c, struct err *e);
/* What cannot be written is said once, and training goes on. */
void step_log_put(struct step_log *log, const struct trainer *t, const struct train_step *s, const struct step_rates *r);
/* The last line, if there is anything to say in it. */
void step_log_final(struct step_log *log, const struct trainer *t, const struct step_final *f);
void step_log_close(struct step_log *log);

#ifdef __cplusplus
}
#endif
#endif
