#include "train/optim.h"

#include <float.h>
#include <math.h>

#include "train/orthogonal.h"
#include "train/squares.h"

/* ---- Muon ---- */

static struct orthogonal muon_of(const struct optim_conf *c)
{
    return (struct orthogonal){
        .steps = c->muon.steps, .coefficients = c->muon.coefficients, .scale = c->muon.scale, .factor = c->muon.extra_scale,
        .dt = c->muon.precision ? DTYPE_F32 : DTYPE_BF16,
    };
}

static int muon_direct(struct device *dev, const struct optim_conf *c, const struct optim_whole *x, struct err *e)
{
    const struct orthogonal o = muon_of(c);

    return orthogonal(dev, &o, x->w, x->rows, x->cols, x->work, e);
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

/* ---- Adafactor ---- */

/* As torch.optim.Adafactor (arXiv:1804.04235): with U the gradients over the root of their second moment (kernels/factored.h),
 * l the rate, d the weight decay and RMS the root mean square of a tensor's numbers,
 *     w = w (1 - l d) - max(eps2, RMS(w)) min(l, 1 / sqrt(step)) U / max(1, RMS(U) / d) */
static int adafactor_direct(struct device *dev, const struct optim_conf *c, const struct optim_whole *x, struct err *e)
{
    const struct factored f = {x->rows, x->cols, pow((double)x->step, c->adafactor.beta2_decay), c->adafactor.eps1};
    int64_t n = x->rows * x->cols;
    double squares, size = fmax(c->adafactor.eps2, sqrt(x->weights / (double)n));

    if (x->clip < 1)
        TRY(dev->ops->vec_scale(dev, DTYPE_F32, x->w, (float)x->clip, n, e));
    TRY(dev->ops->factored(dev, &f, x->w, x->row, x->vector ? NULL : x->col, e));
    TRY(squares_sum(dev, DTYPE_F32, x->w, n, x->work, &squares, e));
    size *= fmin(1, 1 / (x->lr * sqrt((double)x->step))) / fmax(1, sqrt(squares / (double)n) / c->adafactor.d);
    return dev->ops->vec_scale(dev, DTYPE_F32, x->w, (float)size, n, e);
}

static size_t adafactor_bytes(const struct optim_conf *c, const struct matrix_size *most)
{
    (void)c;
    return squares_bytes(most->elements);
}

/* ---- all ---- */

static const struct optim table[OPTIM_KINDS] = {
    [OPTIM_ADAM] = {.states = 2, .state = {CHECKPOINT_EXP_AVG, CHECKPOINT_EXP_AVG_SQ}, .update = UPDATE_ADAMW, .mup = {0, -1}},
    [OPTIM_LION] = {.states = 1, .state = {CHECKPOINT_EXP_AVG}, .update = UPDATE_LION, .mup = {0, -1}},
    [OPTIM_SGD] = {.states = 1, .state = {CHECKPOINT_MOMENTUM}, .update = UPDATE_SGD, .mup = {1, 0}},
    [OPTIM_MUON] = {
        .states = 1, .state = {CHECKPOINT_MOMENTUM}, .update = UPDATE_SGD, .direct = muon_direct, .direct_bytes = muon_bytes,
        .momentum = muon_momentum,
    },
    [OPTIM_ADAFACTOR] = {
        .update = UPDATE_SGD, .direct = adafactor_direct, .direct_bytes = adafactor_bytes, .all = true, .weights = true,
        .lines = {CHECKPOINT_ROW_VAR, CHECKPOINT_COL_VAR, CHECKPOINT_VARIANCE}, .no_mup = true,
    },
};

void optim_conf_init(struct optim_conf *c)
{
    *c = (struct optim_conf){
        .weight_decay = 0.01, .decoupled_lr = -1, .decoupled_min_lr = -1, .adam_beta1 = 0.9, .adam_beta2 = 0.999,
        .adam_eps = 1e-8, .lion_beta1 = 0.9, .lion_beta2 = 0.99, .sgd_momentum = 0.9,
        .muon = {.momentum = 0.9, .extra_scale = 1, .steps = 5},
        .adafactor = {.beta2_decay = -0.8, .eps1 = FLT_EPSILON, .eps2 = 1e-3, .d = 1},
        .qk_clip = {.alpha = 0.5, .threshold = 100},
    };
}

const struct optim *optim_of(int kind)
{
    return &table[kind];
}

void optim_rules(const struct optim_conf *c, struct params *p)
{
    const struct optim *o = &table[c->kind];

    for (int i = 0; i < p->n; i++) {
        struct param *q = &p->v[i];
        bool outer = i == p->word || i == p->output, matrix = q->dims == 2 && !outer && !q->table;
        int kind = o->direct && !o->all && !matrix ? OPTIM_ADAM : c->kind;

        q->rule = (struct param_rule){
            .optimizer = kind, .states = table[kind].states, .decoupled = outer, .whole = table[kind].direct,
            .apart = q->parts == 3 && !c->muon.whole_qkv && !o->all,
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

struct update optim_update(const struct optim_step *s, const struct param *p)
{
    const struct optim_conf *c = s->conf;
    const double betas[OPTIM_KINDS][2] = {
        [OPTIM_ADAM] = {c->adam_beta1, c->adam_beta2}, [OPTIM_LION] = {c->lion_beta1, c->lion_beta2},
        [OPTIM_SGD] = {c->sgd_momentum, 0}, [OPTIM_MUON] = {0, 0}, [OPTIM_ADAFACTOR] = {0, 0},
    };
    int kind = p->rule.optimizer;

    return (struct update){
        .kind = table[kind].update, .step = s->step, .lr = (p->rule.decoupled ? s->decoupled_lr : s->lr) * p->rule.rate,
        .beta1 = betas[kind][0], .beta2 = betas[kind][1], .eps = c->adam_eps * p->rule.rate,
        .weight_decay = param_decays(p) ? c->weight_decay : 0, .grad_scale = p->rule.whole ? NULL : s->grad_scale,
        .round.key = s->round_key,
    };
}
