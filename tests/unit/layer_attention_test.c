/* Kinds of attention by layers, as models have them: the gradients of all parameters are slopes of the loss, and token by token
 * through the cache gives what a whole pass gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "kernels/rope.h"
#include "train/layer_attention.h"
#include "train/model.h"

enum { B = 2, T = 12, VOCAB = 32 };

static struct device *dev;
static struct err e;

#define OK(call)                      \
    do {                              \
        if ((call) < 0)               \
            fail_msg("%s", e.msg);    \
    } while (0)

/* Three layers, so that of two and two one is left. */
#define BASE                                                                                                               \
    .layers = 3, .hidden = 24, .heads = 4, .groups = 2, .seq = T, .vocab = VOCAB, .position = POSITION_ROPE, .init_std = 0.3, \
    .norm = NORM_RMS, .no_bias = true, .mlp = MLP_SWIGLU
#define LATENT                                                                                                        \
    .layers = 3, .hidden = 24, .heads = 4, .seq = T, .vocab = VOCAB, .position = POSITION_ROPE, .init_std = 0.3,      \
    .no_bias = true, .mlp = MLP_SWIGLU, .latent = true, .kv_rank = 12, .qk_flat = 4, .qk_turn = 2
static const struct kind {
    const char *name;
    struct model_config config;
} kinds[] = {
    {"as ever", {BASE}},
    {"windows", {BASE, .window = 3}},
    {"windows and full layers", {BASE, .window = 4, .window_freq = 2, .qk_norm = true}},
    {"softmax off by one", {BASE, .softmax = SOFTMAX_OFF_BY_ONE}},
    {"sinks and windows", {BASE, .softmax = SOFTMAX_LEARNABLE, .window = 3, .window_freq = 2}},
    {"capped logits", {BASE, .softcap = 0.5}},
    {"capped in windows by another scale", {BASE, .softcap = 2, .softmax_scale = 1.25, .window = 3, .window_freq = 2}},
    {"every second layer does not turn", {BASE, .no_rope_freq = 2}},
    {"windows turn by angles of their own",
     {BASE, .window = 5, .window_freq = 3, .rotary_base_local = 30, .rotary_percent = 0.5}},
    {"a gate", {BASE, .output_gate = true}},
    {"latents", {LATENT, .norm = NORM_RMS, .q_rank = 10, .qk_norm = true, .v_dim = 3}},
    {"latents of keys alone, wide values, windows", {LATENT, .norm = NORM_RMS, .v_dim = 6, .window = 4}},
    {"latents under yarn, layer norms",
     {LATENT, .norm = NORM_LAYER, .q_rank = 10, .qk_norm = true, .v_dim = 3, .rope_scaling = true, .rope_kind = ROPE_YARN,
      .rope_factor = 4, .rope_original = 8, .mscale = 0.7, .mscale_all = 1.4}},
    {"norms without weights, of embeddings and heads too", {BASE, .norm_bare = true, .embedding_norm = true, .qk_norm = true}},
    {"embeddings of values", {BASE, .value_freq = 1, .value_scale = 0.5}},
    {"gated embeddings of values of two layers, and a gate",
     {BASE, .value_freq = 2, .value_gate = 5, .value_scale = 3, .output_gate = true}},
    {"a gate with biases and norms of heads", {BASE, .output_gate = true, .qkv_bias = true, .qk_norm = true}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct model *opened(const struct kind *k, enum model_use use, enum recompute recompute)
{
    struct model_config c = k->config;
    struct model_run run = {.dt = DTYPE_F32, .use = use, .b = B, .t = T, .recompute = recompute};
    struct model *m;

    OK(model_config_check(&c, 1, &e));
    OK(model_open(&m, dev, &c, NULL, &run, &e));
    params_fill(&m->dense.params, 17, m->dense.weights);
    OK(model_weights_changed(m, &e));
    return m;
}

static int32_t tokens[B * T], targets[B * T];

static double loss_of(struct model *m, float grad_scale)
{
    const struct model_batch batch = {.tokens = tokens, .targets = targets, .grad_scale = grad_scale};
    double loss;

    OK(model_take(m, &batch, &e));
    OK(model_forward(m, &batch, &loss, &e));
    if (grad_scale > 0) {
        model_backward_begin(m, 0, 1);
        OK(model_backward(m, &batch, &e));
        OK(model_backward_end(m, &e));
    }
    return loss;
}

static void slopes(const struct kind *k, enum recompute recompute)
{
    struct model *m = opened(k, MODEL_TRAIN, recompute);
    const float h = 4e-3f;

    loss_of(m, 1);
    for (int i = 0; i < m->dense.params.n; i++) {
        const struct param *p = &m->dense.params.v[i];

        for (size_t at = 0; at < p->n; at += p->n / 3 + 1) {
            float *w = m->dense.weights + p->at + at, was = *w, got = m->dense.grads[p->at + at];
            double up, down, want;

            *w = was + h;
            up = loss_of(m, 0);
            *w = was - h;
            down = loss_of(m, 0);
            *w = was;
            want = (up - down) / (2 * (double)h);
            if (!(fabs(got - want) <= 0.02 * (fabs(want) + 0.5)))
                fail_msg("%s, %s[%zu]: %g, the slope is %g", k->name, p->name, at, (double)got, want);
        }
    }
    model_close(m);
}

static void gradients_are_slopes(void **st)
{
    (void)st;
    for (int k = 0; k < KINDS; k++)
        for (int r = RECOMPUTE_NONE; r <= RECOMPUTE_SELECTIVE; r++)
            slopes(&kinds[k], (enum recompute)r);
}

static void a_cache_gives_the_same(void **st)
{
    float logits[B * VOCAB];

    (void)st;
    for (int k = 0; k < KINDS; k++) {
        struct model *full = opened(&kinds[k], MODEL_EVAL, RECOMPUTE_NONE);
        struct model *gen = opened(&kinds[k], MODEL_GENERATE, RECOMPUTE_NONE);
        const float *want = full->head.logits;

        loss_of(full, 0);
        for (int piece = 1; piece <= T; piece = piece == 1 ? 3 : piece == 3 ? T : T + 1)
            for (int past = 0; past < T; past += piece) {
                int32_t some[B * T];

                for (int i = 0; i < B * piece; i++)
                    some[i] = tokens[i / piece * T + past + i % piece];
                OK(model_extend(gen, some, B, piece, past, logits, &e));
                for (int i = 0; i < B * VOCAB; i++) {
                    float right = want[(i / VOCAB * T + past + piece - 1) * VOCAB + i % VOCAB];
                    if (!(fabsf(logits[i] - right) <= 2e-5f * fmaxf(1, fabsf(right))))
                        fail_msg("%s, pieces of %d, position %d: %.8g, not %.8g", kinds[k].name, piece, past, (double)logits[i],
                                 (double)right);
                }
            }
        model_close(full);
        model_close(gen);
    }
}

/* Each kind does something. */
static void no_two_are_the_same(void **st)
{
    double loss[KINDS];

    (void)st;
    for (int k = 0; k < KINDS; k++) {
        struct model *m = opened(&kinds[k], MODEL_EVAL, RECOMPUTE_NONE);

        loss[k] = loss_of(m, 0);
        for (int i = 0; i < k; i++)
            if (!(fabs(loss[i] - loss[k]) > 1e-3))
                fail_msg("'%s' and '%s' are the same: %g", kinds[i].name, kinds[k].name, loss[k]);
        model_close(m);
    }
}

static int begin(void **st)
{
    uint32_t x = 1;

    (void)st;
    for (int i = 0; i < B * T; i++) {
        x = x * 1664525u + 1013904223u;
        tokens[i] = (int32_t)(x >> 27);
        targets[i] = (int32_t)(x >> 22 & 31);
    }
    return device_open(&dev, "cpu", 1, &e);
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
        cmocka_unit_test(a_cache_gives_the_same),
        cmocka_unit_test(no_two_are_the_same),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
