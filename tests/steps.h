/* tests/steps.h -- a model that trains on numbers without meaning, for gpu_check and gpu_train_bench: the trainer's model and its
 * ops, without its files, data and checkpoints. */
#ifndef TESTS_STEPS_H
#define TESTS_STEPS_H

#include "train/model_graph.h"

enum { STEPS_MICRO_BATCHES = 8 };
struct train_steps {
    struct device *dev;
    struct model *model;
    struct {
        float *exp_avg, *exp_avg_sq;
    } moments[MODEL_BUFFERS];
    float *clip;
    double *sumsq, *loss;
    int32_t *tokens, *targets;
    int64_t step;
    int micro_batches; /* of an update; 1 unless changed before the first step, to STEPS_MICRO_BATCHES at most */
    struct model_graph graph; /* model_graph_open with model and loss: each step is one launch, and the update's */
};

/* config is checked here; weights are the same on every device.  quick: weights for timing alone, without waiting for the host to
 * make billions of them. */
int steps_open(struct train_steps *s, struct device *dev, struct model_config config, const struct model_run *run, bool quick,
               struct err *e);
/* One step of AdamW, at whose end the host waits for the device; loss: the last micro-batch's. */
int steps_one(struct train_steps *s, double *loss, double *norm, struct err *e);
void steps_close(struct train_steps *s);

#endif
