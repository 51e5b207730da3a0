/* train/optim.h -- the kinds of optimizers: what each is told, what it keeps of a parameter, and its update.
 *
 * Another one that looks at each element by itself needs its formula in both twins of kernels/update.h, a row in the table of
 * optim.c, and its settings here.
 */
#ifndef TRAIN_OPTIM_H
#define TRAIN_OPTIM_H

#include "kernels/update.h"
#include "train/pieces.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Settings, by Megatron's names where it has them. */
struct optim_conf {
    int kind; /* row of the table */
    double weight_decay;
    double adam_beta1, adam_beta2, adam_eps;
    double lion_beta1, lion_beta2;
    double sgd_momentum;
};
#define OPTIM_OPTS(c) \
    OPT_ENUM(0, "optimizer", &(c)->kind, "adam|lion|sgd", "AdamW; Lion; SGD with momentum"), \
    OPT_NUM(0, "weight-decay", &(c)->weight_decay, 0, 1e3, "on parameters of two dimensions"), \
    OPT_NUM(0, "adam-beta1", &(c)->adam_beta1, 0, 0.9999999, "decay of the first moment"), \
    OPT_NUM(0, "adam-beta2", &(c)->adam_beta2, 0, 0.9999999, "decay of the second moment"), \
    OPT_NUM(0, "adam-eps", &(c)->adam_eps, 0, 1, "added to the root of the second moment"), \
    OPT_NUM(0, "lion-beta1", &(c)->lion_beta1, 0, 0.9999999, "share of the momentum in what is applied"), \
    OPT_NUM(0, "lion-beta2", &(c)->lion_beta2, 0, 0.9999999, "decay of the momentum"), \
    OPT_NUM(0, "sgd-momentum", &(c)->sgd_momentum, 0, 0.9999999, "decay of the momentum")

/* The defaults. */
void optim_conf_init(struct optim_conf *c);

/* What it keeps: tensors of fp32 of each parameter's shape, of these parts of a checkpoint. */
enum { OPTIM_STATES = 2 };
struct optim {
    int states;
    enum checkpoint_part state[OPTIM_STATES];
};
const struct optim *optim_of(const struct optim_conf *c);

/* The update of a step but for weight_decay, which is for matrices alone, grad_scale, and the place of what is rounded. */
struct update optim_update(const struct optim_conf *c, int64_t step, double lr, uint64_t round_key);

#ifdef __cplusplus
}
#endif
#endif
