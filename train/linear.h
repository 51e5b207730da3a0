/* train/linear.h -- a linear layer: every product with a weight, forward and backward, of all tokens or of experts, in the
 * model's type or FP8.
 *
 *     y = act(x . W^T + b)          dW (+)= dy^T . x, db += column sums of dy, then dx = (dy . W) before'(...)
 */
#ifndef TRAIN_LINEAR_H
#define TRAIN_LINEAR_H

#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct linear {
    const struct param_buffer *buffer;
    int w, b;            /* its parameters, of experts the first one's; b -1: there is none.  Of a row-parallel W each tensor
                            rank has a summand of y, and the first of them b */
    const struct param_buffer *adapters; /* where its adapter is (lora.h); NULL: it has none */
    int a;               /* A there, of experts the first one's; B stands behind it */
    const struct lora_work *lora; /* room for its rows */
    int64_t rows;        /* of x and y */
    bool wide;           /* y is fp32 */
    bool adds;           /* backward adds to dx */
    bool again;          /* backward adds to the gradient of W in any case: another use of it has overwritten that */
    enum act act;        /* forward: the activation behind it, ACT_NONE; */
    void *aux;           /* what goes into that is left here */
    enum act before;     /* backward: the activation of which x was the output, ACT_NONE; */
    const void *before_x; /* what went into that */

    /* Experts: the rows of each stand behind those of the one before. */
    bool experts;
    const int32_t *count; /* rows of each, the device's; NULL: all have as many */
    const int32_t *known; /* the same, the host's; NULL: it does not know them */
    const int32_t *each;  /* rows of each, the host's, in FP8 */
    int copy;             /* of the gradients (param_buffer.h) */
    int64_t most;         /* if not 0, a larger count stands for so many */
    uint8_t *const *room; /* [3] for operands of one expert in FP8 */
};

/* Parameters w and b of layer, for rows; and its output layer, the embedding if that is tied. */
struct linear linear_of(const struct model *m, int64_t layer, enum layer_param w, enum layer_param b, int64_t rows);
struct linear linear_output(const struct model *m, int64_t rows);

/* One product of all rows: what experts have of their own, l->w and l->b, is the first one's. */
int linear_product(struct model *m, const struct linear *l, const struct matmul *of, struct err *e);

int linear_forward(struct model *m, const struct linear *l, void *y, const void *x, struct err *e);
/* Gradients of a buffer that is not trained are left out.  dx may be x, not dy.  With an input kept in FP8 x is not looked at; dy
 * NULL: it is in FP8 already (pass_fp8_backward). */
int linear_backward(struct model *m, const struct linear *l, void *dx, const void *dy, const void *x, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
