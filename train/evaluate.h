/* train/evaluate.h -- a model from a checkpoint, and its loss on data. */
#ifndef TRAIN_EVALUATE_H
#define TRAIN_EVALUATE_H

#include "train/checkpoint.h"
#include "train/data.h"
#include "train/layout.h"
#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the model of ck, for MODEL_EVAL or MODEL_GENERATE, and loads its weights.  The
 * checkpoint may be closed afterwards. */
int model_restore(struct model **m, const struct checkpoint *ck, struct device *dev,
                  const struct model_run *run, struct err *e);

/* passes_evaluate of m, which is whole, and was opened with the sequence length of d, telling documents apart as d does;
 * the ranks of layout, each of which has it, share the samples (NULL: no others). */
int evaluate(struct model *m, const struct layout *layout, struct data *d, int split, int64_t first, int64_t n, double *loss,
             double *tokens, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
