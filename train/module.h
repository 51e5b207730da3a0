/* train/module.h -- the modules of a layer: attention, an MLP, a mixture of experts.
 *
 * A layer adds to the stream s by branches, each a norm and a module:  s += dropout(module(norm(s))).  A module forward is cut in
 * two, since backward needs nothing of its last product: what is run again is run without.
 */
#ifndef TRAIN_MODULE_H
#define TRAIN_MODULE_H

#include "train/model_pass.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the modules of a pass share. */
struct pass {
    int64_t b, t;                     /* sequences, and tokens of each that are here */
    int64_t past;                     /* keys and values go through the cache, which has so many positions; -1: there is none */
    const struct model_dropout *drop; /* NULL: none */
};
static inline int64_t pass_rows(const struct pass *p)
{
    return p->b * p->t;
}

struct module {
    /* From y, the rows of the norm's output that are here, to what backward needs. */
    int (*begin)(struct model *m, int64_t layer, const void *y, const struct pass *p, struct err *e);
    /* The last product: what the module adds to the stream, all rows, of which tensor ranks have summands, to m->out. */
    int (*end)(struct model *m, int64_t layer, const struct pass *p, struct err *e);
    /* Makes what RECOMPUTE_SELECTIVE did not keep; NULL: it keeps all. */
    int (*again)(struct model *m, int64_t layer, const struct pass *p, struct err *e);
    /* From dy, the gradient of the rows here of what it adds, to m->back.dln, that of the norm's output: all rows, a summand. */
    int (*backward)(struct model *m, int64_t layer, const void *dy, const void *y, const struct pass *p, struct err *e);
};
extern const struct module module_attention, module_latent, module_mlp, module_experts;

/* The attention of layer over its own qkv. */
struct attention attention_of(const struct model *m, int64_t layer, int64_t b, int64_t t);
/* Turns (or turns back) what of heads d apart turns, by the layer's angles and its rows' positions: r has t, heads, d, ldx and
 * inverse. */
int attention_turn(struct model *m, int64_t layer, void *x, struct rope r, struct err *e);
/* The same over the whole sequence that context ranks share, and its backward pass from m->back.dln to m->back.dwide: as the op
 * does alone, but with the keys and values of all of them. */
int ring_forward(struct model *m, int64_t layer, const struct dropout *drop, struct err *e);
int ring_backward(struct model *m, int64_t layer, const struct dropout *drop, struct err *e);

/* The embedding of values that a layer may have, else these do nothing: added to the values in its qkv, from x, all rows of
 * attention's input; back, from their gradients in m->back.dwide, to its own, and then of what gates it, onto m->back.dln. */
int value_add(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e);
int value_back(struct model *m, int64_t layer, struct err *e);
int value_gate_back(struct model *m, int64_t layer, const void *x, struct err *e);

/* The MLP that all tokens of a layer meet (model_layer_ffn() wide): from all rows of its input x to its activation's output; from
 * that to y, of which tensor ranks have summands; and from dy, the gradient of all rows of y, to dx, that of x (a summand), which
 * may be dy.  Backward gathers x from the rows of it that are here. */
int mlp_begin(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e);
int mlp_activate(struct model *m, int64_t layer, int64_t rows, struct err *e);
int mlp_end(struct model *m, int64_t layer, void *y, int64_t rows, struct err *e);
int mlp_backward(struct model *m, int64_t layer, void *dx, const void *dy, const void *own, struct err *e);

/* How rows of a layer go to its experts.  From all rows of the router's input x to the layer's choice, share, place and chosen,
 * and to m->moe.route_from; backward, from the gradients of the shares, with the auxiliary losses', to those of the router's
 * weights and onto m->back.dln: x is gathered from the rows y of it that are here. */
struct route router_route(const struct model *m, int64_t rows);
int router_choose(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e);
int router_backward(struct model *m, int64_t layer, const void *y, int64_t rows, struct err *e);

/* The expert that all tokens of a layer meet, beside a mixture: from x, all rows; what it gives onto m->out; and backward, from
 * the rows of dy and x that are here, onto m->back.dln. */
int shared_expert(struct model *m, int64_t layer, const void *x, int64_t rows, struct err *e);
int shared_expert_end(struct model *m, int64_t layer, int64_t rows, struct err *e);
int shared_expert_backward(struct model *m, int64_t layer, const void *dy, const void *own, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
