/* train/schedule.h -- the learning rate of a step: Megatron's formulae. */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include "train/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All lengths in samples, as Megatron's scheduler counts. */
struct schedule {
    enum lr_style style;
    enum wsd_style wsd_style;
    double max_lr, min_lr;
    double warmup, decay, wsd;
};

/* From a checked configuration. */
struct schedule schedule_of(const struct train_config *c);

/* The rate of the step that begins after consumed samples: 0 before the first one
 * when there is a warm-up, as Megatron has it. */
double schedule_lr(const struct schedule *s, int64_t consumed);

#ifdef __cplusplus
}
#endif
#endif
