/* train/model_pass.h -- shared by the forward and the backward pass; not for others. */
#ifndef TRAIN_MODEL_PASS_H
#define TRAIN_MODEL_PASS_H

#include "train/linear.h"

/* The places where a layer drops, numbered for dropout's stream. */
enum drop_place { DROP_EMBEDDING, DROP_ATTENTION, DROP_PROJ, DROP_MLP };

/* Fills d for a place of layer and returns it, or NULL when nothing is dropped. */
const struct dropout *pass_dropout(const struct model *m, const struct model_dropout *md, int64_t layer,
                                   enum drop_place place, struct dropout *d);

/* Layers with those that predict tokens further on, which are numbered behind the others; and which layer of the whole model one
 * is, these being as the last. */
static inline int64_t pass_layers(const struct model *m)
{
    return m->config.layers + m->mtp.n;
}
static inline int64_t pass_layer_as(const struct model *m, int64_t layer)
{
    return layer < m->config.layers ? m->part.first + layer : m->whole.layers - 1;
}

/* Whether tensor ranks share the layers. */
static inline bool pass_shared(const struct model *m)
{
    return m->part.tensor && m->part.tensor->size > 1;
}
/* Whether this is the first of them, which adds what must not be added twice. */
static inline bool pass_first(const struct model *m)
{
    return !pass_shared(m) || m->part.tensor->rank == 0;
}

/* Whether context ranks share the sequences.  Each has two halves of the same length. */
static inline bool pass_ring(const struct model *m)
{
    return m->part.context && m->part.context->size > 1;
}
/* The position in the sequence where a half (0 or 1) of what a context rank has begins. */
int64_t pass_half_at(const struct model *m, int rank, int half);
/* The position of row i of t rows a sequence. */
static inline int64_t pass_position(const struct model *m, int64_t i, int64_t t)
{
    int64_t half = t / 2;

    if (!pass_ring(m))
        return i % t;
    return pass_half_at(m, m->part.context->rank, i % t >= half) + i % t % half;
}
/* The positions of the rows in the pass under way. */
static inline const int32_t *pass_positions_of(const struct model *m)
{
    return m->acts->positions ? m->acts->positions : m->positions;
}
/* buf (rows, h) becomes its sum over the tensor ranks.  The result: where the rows of this rank are,
 * which is buf itself unless they are shared (sequence). */
int pass_sum(struct model *m, void **result, void *buf, int64_t rows, struct err *e);
/* All rows of what each rank has its own rows of at x: x itself, or m->full. */
int pass_gather(struct model *m, const void **result, const void *x, int64_t rows, struct err *e);
/* Of rows of a whole stream, how many are here. */
static inline int64_t pass_own(const struct model *m, int64_t rows)
{
    return m->part.sequence ? rows / m->part.tensor->size : rows;
}

/* The weights of a unit (struct params) are about to be read: forward in their order; back, from the last on, and forward a tied
 * embedding for the output layer.  Whoever read a unit needs it no more for now. */
int pass_weights(struct model *m, int unit, bool back, struct err *e);
int pass_release(struct model *m, int unit, struct err *e);
/* Between two ops: gets calls of the ranks on, which may stand still while nobody does. */
static inline int pass_progress(const struct model *m, struct err *e)
{
    return m->run.world ? comm_progress(m->run.world, e) : 0;
}
/* The unit of layer; behind the last one, of the final norm and the output layer. */
static inline int pass_unit(int64_t layer)
{
    return (int)layer + 1;
}
/* Whether the output layer is the embedding, in the first unit. */
static inline bool pass_tied(const struct model *m)
{
    return m->dense.params.word >= 0 && m->dense.params.word == m->dense.params.output;
}
/* Whether backward begins with the first unit too. */
static inline bool pass_first_unit(const struct model *m)
{
    return pass_tied(m) || m->mtp.n;
}

/* Weight i in the type of the matrix products, and its gradient; NULL for what the model
 * does not have (-1). */
static inline const void *pass_weight(const struct model *m, int i)
{
    return param_weight(&m->dense, i);
}
static inline float *pass_grad(const struct model *m, int i)
{
    return param_grad(&m->dense, i);
}
static inline int pass_param(const struct model *m, int64_t layer, enum layer_param which)
{
    return params_layer(&m->dense.params, layer, which);
}

/* A pointer n elements of the model's type on; NULL stays NULL. */
static inline void *pass_at(const struct model *m, void *p, int64_t n)
{
    return p ? (char *)p + (size_t)n * dtype_size(m->dt) : NULL;
}

/* y (rows, f) of what the first linear layer of an MLP gives, x, by the model's activation, and back; dx may be x. */
int pass_act(struct model *m, void *y, const void *x, int64_t rows, int64_t f, struct err *e);
int pass_act_back(struct model *m, void *dx, const void *dy, const void *x, int64_t rows, int64_t f, struct err *e);
/* Which of the FP8 weights (train/model_fp8.h) parameter w of a buffer is; -1: none. */
int pass_fp8(const struct model *m, const struct param_buffer *s, int w);
/* Makes the product of an input with a weight one in FP8: mm is as without, its operands are converted, to buf, unless the input
 * is made in FP8 (enum fp8_way); without rows it stays as it is. */
int pass_fp8_forward(struct model *m, struct matmul *mm, int weight, uint8_t *const buf[3], struct err *e);
/* The same for the products that give the gradients of a weight (weight_mm NULL: it has none) and of its input.  Of buf each has
 * room for the rows, up to a multiple of FP8_WHOLE: the sum over them has zeros behind its end; without a weight's gradient the
 * first is enough.  bias (or NULL) += the column sums of the output's gradient.  input_mm's a NULL: that gradient is in buf
 * already, and its sums in bias. */
int pass_fp8_backward(struct model *m, struct matmul *weight_mm, struct matmul *input_mm, int weight, uint8_t *const buf[3],
                      float *bias, struct err *e);

/* x (n) of the model's type times a number. */
int pass_scale(struct model *m, void *x, double scale, int64_t n, struct err *e);
/* The model's kind of norm with weights w and b (-1: none), forward and backward. */
int pass_norm(struct model *m, struct norm_fwd *p, int w, int b, struct err *e);
int pass_norm_back(struct model *m, struct norm_bwd *p, int w, int b, struct err *e);

/* An input that is made in FP8 (model_fp8_made), to buf[0] and to where it is kept: the output of the norm p, which is
 * FP8_LN1 or FP8_LN2, with weights w and b; and an MLP's act from fc1. */
int pass_fp8_norm(struct model *m, int64_t layer, enum fp8_input as, const struct norm_fwd *p, int w, int b, struct err *e);
int pass_fp8_activate(struct model *m, int64_t layer, int64_t rows, struct err *e);
/* Its backward pass, from m->back.dwide to *dy, for linear_backward; fc1 may be overwritten. */
int pass_fp8_activate_back(struct model *m, int64_t layer, const void **dy, struct err *e);

/* Whether layer has experts; the choices of its tokens; the rows that go to experts, at most. */
static inline bool pass_moe(const struct model *m, int64_t layer)
{
    return m->dense.params.layer[layer].moe;
}
static inline int64_t pass_choices(const struct model *m)
{
    return m->b * m->t * m->config.topk;
}
int64_t pass_moe_rows(const struct model *m);
/* Into how many equal stretches of tokens the auxiliary loss of a micro-batch falls: each sequence may have its own. */
static inline int64_t pass_aux_parts(const struct model *m)
{
    return m->config.balancing == BALANCE_SEQUENCE ? m->b : 1;
}
/* Whether ranks share the experts. */
static inline bool pass_spread(const struct model *m)
{
    return m->part.expert && m->part.expert->size > 1;
}
/* Into how many pieces rows are cut that go to experts of other ranks: of those each tensor rank sends one. */
static inline int pass_pieces(const struct model *m)
{
    return pass_spread(m) && pass_shared(m) && m->config.hidden % m->part.tensor->size == 0 ? m->part.tensor->size : 1;
}
/* Says how large the rooms of a model's experts are, where as many rows come in as go out. */
void pass_rooms(const struct model *m, struct model_pool_size *s);

/* The first layer of the chunk that is run again for layer; -1: it keeps its own. */
int64_t pass_chunk(const struct model *m, int64_t layer);

/* m->positions: first and on, of b sequences of t tokens. */
int pass_positions(struct model *m, int64_t b, int64_t t, int64_t first, struct err *e);

/* The look-up of rows tokens, m->acts->tokens, in what is here of the vocabulary. */
struct embedding pass_embedding(const struct model *m, int64_t rows);
/* Looks rows up, to `to`, the rows of it that are here; and back from these, at ds, which is overwritten. */
int pass_embed(struct model *m, const struct embedding *emb, void *to, const struct dropout *drop, struct err *e);
int pass_embed_back(struct model *m, const struct embedding *emb, void *ds, const struct dropout *drop, struct err *e);

/* The logits of all rows, of what of x is here, in m->head.logits; and from their gradient there to m->back.dln, that of x, of
 * which tensor ranks have summands.  further: the gradient of the weights is added to in any case. */
int pass_logits(struct model *m, const void *x, struct err *e);
int pass_logits_back(struct model *m, const void *x, bool further, struct err *e);
/* Their losses, in m->head.loss, and the gradient in their place, which is times scale (NULL: none). */
int pass_losses(struct model *m, const int32_t *targets, const float *scale, struct err *e);

#endif
