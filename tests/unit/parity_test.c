/* A small GPT-2 against values recorded from PyTorch (tests/record/gpt2_parity.py):
 * logits, loss, every gradient, and ten steps of clipping and AdamW. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/file.h"
#include "train/model.h"
#include "train/safetensors.h"

enum { B = 2, T = 32, V = 211, STEPS = 10 };

static const struct model_config config = {
    .layers = 2, .hidden = 48, .heads = 4, .ffn = 192, .seq = T, .positions = T, .vocab = V, .padded_vocab = 256,
};
static struct file_map map;
static struct arena arena;
static struct safetensors want;
static struct device *dev;
static struct err e;

static int start(void **state)
{
    (void)state;
    if (file_map_open(&map, "tests/data/train/gpt2_parity.safetensors", &e) < 0 ||
        safetensors_parse(&arena, "recorded", (struct span){(const char *)map.p, map.n}, &want, &e) < 0 ||
        device_open(&dev, "cpu", 2, &e) < 0)
        return fprintf(stderr, "%s\n", e.msg), -1;
    return 0;
}

static int end(void **state)
{
    (void)state;
    device_close(dev);
    arena_free(&arena);
    file_map_close(&map);
    return 0;
}

static const float *recorded(const char *prefix, const char *name, size_t n)
{
    char full[128];
    const struct safetensor *t;

    snprintf(full, sizeof full, "%s%s", prefix, name);
    t = safetensors_find(&want, full);
    if (!t)
        fail_msg("nothing recorded for %s", full);
    assert_int_equal(t->data.n, n * sizeof(float));
    return (const float *)(const void *)t->data.p;
}

/* As made_up() in the script. */
static void make_up(const struct params *p, float *w)
{
    memset(w, 0, p->elements * sizeof *w);
    for (int k = 0; k < p->n; k++) {
        bool norm = strstr(p->v[k].name, "layernorm.weight") != NULL;
        size_t n = k == p->word ? (size_t)V * 48 : p->v[k].n; /* not the padding of the vocabulary */

        for (size_t i = 0; i < n; i++) {
            uint32_t x = (uint32_t)(i + (size_t)k * 1000003);

            for (int r = 0; r < 2; r++)
                x = (x ^ x >> 16) * 0x45D9F3Bu;
            x ^= x >> 16;
            w[p->v[k].at + i] = ((float)(x >> 8) * 0x1p-24f - 0.5f) * 0.4f + (float)norm;
        }
    }
}

static void batch(int64_t step, int64_t first, int64_t n, int32_t *tokens, int32_t *targets)
{
    const struct safetensor *t = safetensors_find(&want, "ids");
    const int32_t *ids = (const int32_t *)(const void *)t->data.p + (step * B + first) * (T + 1);

    for (int64_t i = 0; i < n * T; i++) {
        tokens[i] = ids[i / T * (T + 1) + i % T];
        targets[i] = ids[i / T * (T + 1) + i % T + 1];
    }
}

/* NaN fails. */
static void close_to(const char *what, const char *name, const float *got, const float *ref, size_t n, double tol)
{
    double scale = 0, worst = 0;

    for (size_t i = 0; i < n; i++)
        scale = fmax(scale, fabs(ref[i]));
    for (size_t i = 0; i < n; i++) {
        double err = fabs((double)got[i] - ref[i]);

        if (!(err <= tol * fmax(scale, 1e-2)))
            fail_msg("%s %s[%zu]: %.8g, not %.8g (largest of the tensor %.3g)", what, name, i, got[i], ref[i], scale);
        worst = fmax(worst, err / fmax(scale, 1e-2));
    }
    if (getenv("VERBOSE"))
        printf("%s %s: worst %.2g of the largest\n", what, name, worst);
}

static void check_logits(const struct model *m, double tol)
{
    const float *ref = recorded("logits", "", (size_t)B * T * V);

    for (int64_t i = 0; i < (int64_t)B * T; i++) {
        float row[V];

        for (int64_t v = 0; v < V; v++)
            row[v] = m->dt == DTYPE_BF16 ? bf16_to(((uint16_t *)m->logits)[i * 256 + v])
                                         : ((float *)m->logits)[i * 256 + v];
        close_to("logits", "", row, ref + i * V, V, tol);
    }
}

/* Logits, loss and gradients of the first batch, cut into micro-batches of b. */
static void first_batch(enum dtype dt, enum model_use use, int64_t b, double tol)
{
    struct model *m;
    int32_t tokens[B * T], targets[B * T];
    double sum, total = 0;

    assert_int_equal(model_open(&m, dev, &config, dt, use, b, T, &e), 0);
    make_up(&m->params, m->weights);
    assert_int_equal(model_weights_changed(m, &e), 0);
    memset(m->grads, 0, m->memory.grads);
    for (int64_t i = 0; i < B; i += b) {
        batch(0, i, b, tokens, targets);
        assert_int_equal(model_forward(m, tokens, targets, NULL, 0, &sum, &e), 0);
        if (b == B)
            check_logits(m, tol);
        assert_int_equal(model_forward(m, tokens, targets, NULL, 1.0f / (B * T), &sum, &e), 0);
        assert_int_equal(model_backward(m, NULL, i == 0, &e), 0);
        total += sum;
    }
    float loss = (float)(total / (B * T));
    close_to("loss", "", &loss, recorded("losses", "", STEPS), 1, tol);
    for (int k = 0; k < m->params.n; k++) {
        const struct param *p = &m->params.v[k];
        size_t n = k == m->params.word ? (size_t)V * 48 : p->n;

        close_to("gradient", p->name, m->grads + p->at, recorded("grad.", p->name, n), n, tol);
        for (size_t i = n; i < p->n; i++)
            assert_true(m->grads[p->at + i] == 0); /* of padding rows */
    }
    model_close(m);
}

static void fp32_equals_pytorch(void **state)
{
    (void)state;
    first_batch(DTYPE_F32, MODEL_TRAIN, B, 1e-4);
}

static void recomputation_equals_pytorch(void **state)
{
    (void)state;
    first_batch(DTYPE_F32, MODEL_RECOMPUTE, B, 1e-4);
}

static void accumulation_equals_pytorch(void **state)
{
    (void)state;
    first_batch(DTYPE_F32, MODEL_TRAIN, 1, 1e-4);
}

/* Eight bits of mantissa in weights and activations: 3 % of a tensor's largest value. */
static void bf16_is_near_pytorch(void **state)
{
    (void)state;
    first_batch(DTYPE_BF16, MODEL_TRAIN, B, 3e-2);
}

/* Ten steps; m, v: moments. */
static void steps(struct model *m, float *mom, float *var, double tol)
{
    float *clip, loss[STEPS], norm[STEPS];
    double *sumsq, sum;
    int32_t tokens[B * T], targets[B * T];

    assert_int_equal(device_alloc(dev, (void **)&clip, sizeof *clip, &e), 0);
    assert_int_equal(device_alloc(dev, (void **)&sumsq, sizeof *sumsq, &e), 0);
    for (int s = 0; s < STEPS; s++) {
        batch(s, 0, B, tokens, targets);
        assert_int_equal(model_forward(m, tokens, targets, NULL, 1.0f / (B * T), &sum, &e), 0);
        assert_int_equal(model_backward(m, NULL, true, &e), 0);
        *sumsq = 0;
        assert_int_equal(dev->ops->vec_sumsq(dev, DTYPE_F32, sumsq, m->grads, (int64_t)m->params.elements, &e), 0);
        assert_int_equal(dev->ops->clip_scale(dev, clip, sumsq, 0.5f, &e), 0);
        loss[s] = (float)(sum / (B * T));
        norm[s] = (float)sqrt(*sumsq);
        for (int k = 0; k < m->params.n; k++) {
            const struct param *p = &m->params.v[k];
            struct adamw a = {s + 1, 1e-3, 0.9, 0.95, 1e-5, param_decays(p) ? 0.1 : 0, clip};

            assert_int_equal(dev->ops->adamw(dev, &a, m->weights + p->at, mom + p->at, var + p->at, m->grads + p->at,
                                             m->low ? m->low + p->at : NULL, (int64_t)p->n, &e), 0);
        }
    }
    close_to("losses", "", loss, recorded("losses", "", STEPS), STEPS, tol);
    close_to("norms", "", norm, recorded("norms", "", STEPS), STEPS, tol);
    device_free(dev, clip);
    device_free(dev, sumsq);
}

static void ten_steps(enum dtype dt, double tol)
{
    struct model *m;
    float *mom, *var;

    assert_int_equal(model_open(&m, dev, &config, dt, MODEL_TRAIN, B, T, &e), 0);
    make_up(&m->params, m->weights);
    assert_int_equal(model_weights_changed(m, &e), 0);
    mom = calloc(m->params.elements, sizeof *mom);
    var = calloc(m->params.elements, sizeof *var);
    steps(m, mom, var, tol);
    for (int k = 0; dt == DTYPE_F32 && k < m->params.n; k++) {
        const struct param *p = &m->params.v[k];
        size_t n = k == m->params.word ? (size_t)V * 48 : p->n;

        close_to("weights after ten steps", p->name, m->weights + p->at, recorded("after.", p->name, n), n, tol);
    }
    free(mom);
    free(var);
    model_close(m);
}

static void ten_steps_equal_pytorch(void **state)
{
    (void)state;
    ten_steps(DTYPE_F32, 1e-4);
}

static void ten_bf16_steps_are_near_pytorch(void **state)
{
    (void)state;
    ten_steps(DTYPE_BF16, 2e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp32_equals_pytorch),
        cmocka_unit_test(recomputation_equals_pytorch),
        cmocka_unit_test(accumulation_equals_pytorch),
        cmocka_unit_test(bf16_is_near_pytorch),
        cmocka_unit_test(ten_steps_equal_pytorch),
        cmocka_unit_test(ten_bf16_steps_are_near_pytorch),
    };

    return cmocka_run_group_tests_name("parity", tests, start, end);
}
