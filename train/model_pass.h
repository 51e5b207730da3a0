/* train/model_pass.h -- shared by the forward and the backward pass; not for others. */
#ifndef TRAIN_MODEL_PASS_H
#define TRAIN_MODEL_PASS_H

#include "train/model.h"

/* The places where a layer drops, numbered for dropout's stream. */
enum drop_place { DROP_EMBEDDING, DROP_ATTENTION, DROP_PROJ, DROP_MLP };

/* Fills d for a place of layer and returns it, or NULL when nothing is dropped. */
const struct dropout *pass_dropout(const struct model *m, const struct model_dropout *md, int64_t layer,
                                   enum drop_place place, struct dropout *d);

/* Weight i in the type of the matrix products, and its gradient. */
static inline const void *pass_weight(const struct model *m, int i)
{
    size_t at = m->params.v[i].at;

    return m->low ? (const void *)(m->low + at) : m->weights + at;
}
static inline float *pass_grad(const struct model *m, int i)
{
    return m->grads + m->params.v[i].at;
}

/* One layer from a->s1 and a->ln1 up to a->act: everything but the MLP's last product.
 * b sequences of t rows; with past >= 0 keys and values go through the cache. */
int pass_layer(struct model *m, int64_t layer, int64_t b, int64_t t, int64_t past,
               const struct model_dropout *md, struct err *e);

/* a->ln1 of layer from its a->s1 alone, as recomputation needs it. */
int pass_norm1(struct model *m, int64_t layer, int64_t rows, struct err *e);

/* The attention of layer over its own qkv. */
struct attention pass_attention(const struct model *m, int64_t layer, int64_t b, int64_t t);

enum { NORM_EPS_MILLIONTHS = 10 }; /* GPT-2's and Megatron's 1e-5 */

#endif
