/* train/lora.h -- low-rank adapters of linear layers (LoRA, arXiv:2106.09685).
 *
 *     y = W x + b + s B (A x)        A (rank, in), B (out, rank); s is alpha / rank, or alpha / sqrt(rank) (arXiv:2312.03732)
 * A model with adapters (model_config.h: lora_rank) trains these alone: they have a param buffer of their own, and the others
 * have neither gradients nor an optimizer's state.  Those of experts, an A and a B each, have another one, which ranks share as
 * they share the experts.  Of a column-parallel W each tensor rank has its rows of B and all of A, of a row-parallel one its
 * columns of A and all of B; what all have gets a summand of its gradient on each.
 */
#ifndef TRAIN_LORA_H
#define TRAIN_LORA_H

#include "train/linear.h"

#ifdef __cplusplus
extern "C" {
#endif

/* s of a model. */
double lora_scale(const struct model_config *c);

/* Whether a run of model b may go on with the adapters of a checkpoint of a, which may have none: ERR_ARG says why not. */
int lora_same(const struct model_config *a, const struct model_config *b, const char *path, struct err *e);

/* Gives l the adapter of the layer's weight w, of experts the first one's, if that has one; room: for rows of l. */
void lora_attach(const struct model *m, struct linear *l, int64_t layer, enum layer_param w, const struct lora_work *room);

/* y += s B (A x). */
int lora_forward(struct model *m, const struct linear *l, void *y, const void *x, struct err *e);
/* Gradients of A and B; then, when dx has what comes through W, what comes through them is added. */
int lora_backward(struct model *m, const struct linear *l, const void *dy, const void *x, struct err *e);
int lora_backward_input(struct model *m, const struct linear *l, void *dx, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
