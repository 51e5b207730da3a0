/* train/optim.h -- the kinds of optimizers: what each is told, what it keeps of a parameter, and its update.
 *
 * Another one needs its settings here and a row in the table of optim.c: one that looks at each element by itself with its
 * formula in both twins of kernels/update.h, one that sees matrices or all tensors whole with a function for their updates.
 */
#ifndef TRAIN_OPTIM_H
#define TRAIN_OPTIM_H

#include "kernels/update.h"
#include "train/pieces.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the order of --optimizer. */
enum optim_kind { OPTIM_ADAM, OPTIM_LION, OPTIM_SGD, OPTIM_MUON, OPTIM_ADAFACTOR, OPTIM_KINDS };

/* Settings, by Megatron's names where it has them. */
struct optim_conf {
    int kind; /* enum optim_kind */
    int moment[PARAM_STATES]; /* enum dtype, of what it keeps */
    double weight_decay;
    double decoupled_lr, decoupled_min_lr; /* of the embeddings and the output layer; < 0: as all have */
    double adam_beta1, adam_beta2, adam_eps;
    double lion_beta1, lion_beta2;
    double sgd_momentum;
    struct {
        double momentum, extra_scale;
        bool nesterov, whole_qkv;
        int64_t steps;
        int scale, coefficients, precision; /* enum orthogonal_scale, orthogonal_coefficients; 1: fp32 */
    } muon;
    struct {
        double beta2_decay, eps1, eps2, d;
    } adafactor;
    struct {
        bool on;
        double alpha, threshold;
    } qk_clip; /* train/qk_clip.h */
};
#define OPTIM_OPTS(c) \
    OPT_ENUM(0, "optimizer", &(c)->kind, "adam|lion|sgd|muon|adafactor", "AdamW; Lion; SGD with momentum; Muon; Adafactor"), \
    OPT_ENUM(0, "exp-avg-dtype", &(c)->moment[0], "fp32|bf16|8bit", \
             "of the first moment or the momentum; bf16: in half the memory; 8bit: in a quarter"), \
    OPT_ENUM(0, "exp-avg-sq-dtype", &(c)->moment[1], "fp32|bf16|8bit", "of the second moment"), \
    OPT_NUM(0, "weight-decay", &(c)->weight_decay, 0, 1e3, "on parameters of two dimensions"), \
    OPT_NUM(0, "decoupled-lr", &(c)->decoupled_lr, -1, 1e6, "highest rate of the embeddings and the output layer; -1: lr"), \
    OPT_NUM(0, "decoupled-min-lr", &(c)->decoupled_min_lr, -1, 1e6, "their lowest rate; -1: min-lr"), \
    OPT_NUM(0, "adam-beta1", &(c)->adam_beta1, 0, 0.9999999, "decay of the first moment"), \
    OPT_NUM(0, "adam-beta2", &(c)->adam_beta2, 0, 0.9999999, "decay of the second moment"), \
    OPT_NUM(0, "adam-eps", &(c)->adam_eps, 0, 1, "added to the root of the second moment"), \
    OPT_NUM(0, "lion-beta1", &(c)->lion_beta1, 0, 0.9999999, "share of the momentum in what is applied"), \
    OPT_NUM(0, "lion-beta2", &(c)->lion_beta2, 0, 0.9999999, "decay of the momentum"), \
    OPT_NUM(0, "sgd-momentum", &(c)->sgd_momentum, 0, 0.9999999, "decay of the momentum"), \
    OPT_NUM(0, "muon-momentum", &(c)->muon.momentum, 0, 0.9999999, "decay of the momentum"), \
    OPT_FLAG(0, "muon-nesterov", &(c)->muon.nesterov, "Nesterov's momentum"), \
    OPT_INT(0, "muon-num-ns-steps", &(c)->muon.steps, 1, 99, "Newton-Schulz iterations"), \
    OPT_ENUM(0, "muon-coefficient-type", &(c)->muon.coefficients, "quintic|simple|polar_express", \
             "their coefficients; simple: 3.4445, -4.7750, 2.0315"), \
    OPT_ENUM(0, "muon-scale-mode", &(c)->muon.scale, "spectral|unit_rms_norm|shape_scaling", \
             "an update is multiplied by sqrt(max(rows, cols)), sqrt(rows / cols), sqrt(max(1, rows / cols))"), \
    OPT_NUM(0, "muon-extra-scale-factor", &(c)->muon.extra_scale, 0, 1e6, "and by this; 0.2 with spectral: lr as for AdamW"), \
    OPT_ENUM(0, "muon-fp32-matmul-prec", &(c)->muon.precision, "medium|high", "its matrix products: in bf16; in fp32"), \
    OPT_FLAG(0, "muon-no-split-qkv", &(c)->muon.whole_qkv, "queries, keys and values are one matrix, not three"), \
    OPT_NUM(0, "adafactor-beta2-decay", &(c)->adafactor.beta2_decay, -10, 0, \
            "second moments forget by 1 less the step to the power of this"), \
    OPT_NUM(0, "adafactor-eps1", &(c)->adafactor.eps1, 1e-18, 1, "the least root of a second moment"), \
    OPT_NUM(0, "adafactor-eps2", &(c)->adafactor.eps2, 0, 1e6, "the least size of a parameter, of which lr is a share"), \
    OPT_NUM(0, "adafactor-d", &(c)->adafactor.d, 1, 1e6, "the root mean square above which an update is clipped"), \
    OPT_FLAG(0, "qk-clip", &(c)->qk_clip.on, "scale down queries and keys of heads whose logits grow too large (MuonClip)"), \
    OPT_NUM(0, "qk-clip-alpha", &(c)->qk_clip.alpha, 0, 1, "the share of the queries, as a power; above 0, below 1"), \
    OPT_NUM(0, "qk-clip-threshold", &(c)->qk_clip.threshold, 0, 1e12, "the largest logit that is left alone; above 0")

/* The defaults. */
void optim_conf_init(struct optim_conf *c);

/* A mean of gradients that forgets by the factor b; nesterov: the one at hand counts once more. */
struct optim_momentum {
    double b;
    bool nesterov;
};
/* A matrix, or a vector of one column, that is seen whole. */
struct optim_whole {
    float *w;           /* (rows, cols): what the momentum has made of gradients or, without one, gradients */
    int64_t rows, cols;
    bool vector;
    double weights;     /* the sum of the squares of the weights, if the kind asks for it */
    float *row, *col;   /* the kind's lines: (rows), (cols); of a vector the first alone */
    int64_t step;
    double lr, clip;    /* its rate; what gradients are to be multiplied by, without a momentum */
    void *work;         /* direct_bytes */
};
/* w becomes what is subtracted from the weights, but for the rate. */
typedef int optim_direct_fn(struct device *dev, const struct optim_conf *c, const struct optim_whole *x, struct err *e);

/* What a kind keeps of a parameter: tensors of fp32 of its shape, of these parts of a checkpoint; and its update, of each element
 * by itself. */
struct optim {
    int states;
    enum checkpoint_part state[PARAM_STATES];
    enum update_kind update;
    int mup[2]; /* with muP: the power of the width that the rate is multiplied by, of all else and of matrices of layers */
    /* Of a kind that sees tensors whole (train/matrices.h), else NULL.  Its update is SGD's, without momentum, of what direct
     * makes. */
    optim_direct_fn *direct;
    size_t (*direct_bytes)(const struct optim_conf *c, const struct matrix_size *most); /* of work, on the device */
    struct optim_momentum (*momentum)(const struct optim_conf *c); /* NULL: none; else its first state is that */
    bool all;     /* it trains all tensors, vectors too; else matrices of layers, and AdamW all else */
    bool weights; /* it asks for their squares */
    /* What it keeps of a whole matrix, fp32: a number of each row, one of each column; of a vector, one of each element.
     * CHECKPOINT_WEIGHTS: nothing. */
    enum checkpoint_part lines[3];
    bool no_mup;  /* its rates with muP are not known */
};
const struct optim *optim_of(int kind);

/* Sets the rule of each parameter. */
void optim_rules(const struct optim_conf *c, struct params *p);
/* Which of the states of a parameter a part of a checkpoint is; -1: none. */
int optim_state(const struct param_rule *r, enum checkpoint_part part);
/* What the updates of a step have in common. */
struct optim_step {
    const struct optim_conf *conf;
    int64_t step; /* 1 is the first */
    double lr, decoupled_lr;
    uint64_t round_key;
    const float *grad_scale; /* NULL: 1 */
};
/* That of a parameter, but for the place of what is rounded.  Of a rule that is whole: of what direct has made, in the
 * gradient's place. */
struct update optim_update(const struct optim_step *s, const struct param *p);

#ifdef __cplusplus
}
#endif
#endif
