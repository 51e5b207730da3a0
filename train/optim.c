#include "train/optim.h"

static const struct {
    struct optim keeps;
    enum update_kind update;
} table[] = { /* in the order of --optimizer */
    {{2, {CHECKPOINT_EXP_AVG, CHECKPOINT_EXP_AVG_SQ}}, UPDATE_ADAMW},
    {{1, {CHECKPOINT_EXP_AVG}}, UPDATE_LION},
    {{1, {CHECKPOINT_MOMENTUM}}, UPDATE_SGD},
};

void optim_conf_init(struct optim_conf *c)
{
    *c = (struct optim_conf){
        .weight_decay = 0.01, .adam_beta1 = 0.9, .adam_beta2 = 0.999, .adam_eps = 1e-8, .lion_beta1 = 0.9, .lion_beta2 = 0.99,
        .sgd_momentum = 0.9,
    };
}

const struct optim *optim_of(const struct optim_conf *c)
{
    return &table[c->kind].keeps;
}

struct update optim_update(const struct optim_conf *c, int64_t step, double lr, uint64_t round_key)
{
    const double betas[UPDATE_KINDS][2] = {
        [UPDATE_ADAMW] = {c->adam_beta1, c->adam_beta2}, [UPDATE_LION] = {c->lion_beta1, c->lion_beta2},
        [UPDATE_SGD] = {c->sgd_momentum, 0},
    };
    enum update_kind kind = table[c->kind].update;

    return (struct update){
        .kind = kind, .step = step, .lr = lr, .beta1 = betas[kind][0], .beta2 = betas[kind][1], .eps = c->adam_eps,
        .round.key = round_key,
    };
}
