/* train/model_fp8.h -- the layers' matrix products in FP8: what of the model is theirs.
 *
 * Of each linear layer's three matrices, its input, its weight and the gradient of its output, the model multiplies
 * copies in FP8 (kernels/fp8.h): E4M3, gradients in E5M2 with MODEL_FP8_HYBRID.  Each has a scale:
 *   delayed     from its largest absolute values in past steps; those of this step are gathered on the way.  As long as
 *               there are none (the first step of all) a tensor is scaled by its own
 *   tensorwise  from its own largest absolute value
 *   blockwise   each block of it one, from its own: 128 numbers of a row of an input or gradient, along what is summed over,
 *               and squares of 128 by 128 of a weight (fp8_blocks)
 * Weights are converted once a step, gradients at each use.  Inputs are converted once and kept transposed, as backward takes
 * them: ln1, ln2 and act by the op that makes them, where the scale is known before, and nowhere in bf16; attention's output,
 * which its own backward needs, beside bf16.  Inputs of experts, shared ones too, and rows that tensor ranks gather (sequence)
 * are kept in bf16 and converted again.  With adapters (lora.h) all inputs are kept in bf16, which those multiply, and alone: the
 * weights have no gradients.  Each expert has scales of its own, for the rows that it gets.  Embeddings, norms, attention,
 * routers, adapters and the output layer are as without FP8.
 */
#ifndef TRAIN_MODEL_FP8_H
#define TRAIN_MODEL_FP8_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct model;
struct param;

/* By Transformer Engine's names. */
enum fp8_recipe { FP8_DELAYED, FP8_TENSORWISE, FP8_BLOCKWISE, FP8_MXFP8 /* refused */ };
enum fp8_algo { FP8_MOST_RECENT, FP8_LARGEST };
enum model_fp8_format { MODEL_FP8_NONE, MODEL_FP8_E4M3, MODEL_FP8_HYBRID };
struct model_fp8_run {
    int format, recipe, algo; /* enum model_fp8_format, fp8_recipe, fp8_algo */
    int64_t margin, history;  /* steps, the latter */
    bool fp32_scales;         /* by blocks: any numbers, not powers of two alone */
    bool ends_bf16;           /* so many first and last layers of the model are left in bf16: */
    int64_t start_bf16, end_bf16;
    bool apart;               /* for tests: no op converts what it makes, all is as with tensorwise; the bits are the same */
};

enum { FP8_INPUT, FP8_WEIGHT, FP8_GRADIENT, FP8_TENSORS };

/* What becomes of a weight's input. */
enum fp8_way {
    FP8_AGAIN, /* in bf16, converted again for backward */
    FP8_KEPT,  /* in bf16, kept transposed too */
    FP8_MADE   /* comes in FP8, in buf[0], and is kept transposed */
};
enum fp8_input { FP8_LN1, FP8_ATT, FP8_LN2, FP8_ACT, FP8_INPUTS }; /* of a layer */
struct fp8_kept {
    uint8_t *yt;    /* (width, model_fp8_rows(n)), by blocks with 1 / scale behind */
    float *inverse; /* its scale's; used where several micro-batches have each their own */
};

struct model_fp8 {
    int64_t n, ld;  /* weights; FP8_TENSORS rows of ld floats for each */
    int64_t dense;  /* so many of them are the dense buffer's; behind them are those of experts */
    int64_t elements; /* of all copies that there are at once */
    int64_t wide, expert_wide; /* a row of the widest input or output, of each kind */
    float *rows;    /* the device's; enum fp8_cell */
    float *amax;    /* (n FP8_TENSORS) this step's, packed */
    uint8_t *weights; /* each weight as it is, then transposed; the device's.  Of weights that ranks divide (ZeRO-3) those of
                         one layer at a time, made at each use */
    float *scales;  /* by blocks: 1 / scale of each weight as it is, then transposed; the device's, */
    int64_t *scale; /* the place of weight i's in them, */
    int64_t floats; /* and how many there are */
    int held[2];    /* which unit these are of: dense ones, experts; 0: none yet */
    uint8_t *buf[3]; /* (b * t, wide), by blocks with 1 / scale behind; experts have theirs in the pool's scratch room */
    int *param;     /* which parameter of its buffer weight i is */
    int *input;     /* FP8_INPUTS times its layer, plus which input of that it has; of dense ones, */
    uint8_t *way;   /* enum fp8_way, of all */
    int64_t *at;    /* its place in weights */
    bool *fresh;    /* its copies are of the weights as they are */
    bool warm;      /* there are scales from past steps */
    bool record;    /* forward is of training: amax are gathered */
    bool again;     /* forward is run again, for backward */
};

/* Fills in what follows from the model's parameters; buffers are none yet.  ERR_NOMEM; ERR_ARG where a width
 * or the number of rows is no multiple of 16. */
int model_fp8_plan(struct model *m, struct err *e);
/* The parameter that weight i is. */
const struct param *model_fp8_param(const struct model *m, int64_t i);
/* Bytes of the kept input of a layer (n = b t rows), 0: none; and whether it is nowhere in bf16. */
size_t model_fp8_kept(const struct model *m, int64_t layer, enum fp8_input input);
bool model_fp8_made(const struct model *m, int64_t layer, enum fp8_input input);
/* Bytes of a row of `width` in buf; rows for n. */
int64_t model_fp8_row(const struct model *m, int64_t width);
int64_t model_fp8_rows(const struct model *m, int64_t n);
/* Bytes on the device but for buf. */
size_t model_fp8_bytes(const struct model_fp8 *f);
/* Allocates them; there are no scales yet. */
int model_fp8_open(struct model *m, struct err *e);
void model_fp8_close(struct model *m);

/* Forgets all scales; the next step is as a first one. */
int model_fp8_reset(struct model *m, struct err *e);

/* To be called before each run of micro-batches, for the weights may have changed; again: they have not, since there was a
 * forward pass.  Does nothing without FP8. */
void model_fp8_begin(struct model *m, bool again);
/* Behind a step: gathers its amax to f->amax, (n FP8_TENSORS) of the device, where ranks put theirs together; then makes
 * new scales of them. */
int model_fp8_amax(struct model *m, struct err *e);
int model_fp8_end(struct model *m, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
