/* Optimizers against values recorded from PyTorch (tests/record/muon.py, optimizers.py): updates, Muon's iterations, the
 * losses of a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/recorded.h"
#include "train/model.h"
#include "train/optimizer.h"
#include "train/orthogonal.h"

enum { B = 2, T = 32, V = 211, H = 48, UPDATES = 10, STEPS = 200, BATCHES = 10, SMALL = 16 };

static const char *const files[] = {"tests/data/train/muon.safetensors", "tests/data/train/optimizers.safetensors"};
static struct recorded want[2];
static struct device *dev;
static struct err e;

static int start(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        if (recorded_open(&want[i], files[i], &e) < 0)
            return -1;
    return device_open(&dev, "cpu", 2, &e) < 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    device_close(dev);
    recorded_close(&want[0]);
    recorded_close(&want[1]);
    return 0;
}

static const void *recorded(const char *name, size_t n)
{
    return recorded_find(&want[safetensors_find(&want[0].tensors, name) ? 0 : 1], "", name, n);
}

/* The largest difference, of the largest number; of bf16, whose roundings are many, by their root mean squares. */
static double difference(const float *got, const float *x, size_t n, bool bf16)
{
    double worst = 0, most = 0, sum = 0, all = 0;

    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)got[i] - (double)x[i]));
        most = fmax(most, fabs((double)x[i]));
        sum += ((double)got[i] - (double)x[i]) * ((double)got[i] - (double)x[i]);
        all += (double)x[i] * (double)x[i];
    }
    return bf16 ? sqrt(sum / all) : worst / most;
}

/* ---- iterations ---- */

static void iterations_are_pytorchs(void **state)
{
    static const char *const sets[] = {"quintic", "simple", "polar_express"};
    static const int64_t shape[][2] = {{48, 80}, {80, 48}, {64, 64}, {1, 40}};
    static float w[80 * 64];
    char name[64];

    (void)state;
    for (int k = 0; k < 24; k++) {
        const int64_t *s = shape[k % 4];
        size_t n = (size_t)(s[0] * s[1]);
        struct orthogonal o = {5, k / 4 % 3, ORTHOGONAL_SPECTRAL, 1 / sqrt((double)(s[0] > s[1] ? s[0] : s[1])),
                               k < 12 ? DTYPE_F32 : DTYPE_BF16};
        void *work;
        double d;

        if (k >= 12 && s[0] == 1) /* PyTorch's bf16, too, is 6e-2 from the one singular value that polar_express makes */
            continue;
        assert_int_equal(device_alloc(dev, &work, orthogonal_bytes(&o, (int64_t)n, s[0] < s[1] ? s[0] : s[1]), &e), 0);
        recorded_made_up((size_t)(k % 4), false, n, w);
        assert_int_equal(orthogonal(dev, &o, w, s[0], s[1], work, &e), 0);
        snprintf(name, sizeof name, "ns.%s.%dx%d", sets[k / 4 % 3], (int)s[0], (int)s[1]);
        d = difference(w, recorded(name, n), n, k >= 12);
        /* Five steep polynomials multiply a last bit's difference in the one singular value of a row by 223, and a processor adds
         * up the norm in its own order. */
        if (!(d <= (k >= 12 ? 3e-2 : s[0] == 1 ? 5e-5 : 1e-5)))
            fail_msg("%s: %g", name, d);
        device_free(dev, work);
    }
}

static void zeros_stay_zeros(void **state)
{
    float w[12] = {0};
    struct orthogonal o = {5, ORTHOGONAL_QUINTIC, ORTHOGONAL_UNIT_RMS_NORM, 1, DTYPE_F32};
    void *work;

    (void)state;
    assert_int_equal(device_alloc(dev, &work, orthogonal_bytes(&o, 12, 3), &e), 0);
    assert_int_equal(orthogonal(dev, &o, w, 4, 3, work, &e), 0);
    for (int i = 0; i < 12; i++)
        assert_true(w[i] == 0);
    device_free(dev, work);
}

/* ---- updates ---- */

/* A model, its optimizer, and a layout of this process alone. */
struct trained {
    struct model_config config;
    struct optim_conf conf;
    struct layout layout;
    struct comm *self;
    struct train_part part;
    struct optimizer optimizer;
    struct model_run run;
};

/* Of t->config and t->conf. */
static void open_model(struct trained *t, int64_t multiple)
{
    const struct layout_sizes alone = LAYOUT_ALONE;

    t->run.b = B;
    t->run.t = t->config.seq;
    t->run.optim = &t->conf;
    assert_int_equal(model_config_check(&t->config, multiple, &e), 0);
    assert_int_equal(comm_open_self(&t->self, &e), 0);
    assert_int_equal(layout_open(&t->layout, t->self, &alone, &e), 0);
    if (model_open(&t->part.model, dev, &t->config, NULL, &t->run, &e) < 0 ||
        optimizer_open(&t->optimizer, dev, NULL, &t->conf, &t->layout, &t->part, 1, &e) < 0)
        fail_msg("%s", e.msg);
}

static void open_trained(struct trained *t, const char *how)
{
    optim_conf_init(&t->conf);
    t->conf.kind = OPTIM_MUON;
    t->conf.weight_decay = 0.1;
    t->conf.muon.momentum = 0.95;
    t->conf.muon.extra_scale = 0.2;
    t->conf.muon.precision = strcmp(how, "torch") != 0;
    t->conf.muon.nesterov = t->conf.muon.whole_qkv = strcmp(how, "split") != 0;
    t->conf.muon.coefficients = t->conf.muon.nesterov ? ORTHOGONAL_SIMPLE : ORTHOGONAL_QUINTIC;
    t->conf.adam_beta2 = 0.95;
    t->conf.adam_eps = 1e-5;
    open_model(t, 128);
}

static void close_trained(struct trained *t)
{
    optimizer_close(&t->optimizer);
    model_close(t->part.model);
    layout_close(&t->layout);
    comm_close(t->self);
}

static void update(struct trained *t, int64_t step, double lr, double clip)
{
    const struct optim_step s = {.step = step, .lr = lr, .decoupled_lr = lr};
    double norm;

    assert_int_equal(optimizer_reduce(&t->optimizer, &e), 0);
    assert_int_equal(optimizer_norm(&t->optimizer, clip, &norm, &e), 0);
    assert_int_equal(optimizer_update(&t->optimizer, &s, &e), 0);
}

static void ten_updates(const char *how, double tolerance)
{
    struct trained trained = {0}, *t = &trained;
    static const enum layer_param which[] = {QKV_W, PROJ_W, FC1_W, FC2_W};
    static const char before[] = "decoder.layers.0.";
    const struct param_buffer *b;

    t->config = (struct model_config){.layers = 1, .hidden = SMALL, .heads = 2, .seq = T, .vocab = V};
    open_trained(t, how);
    b = &t->part.model->dense;
    memset(b->weights, 0, b->params.elements * sizeof *b->weights);
    for (int s = 0; s < UPDATES; s++) {
        for (int k = 0; k < 4; k++) {
            const struct param *p = &b->params.v[params_layer(&b->params, 0, which[k])];

            recorded_made_up((size_t)(100 + 10 * s + k), false, p->n, b->grads + p->at);
        }
        update(t, s + 1, 0.01, 0);
        for (int k = 0; k < 4; k++) {
            const struct param *p = &b->params.v[params_layer(&b->params, 0, which[k])];
            char name[96];
            double d;

            snprintf(name, sizeof name, "%s.%s", how, p->name + strlen(before));
            name[strlen(name) - strlen(".weight")] = 0;
            d = difference(b->weights + p->at, (const float *)recorded(name, UPDATES * p->n) + (size_t)s * p->n, p->n,
                           !t->conf.muon.precision);
            if (!(d <= tolerance))
                fail_msg("%s, update %d: %g", name, s + 1, d);
        }
    }
    close_trained(t);
}

/* All parameters of a layer and more, from weights and by gradients that are made up; what is compared is how far they went. */
static void all_updated(const char *how, int kind, double scale, double lr, double decay, double tolerance)
{
    struct trained trained = {.config = {.layers = 1, .hidden = 8, .heads = 2, .seq = 16, .vocab = 32}}, *t = &trained;
    const struct params *ps;
    float first[512], went[512], should[512];

    optim_conf_init(&t->conf);
    t->conf.kind = kind;
    t->conf.weight_decay = decay;
    if (strcmp(how, "adafactor.other") == 0) {
        t->conf.adafactor.beta2_decay = -0.5;
        t->conf.adafactor.eps1 = 2e-3;
        t->conf.adafactor.eps2 = 0.15;
        t->conf.adafactor.d = 1.5;
    }
    open_model(t, 1);
    ps = &t->part.model->dense.params;
    for (int k = 0; k < ps->n; k++)
        recorded_made_up((size_t)k, strstr(ps->v[k].name, "layernorm.weight"), ps->v[k].n,
                         t->part.model->dense.weights + ps->v[k].at);
    for (int s = 0; s < UPDATES; s++) {
        for (int k = 0; k < ps->n; k++) {
            float *grad = t->part.model->dense.grads + ps->v[k].at;

            recorded_made_up((size_t)(100 + 20 * s + k), false, ps->v[k].n, grad);
            for (size_t i = 0; i < ps->v[k].n; i++)
                grad[i] *= (float)scale;
        }
        update(t, s + 1, lr, 0);
        for (int k = 0; k < ps->n; k++) {
            const struct param *p = &ps->v[k];
            const float *got = t->part.model->dense.weights + p->at, *x;
            char name[128];
            double d;

            snprintf(name, sizeof name, "%s.%s", how, p->name);
            x = (const float *)recorded(name, UPDATES * p->n) + (size_t)s * p->n;
            recorded_made_up((size_t)k, strstr(p->name, "layernorm.weight"), p->n, first);
            for (size_t i = 0; i < p->n; i++) {
                went[i] = got[i] - first[i];
                should[i] = x[i] - first[i];
            }
            d = difference(went, should, p->n, false);
            if (!(d <= tolerance))
                fail_msg("%s, update %d: %g", name, s + 1, d);
        }
    }
    close_trained(t);
}

static void adafactors_are_pytorchs(void **state)
{
    (void)state;
    all_updated("adafactor", OPTIM_ADAFACTOR, 1, 0.01, 0, 1e-5);
    all_updated("adafactor.other", OPTIM_ADAFACTOR, 0.01, 0.6, 0.1, 1e-5);
}

enum { SIDE = 64, MATRIX = SIDE * SIDE, KEPT = 6, SEEDS = 8 };
static const int kept[KEPT] = {1, 2, 5, 10, 20, 50};

/* A matrix after each of these numbers of AdamW's updates, with moments of such types; all else has no gradients. */
static void matrix_by_adamw(enum dtype first, enum dtype second, float after[KEPT][MATRIX])
{
    struct trained trained = {.config = {.layers = 1, .hidden = SIDE, .heads = 2, .seq = 16, .vocab = SIDE}}, *t = &trained;
    const struct param *p;
    float *grad;

    optim_conf_init(&t->conf);
    t->conf.weight_decay = 0.1;
    t->run.dense.state[0] = first;
    t->run.dense.state[1] = second;
    t->run.dense.align = EIGHT_BIT_BLOCK;
    open_model(t, 1);
    p = &t->part.model->dense.params.v[params_layer(&t->part.model->dense.params, 0, PROJ_W)];
    grad = t->part.model->dense.grads + p->at;
    assert_int_equal(p->n, MATRIX);
    recorded_made_up(3, false, MATRIX, t->part.model->dense.weights + p->at);
    for (int s = 0, k = 0; k < KEPT; s++) {
        recorded_made_up((size_t)(1000 + s), false, MATRIX, grad);
        for (int i = 0; i < MATRIX; i++)
            grad[i] *= (float)(1 + s % 7);
        update(t, s + 1, 1e-3, 0);
        if (s + 1 == kept[k])
            memcpy(after[k++], t->part.model->dense.weights + p->at, sizeof after[0]);
    }
    close_trained(t);
}

/* The root mean square and the mean of how far one is from the other. */
static void apart(const float *got, const float *x, double *rms, double *mean)
{
    *rms = *mean = 0;
    for (int i = 0; i < MATRIX; i++) {
        double d = (double)got[i] - (double)x[i];

        *rms += d * d / MATRIX;
        *mean += d / MATRIX;
    }
    *rms = sqrt(*rms);
}

/* fp32 moments: to a place of weights of 0.2.  Eight bits: torchao's, but for a number here and there that lies between two
 * levels to the last place: less than 1/200 of what eight bits change. */
static void moments_are_pytorchs(void **state)
{
    static float after[KEPT][MATRIX];
    const float *x = recorded("adamw", KEPT * MATRIX), *eight = recorded("adamw8bit", KEPT * MATRIX);
    double rms, mean, changed;

    (void)state;
    matrix_by_adamw(DTYPE_F32, DTYPE_F32, after);
    for (int k = 0; k < KEPT; k++) {
        apart(after[k], x + k * MATRIX, &rms, &mean);
        if (!(rms <= 1e-8))
            fail_msg("fp32, %d updates: %g", kept[k], rms);
    }
    matrix_by_adamw(DTYPE_8BIT, DTYPE_8BIT, after);
    for (int k = 0; k < KEPT; k++) {
        apart(eight + k * MATRIX, x + k * MATRIX, &changed, &mean);
        apart(after[k], eight + k * MATRIX, &rms, &mean);
        if (!(rms <= 2e-8 + 5e-3 * changed))
            fail_msg("8bit, %d updates: %g of %g", kept[k], rms, changed);
    }
}

/* bf16 moments are rounded by chance: weights are as far from those by fp32 moments as PyTorch's with moments rounded so are, to
 * 5 %, and their mean is as near 0. */
static void bf16_moments_are_as_pytorchs(void **state)
{
    static float after[KEPT][MATRIX];
    const float *x = recorded("adamw", KEPT * MATRIX), *all = recorded("bf16.rms", SEEDS * KEPT);

    (void)state;
    matrix_by_adamw(DTYPE_BF16, DTYPE_BF16, after);
    for (int k = 1; k < KEPT; k++) {
        double rms, mean, theirs = 0;

        for (int s = 0; s < SEEDS; s++)
            theirs += (double)all[s * KEPT + k] / SEEDS;
        apart(after[k], x + k * MATRIX, &rms, &mean);
        if (!(fabs(rms / theirs - 1) <= 0.05 && fabs(mean) <= 4 * theirs / SIDE))
            fail_msg("%d updates: %g apart, not %g; mean %g", kept[k], rms, theirs, mean);
    }
}

static void updates_are_pytorchs(void **state)
{
    (void)state;
    ten_updates("split", 1e-5);
    ten_updates("nesterov", 1e-5);
    ten_updates("torch", 3e-2);
}

/* ---- a run ---- */

static double take_step(struct model *m, int step)
{
    static int32_t tokens[B * T], targets[B * T], here[2 * B * T];
    const int32_t *ids = (const int32_t *)recorded("ids", BATCHES * B * (T + 1)) + step % BATCHES * B * (T + 1);
    const struct model_batch batch = {.tokens = tokens, .targets = targets, .here = here, .grad_scale = 1.0f / (B * T)};
    double sum;

    for (int i = 0; i < B * T; i++) {
        tokens[i] = ids[i / T * (T + 1) + i % T];
        targets[i] = ids[i / T * (T + 1) + i % T + 1];
    }
    assert_int_equal(model_take(m, &batch, &e), 0);
    assert_int_equal(model_forward(m, &batch, &sum, &e), 0);
    model_backward_begin(m, 0, 1);
    assert_int_equal(model_backward(m, &batch, &e), 0);
    assert_int_equal(model_backward_end(m, &e), 0);
    return sum / (B * T);
}

/* Two runs of PyTorch that sum in another order differ by as much. */
static void losses_are_pytorchs(void **state)
{
    struct trained t = {.config = {.layers = 2, .hidden = H, .heads = 4, .seq = T, .vocab = V}};
    const float *x = recorded("losses", STEPS), *y = recorded("again", STEPS);
    double spread = 0;
    const struct param_buffer *b;

    (void)state;
    open_trained(&t, "split");
    b = &t.part.model->dense;
    memset(b->weights, 0, b->params.elements * sizeof *b->weights);
    for (int k = 0; k < b->params.n; k++) {
        const struct param *p = &b->params.v[k];

        recorded_made_up((size_t)k, strstr(p->name, "layernorm.weight"), k == b->params.word ? (size_t)V * H : p->n,
                         b->weights + p->at);
    }
    assert_int_equal(model_weights_changed(t.part.model, &e), 0);
    for (int s = 0; s < STEPS; s++)
        spread = fmax(spread, fabs((double)x[s] - (double)y[s]));
    for (int s = 0; s < STEPS; s++) {
        double loss = take_step(t.part.model, s);

        if (!(fabs(loss - (double)x[s]) <= spread))
            fail_msg("step %d: %.7f, not %.7f within %g", s + 1, loss, (double)x[s], spread);
        update(&t, s + 1, 1e-3, 0.5);
    }
    close_trained(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iterations_are_pytorchs),
        cmocka_unit_test(zeros_stay_zeros),
        cmocka_unit_test(updates_are_pytorchs),
        cmocka_unit_test(adafactors_are_pytorchs),
        cmocka_unit_test(moments_are_pytorchs),
        cmocka_unit_test(bf16_moments_are_as_pytorchs),
        cmocka_unit_test(losses_are_pytorchs),
    };

    return cmocka_run_group_tests(tests, start, end);
}
