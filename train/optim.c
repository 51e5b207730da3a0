#include "train/optim.h"

#include <math.h>

#include "train/orthogonal.h"

/* ---- Muon ---- */

static struct orthogonal muon_of(const struct optim_conf *c)
{
    return (struct orthogonal){
        .steps = c->muon.steps, .coefficients = c->muon.coefficients, .scale = c->muon.scale, .factor = c->muon.extra_scale,
        .dt = c->muon.precision ? DTYPE_F32 : DTYPE_BF16,
    };
}

static int muon_direct(struct device *dev, const struct optim_conf *c, float *w, int64_t rows, int64_t cols, void *work,
                       struct err *e)
{
    const struct orthogonal o = muon_of(c);

    return orthogonal(dev, &o, w, rows, cols, work, e);
}

static size_t muon_bytes(const struct optim_conf *c, const struct matrix_size *most)
{
    const struct orthogonal o = muon_of(c);

    return orthogonal_bytes(&o, most->elements, most->side);
}

static struct optim_momentum muon_momentum(const struct optim_conf *c)
{
    return (struct optim_momentum){c->muon.momentum, c->muon.nesterov};
}

/* ---- all ---- */

static const struct optim table[OPTIM_KINDS] = {
    [OPTIM_ADAM] = {2, {CHECKPOINT_EXP_AVG, CHECKPOINT_EXP_AVG_SQ}, UPDATE_ADAMW, NULL, NULL, NULL, {0, -1}},
    [OPTIM_LION] = {1, {CHECKPOINT_EXP_AVG}, UPDATE_LION, NULL, NULL, NULL, {0, -1}},
    [OPTIM_SGD] = {1, {CHECKPOINT_MOMENTUM}, UPDATE_SGD, NULL, NULL, NULL, {1, 0}},
    [OPTIM_MUON] = {1, {CHECKPOINT_MOMENTUM}, UPDATE_SGD, muon_direct, muon_bytes, muon_momentum, {0, 0}},
};

void optim_conf_init(struct optim_conf *c)
{
    *c = (struct optim_conf){
        .weight_decay = 0.01, .decoupled_lr = -1, .decoupled_min_lr = -1, .adam_beta1 = 0.9, .adam_beta2 = 0.999,
        .adam_eps = 1e-8, .lion_beta1 = 0.9, .lion_beta2 = 0.99, .sgd_momentum = 0.9,
        .muon = {.momentum = 0.9, .extra_scale = 1, .steps = 5},
    };
}

const struct optim *optim_of(int kind)
{
    return &table[kind];
}

void optim_rules(const struct optim_conf *c, struct params *p)
{
    for (int i = 0; i < p->n; i++) {
        struct param *q = &p->v[i];
        bool outer = i == p->word || i == p->output, matrix = q->dims == 2 && !outer && i != p->position;
        int kind = table[c->kind].direct && !matrix ? OPTIM_ADAM : c->kind;

        q->rule = (struct param_rule){
            .optimizer = kind, .states = table[kind].states, .decoupled = outer, .whole = table[kind].direct,
            .apart = q->parts == 3 && !c->muon.whole_qkv,
            .rate = outer && c->decoupled_lr >= 0 ? 1 : pow(p->width, table[kind].mup[matrix]),
        };
    }
}

int optim_state(const struct param_rule *r, enum checkpoint_part part)
{
    for (int i = 0; i < r->states; i++)
        if (table[r->optimizer].state[i] == part)
            return i;
    return -1;
}

bool optim_keeps(const struct optim_conf *c, enum checkpoint_part part)
{
    const struct param_rule r = {.optimizer = c->kind, .states = table[c->kind].states};
    const struct param_rule others = {.optimizer = OPTIM_ADAM, .states = table[OPTIM_ADAM].states};

    return optim_state(&r, part) >= 0 || (table[c->kind].direct && optim_state(&others, part) >= 0);
}

struct update optim_update(const struct optim_step *s, const struct param *p)
{
    const struct optim_conf *c = s->conf;
    const double betas[OPTIM_KINDS][2] = {
        [OPTIM_ADAM] = {c->adam_beta1, c->adam_beta2}, [OPTIM_LION] = {c->lion_beta1, c->lion_beta2},
        [OPTIM_SGD] = {c->sgd_momentum, 0}, [OPTIM_MUON] = {0, 0},
    };
    int kind = p->rule.optimizer;

    return (struct update){
        .kind = table[kind].update, .step = s->step, .lr = (p->rule.decoupled ? s->decoupled_lr : s->lr) * p->rule.rate,
        .beta1 = betas[kind][0], .beta2 = betas[kind][1], .eps = c->adam_eps * p->rule.rate,
        .weight_decay = param_decays(p) ? c->weight_decay : 0, .grad_scale = p->rule.whole ? NULL : s->grad_scale,
        .round.key = s->round_key,
    };
}
