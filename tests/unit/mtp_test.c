/* Tokens behind the next one: which are embedded and predicted, and gradients of all parameters against slopes of the loss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "train/model.h"
#include "train/mtp.h"

enum { B = 2, T = 12, VOCAB = 32, DEPTHS = 2 };

static struct device *dev;
static struct err e;
static int32_t tokens[B * T], targets[B * T], starts[B * T], here[2 * B * T], room[DEPTHS * MTP_ROWS * B * T];

#define OK(call)                      \
    do {                              \
        if ((call) < 0)               \
            fail_msg("%s", e.msg);    \
    } while (0)

#define BASE                                                                                                     \
    .layers = 2, .hidden = 24, .heads = 4, .seq = T, .vocab = VOCAB, .init_std = 0.3, .mtp_layers = DEPTHS, .mtp_scale = 0.7
#define LLAMA BASE, .groups = 2, .position = POSITION_ROPE, .norm = NORM_RMS, .no_bias = true, .mlp = MLP_SWIGLU
static const struct kind {
    const char *name;
    struct model_config config;
    bool documents;
} kinds[] = {
    {"GPT", {BASE}, false},
    {"GPT of documents", {BASE}, true},
    {"Llama", {LLAMA, .untie = true}, false},
    {"Llama of documents", {LLAMA}, true},
    {"norms behind", {LLAMA, .norm_place = NORM_POST, .qk_norm = true}, false},
    {"norms before and behind", {LLAMA, .norm_place = NORM_BOTH, .norm_1p = true, .embedding_scale = 3, .residual_scale = 0.5},
     false},
    {"side by side", {LLAMA, .parallel = PARALLEL_NORMS, .logits_scale = 0.5}, false},
    {"side by side with one norm", {BASE, .parallel = PARALLEL_NORM, .logit_cap = 3}, false},
    {"windows and sinks", {LLAMA, .window = 3, .window_freq = 2, .softmax = SOFTMAX_LEARNABLE, .output_gate = true}, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct model *opened(const struct kind *k, enum recompute recompute)
{
    struct model_config c = k->config;
    struct model_run run = {.dt = DTYPE_F32, .use = MODEL_TRAIN, .b = B, .t = T, .recompute = recompute,
                            .reset_positions = k->documents, .reset_attention = k->documents};
    struct model *m;

    OK(model_config_check(&c, 1, &e));
    OK(model_open(&m, dev, &c, NULL, &run, &e));
    params_fill(&m->dense.params, 17, m->dense.weights);
    OK(model_weights_changed(m, &e));
    return m;
}

/* What is trained on. */
static double loss_of(struct model *m)
{
    struct mtp_rows rows[DEPTHS];
    double weight[DEPTHS], loss;
    struct model_batch batch = {.tokens = tokens, .targets = targets, .starts = starts, .here = here, .grad_scale = 1,
                                .further = rows};

    mtp_rows(m, &batch, room, rows, weight);
    OK(model_take(m, &batch, &e));
    OK(model_forward(m, &batch, &loss, &e));
    model_backward_begin(m, 0, 1);
    OK(model_backward(m, &batch, &e));
    OK(model_backward_end(m, &e));
    for (int k = 0; k < DEPTHS; k++)
        loss += m->config.mtp_scale / DEPTHS * weight[k] * m->mtp.loss[k];
    return loss;
}

static void slopes(const struct kind *k, enum recompute recompute)
{
    struct model *m = opened(k, recompute);
    size_t bytes = m->dense.params.elements * sizeof(float);
    float *grads = malloc(bytes);
    const float h = 4e-3f;

    loss_of(m);
    memcpy(grads, m->dense.grads, bytes);
    for (int i = 0; i < m->dense.params.n; i++) {
        const struct param *p = &m->dense.params.v[i];

        for (size_t at = 0; at < p->n; at += p->n / 2 + 1) {
            float *w = m->dense.weights + p->at + at, was = *w, got = grads[p->at + at];
            double up, down, want;

            *w = was + h;
            up = loss_of(m);
            *w = was - h;
            down = loss_of(m);
            *w = was;
            want = (up - down) / (2 * (double)h);
            if (!(fabs(got - want) <= 0.02 * (fabs(want) + 0.5)))
                fail_msg("%s, %s[%zu]: %g, the slope is %g", k->name, p->name, at, (double)got, want);
        }
    }
    free(grads);
    model_close(m);
}

static void gradients_are_slopes(void **st)
{
    (void)st;
    for (int k = 0; k < KINDS; k++)
        for (int r = RECOMPUTE_NONE; r <= RECOMPUTE_SELECTIVE; r++)
            slopes(&kinds[k], (enum recompute)r);
}

/* Sequences end, documents where they are told apart, and targets without a loss have none further on. */
static void tokens_end_with_their_document(void **st)
{
    (void)st;
    for (int documents = 0; documents < 2; documents++) {
        struct model *m = opened(&kinds[documents], RECOMPUTE_NONE);
        struct model_batch batch = {.tokens = tokens, .targets = targets, .starts = starts, .grad_scale = 0.25};
        struct mtp_rows rows[DEPTHS];
        double weight[DEPTHS];
        int all = 0, count[DEPTHS] = {0};

        mtp_rows(m, &batch, room, rows, weight);
        for (int i = 0; i < B * T; i++)
            all += targets[i] >= 0;
        for (int k = 1; k <= DEPTHS; k++)
            for (int i = 0; i < B * T; i++) {
                bool in = i % T + k < T && (!documents || starts[i + k] == starts[i]);

                assert_int_equal(rows[k - 1].tokens[i], in ? tokens[i + k] : 0);
                assert_int_equal(rows[k - 1].targets[i], in ? targets[i + k] : -1);
                assert_int_equal(rows[k - 1].positions[i], in ? i % T + k - (documents ? starts[i] : 0) : 0);
                count[k - 1] += rows[k - 1].targets[i] >= 0;
            }
        for (int k = 0; k < DEPTHS; k++) {
            assert_true(fabs(weight[k] - 0.25 * all / count[k]) < 1e-12);
            assert_true(fabs((double)rows[k].scale[0] - weight[k] * 0.7 / DEPTHS) < 1e-6);
        }
        model_close(m);
    }
}

/* No loss at all is no division by none. */
static void no_targets_count_nothing(void **st)
{
    int32_t none[B * T];
    struct model *m = opened(&kinds[0], RECOMPUTE_NONE);
    struct model_batch batch = {.tokens = tokens, .targets = none, .grad_scale = 1};
    struct mtp_rows rows[DEPTHS];
    double weight[DEPTHS];

    (void)st;
    memset(none, -1, sizeof none);
    mtp_rows(m, &batch, room, rows, weight);
    for (int k = 0; k < DEPTHS; k++)
        assert_true(weight[k] == 0 && rows[k].scale[0] == 0);
    model_close(m);
}

static int start(void **st)
{
    (void)st;
    for (int i = 0; i < B * T; i++) {
        tokens[i] = (i * 7 + i / 5) % VOCAB;
        targets[i] = i % 11 == 3 ? -1 : (i * 5 + 3) % VOCAB;
        starts[i] = i % T < 5 ? 0 : i % T < 6 ? 5 : 6;
    }
    return device_open(&dev, "cpu", 2, &e);
}

static int end(void **st)
{
    (void)st;
    device_close(dev);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(tokens_end_with_their_document),
        cmocka_unit_test(no_targets_count_nothing),
    };

    return cmocka_run_group_tests(tests, start, end);
}
