/* QK-clip against PyTorch (tests/record/qk_clip.py): losses, largest logits of heads, what it leaves of weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/recorded.h"
#include "train/qk_clip.h"

enum { B = 2, T = 16, V = 61, H = 32, L = 2, HEADS = 4, STEPS = 6 };

static struct recorded want;
static struct device *dev;
static struct err e;

static void ok(int rc)
{
    if (rc < 0)
        fail_msg("%s", e.msg);
}

static int start(void **state)
{
    (void)state;
    return device_open(&dev, "cpu", 2, &e) < 0 || recorded_open(&want, "tests/data/train/qk_clip.safetensors", &e) < 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    device_close(dev);
    recorded_close(&want);
    return 0;
}

/* The largest difference is at most 1e-5 of the largest number. */
static void near(const char *kind, const char *what, const float *got, const float *x, size_t n)
{
    double worst = 0, most = 0;

    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)got[i] - (double)x[i]));
        most = fmax(most, fabs((double)x[i]));
    }
    if (getenv("VERBOSE"))
        printf("%s%s: %.2g\n", kind, what, worst / most);
    if (!(worst <= 1e-5 * most))
        fail_msg("%s%s: off by %.3g of %.3g", kind, what, worst, most);
}

/* As the script fills it. */
static void fill(const struct param_buffer *b)
{
    for (int k = 0; k < b->params.n; k++) {
        const struct param *p = &b->params.v[k];
        bool wide = strstr(p->name, "q_up_proj.weight") || strstr(p->name, "linear_qkv.bias");

        recorded_made_up((size_t)k, strstr(p->name, "layernorm.weight"), p->n, b->weights + p->at);
        for (size_t i = 0; i < p->n; i++)
            b->weights[p->at + i] *= wide ? 5 : 2;
    }
}

/* A step of two micro-batches; its loss. */
static double gradients(struct model *m, int step)
{
    static int32_t tokens[T], targets[T], here[2 * T];
    const int32_t *ids = (const int32_t *)recorded_find(&want, "", "ids", STEPS * B * (T + 1)) + step * B * (T + 1);
    const struct model_batch batch = {.tokens = tokens, .targets = targets, .here = here, .grad_scale = 1.0f / (B * T)};
    double sum, all = 0;

    for (int k = 0; k < B; k++) {
        memcpy(tokens, ids + k * (T + 1), sizeof tokens);
        memcpy(targets, ids + k * (T + 1) + 1, sizeof targets);
        ok(model_take(m, &batch, &e));
        ok(model_forward(m, &batch, &sum, &e));
        model_backward_begin(m, k, B);
        ok(model_backward(m, &batch, &e));
        ok(model_backward_end(m, &e));
        all += sum;
    }
    return all / (B * T);
}

static void six_steps(const char *kind, struct model_config config, double threshold, double alpha, const char *const kept[2])
{
    const struct layout_sizes alone = LAYOUT_ALONE;
    const float *most = recorded_find(&want, kind, ".most", STEPS * L * HEADS);
    const float *losses = recorded_find(&want, kind, ".losses", STEPS);
    struct optim_conf conf;
    struct model_run run = {.b = 1, .t = T, .optim = &conf};
    struct train_part part = {0};
    struct optimizer optimizer;
    struct layout layout;
    struct comm *self;
    float got[STEPS];
    double norm, top;

    optim_conf_init(&conf);
    conf.weight_decay = 0.1;
    conf.adam_beta2 = 0.95;
    conf.adam_eps = 1e-5;
    conf.qk_clip.on = true;
    conf.qk_clip.threshold = threshold;
    conf.qk_clip.alpha = alpha;
    ok(model_config_check(&config, 1, &e));
    ok(comm_open_self(&self, &e));
    ok(layout_open(&layout, self, &alone, &e));
    ok(model_open(&part.model, dev, &config, NULL, &run, &e));
    ok(optimizer_open(&optimizer, dev, NULL, &conf, &layout, &part, 1, &e));
    fill(&part.model->dense);
    ok(model_weights_changed(part.model, &e));
    for (int s = 0; s < STEPS; s++) {
        const struct optim_step step = {.step = s + 1, .lr = 1e-3, .decoupled_lr = 1e-3};
        double highest = 0;

        ok(qk_clip_begin(&part, 1, &e));
        got[s] = (float)gradients(part.model, s);
        near(kind, ".most", part.model->most, most + s * L * HEADS, L * HEADS);
        ok(optimizer_reduce(&optimizer, &e));
        ok(optimizer_norm(&optimizer, 0.5, &norm, &e));
        ok(optimizer_update(&optimizer, &step, &e));
        ok(qk_clip_end(&conf, &layout, &part, 1, &top, &e));
        for (int i = 0; i < L * HEADS; i++)
            highest = fmax(highest, (double)part.model->most[i]);
        assert_true(top == highest);
    }
    near(kind, ".losses", got, losses, STEPS);
    for (int i = 0; i < part.model->dense.params.n; i++)
        for (int k = 0; k < 2; k++) {
            const struct param *p = &part.model->dense.params.v[i];
            char name[96];

            snprintf(name, sizeof name, "decoder.layers.1.self_attention%s", kept[k]);
            if (strcmp(p->name, name) == 0)
                near(kind, kept[k], part.model->dense.weights + p->at, recorded_find(&want, kind, kept[k], p->n), p->n);
        }
    optimizer_close(&optimizer);
    model_close(part.model);
    layout_close(&layout);
    comm_close(self);
}

#define SHAPE \
    .layers = L, .hidden = H, .heads = HEADS, .seq = T, .vocab = V, .ffn = 48, .norm = NORM_RMS, .norm_eps = 1e-6, \
    .no_bias = true, .position = POSITION_ROPE, .mlp = MLP_SWIGLU

static void heads_that_share_a_key(void **state)
{
    static const char *const kept[] = {".linear_qkv.weight", ".linear_qkv.bias"};

    (void)state;
    six_steps("groups", (struct model_config){SHAPE, .groups = 2, .head_dim = 8, .qkv_bias = true}, 3, 0.5, kept);
}

static void latents(void **state)
{
    static const char *const kept[] = {".linear_q_up_proj.weight", ".linear_kv_up_proj.weight"};

    (void)state;
    six_steps("latent", (struct model_config){SHAPE, .latent = true, .qk_norm = true, .q_rank = 10, .kv_rank = 12, .qk_flat = 6,
                                              .qk_turn = 4, .v_dim = 5}, 2.6, 0.3, kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(heads_that_share_a_key), cmocka_unit_test(latents)};

    return cmocka_run_group_tests_name("qk_clip", tests, start, end);
}
