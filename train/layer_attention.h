/* train/layer_attention.h -- what the attention of a layer is beside its weights: data, derived from the model's numbers and the
 * layer's.  A kind of attention that differs by layers is a field here, and where it is used.
 */
#ifndef TRAIN_LAYER_ATTENTION_H
#define TRAIN_LAYER_ATTENTION_H

#include "kernels/attention.h"
#include "train/model_config.h"

#ifdef __cplusplus
extern "C" {
#endif

struct layer_attention {
    struct attention op; /* what the op is told of the layer alone: scale */
    int turns;           /* the table of rotary angles by which queries and keys turn; -1: they do not */
};

/* That of a layer of the whole model. */
struct layer_attention layer_attention_of(const struct model_config *m, int64_t layer);

/* What a checked config can have of it; ERR_ARG names the flag. */
int layer_attention_check(const struct model_config *m, struct err *e);

/* How many layers ask more of attention than to be causal (attention_common). */
int64_t layer_attention_own(const struct model_config *m);

/* How many keys a query of t tokens sees, on average over the layers: t / 2 where all do what causal attention does. */
double layer_attention_keys(const struct model_config *m, int64_t t);

/* How many tables of rotary angles a model has; and one of them, (n_pos, rotary width). */
int rotary_tables(const struct model_config *m);
void rotary_fill(const struct model_config *m, int table, int64_t n_pos, float *cs);

#ifdef __cplusplus
}
#endif
#endif
