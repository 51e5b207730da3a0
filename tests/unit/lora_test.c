/* Adapters of every kind of linear layer: the loss and the gradients are those that the merged weights give, and the slopes of
 * the loss; in FP8 they are near those of bf16. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "train/lora.h"
#include "train/mtp.h"

enum { B = 2, T = 16, VOCAB = 32, RANK = 3, GRADIENTS = 1 << 17 };

static struct device *dev;
static struct err e;
static int32_t tokens[B * T], targets[B * T], here[2 * B * T], room[MODEL_MTP_MOST * MTP_ROWS * B * T];

#define OK(call)                      \
    do {                              \
        if ((call) < 0)               \
            fail_msg("%s", e.msg);    \
    } while (0)

#define BASE                                                                                                     \
    .layers = 2, .hidden = 32, .heads = 4, .seq = T, .vocab = VOCAB, .init_std = 0.3, .lora_rank = RANK, .lora_alpha = 2,      \
    .lora_targets = -1
#define LLAMA BASE, .groups = 2, .position = POSITION_ROPE, .norm = NORM_RMS, .no_bias = true, .mlp = MLP_SWIGLU
#define EXPERTS(n, k) .experts = n, .topk = k, .moe_ffn = 16, .balancing = BALANCE_NONE
static const struct kind {
    const char *name;
    struct model_config config;
    bool jumps; /* other experts are chosen as weights change */
} kinds[] = {
    {"GPT", {BASE}, false},
    {"Llama", {LLAMA}, false},
    {"experts with biases", {BASE, EXPERTS(4, 4)}, false},
    {"experts in every second layer", {LLAMA, EXPERTS(3, 3), .moe_freq = 2}, false},
    {"experts beside a shared one", {LLAMA, EXPERTS(4, 4), .moe_shared = 16, .shared_gate = true}, false},
    {"tokens further on", {BASE, .mtp_layers = 2, .mtp_scale = 0.7}, false},
    {"tokens further on by experts", {LLAMA, EXPERTS(4, 4), .moe_shared = 16, .moe_freq = 2, .mtp_layers = 2, .mtp_scale = 0.7,
                                      .untie = true}, false},
    {"some of the experts", {LLAMA, EXPERTS(8, 2)}, true},
    {"experts with a capacity", {BASE, EXPERTS(4, 2), .capacity = 0.7}, true},
    {"padded experts", {LLAMA, EXPERTS(4, 2), .capacity = 1.2, .pad_experts = true}, true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The model of a kind with all adapters that it can have, or without, as run says but for its size. */
static struct model *opened_as(const struct kind *k, bool adapters, struct model_run run)
{
    struct model_config c = k->config;
    struct model *m;

    run.use = MODEL_TRAIN;
    run.b = B;
    run.t = T;
    c.lora_rank = adapters ? RANK : 0;
    c.lora_targets &= model_lora_targets(&c);
    OK(model_config_check(&c, 1, &e));
    OK(model_open(&m, dev, &c, NULL, &run, &e));
    for (int i = 0; i < m->n_buffers; i++)
        params_fill(&m->buffers[i]->params, 17, m->buffers[i]->weights);
    OK(model_weights_changed(m, &e));
    return m;
}

static struct model *opened(const struct kind *k, bool adapters, enum recompute recompute)
{
    return opened_as(k, adapters, (struct model_run){.dt = DTYPE_F32, .recompute = recompute});
}

static bool is_half(const struct param *p, char half)
{
    char name[16];

    snprintf(name, sizeof name, ".lora_%c.", half);
    return strstr(p->name, name) != NULL;
}

/* B, which begins as 0, becomes something. */
static void stir(struct model *m)
{
    for (int i = 0; i < m->n_buffers; i++)
        for (int k = 0; k < m->buffers[i]->params.n; k++) {
            const struct param *p = &m->buffers[i]->params.v[k];

            for (size_t j = 0; is_half(p, 'B') && j < p->n; j++)
                m->buffers[i]->weights[p->at + j] = 0.3f * sinf((float)(j * 7 + (size_t)k));
        }
    OK(model_weights_changed(m, &e));
}

/* What is trained on; its gradients are left in the buffers. */
static double loss_of(struct model *m)
{
    struct mtp_rows rows[MODEL_MTP_MOST];
    double weight[MODEL_MTP_MOST], loss;
    struct model_batch batch = {.tokens = tokens, .targets = targets, .here = here, .grad_scale = 1, .further = rows};

    mtp_rows(m, &batch, room, rows, weight);
    OK(model_weights_changed(m, &e));
    OK(model_take(m, &batch, &e));
    OK(model_forward(m, &batch, &loss, &e));
    model_backward_begin(m, 0, 1);
    OK(model_backward(m, &batch, &e));
    OK(model_backward_end(m, &e));
    for (int64_t k = 0; k < m->mtp.n; k++)
        loss += m->config.mtp_scale / (double)m->mtp.n * weight[k] * m->mtp.loss[k];
    return loss;
}

/* The parameter of a name in m, *s its buffer. */
static const struct param *named(const struct model *m, const char *name, const struct param_buffer **s)
{
    for (int i = 0; i < m->n_buffers; i++)
        for (int k = 0; k < m->buffers[i]->params.n; k++)
            if (strcmp(m->buffers[i]->params.v[k].name, name) == 0) {
                *s = m->buffers[i];
                return &m->buffers[i]->params.v[k];
            }
    fail_msg("no %s", name);
    return NULL;
}

/* Gradients got (n) are within 1e-3 of want, by norm. */
static void close_to(const char *kind, const char *name, const float *got, const double *want, size_t n)
{
    double off = 0, norm = 0;

    for (size_t i = 0; i < n; i++) {
        off += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        norm += want[i] * want[i];
    }
    if (!(sqrt(off) <= 1e-3 * sqrt(norm) + 1e-5))
        fail_msg("%s, %s: off by %g of %g", kind, name, sqrt(off), sqrt(norm));
}

/* Calls fn with each adapter of m, A and B, and with its weight in the model without. */
struct adapter {
    const struct param *a, *b, *w;
    struct param_buffer *s;       /* theirs, */
    const struct param_buffer *of; /* and the weight's */
    float *va, *vb, *vw;
};
static int each_adapter(struct model *m, struct model *plain, void (*fn)(const char *kind, const struct adapter *x, double scale),
                        const char *kind)
{
    int n = 0;

    for (int i = 0; i < m->n_buffers; i++)
        for (int k = 0; k < m->buffers[i]->params.n; k++) {
            struct adapter x = {.s = m->buffers[i], .a = &m->buffers[i]->params.v[k]};
            char name[96];

            if (!is_half(x.a, 'A'))
                continue;
            x.b = x.a + 1;
            assert_true(is_half(x.b, 'B'));
            snprintf(name, sizeof name, "%.*s.weight", (int)(strstr(x.a->name, ".lora_A") - x.a->name), x.a->name);
            x.w = named(plain, name, &x.of);
            x.va = x.s->weights + x.a->at;
            x.vb = x.s->weights + x.b->at;
            x.vw = x.of->weights + x.w->at;
            fn(kind, &x, lora_scale(&m->config));
            n++;
        }
    return n;
}

/* W += s B A */
static void merge(const char *kind, const struct adapter *x, double scale)
{
    int64_t out = x->w->shape[0], in = x->w->shape[1];

    (void)kind;
    assert_true(x->a->shape[0] == RANK && x->a->shape[1] == in && x->b->shape[0] == out && x->b->shape[1] == RANK);
    for (int64_t i = 0; i < out * in; i++)
        for (int64_t k = 0; k < RANK; k++)
            x->vw[i] += (float)(scale * (double)x->vb[i / in * RANK + k] * (double)x->va[k * in + i % in]);
}

/* dA = s B^T dW, dB = s dW A^T. */
static void has_the_weights_gradient(const char *kind, const struct adapter *x, double scale)
{
    int64_t out = x->w->shape[0], in = x->w->shape[1];
    const float *dw = x->of->grads + x->w->at;
    double *want = calloc((size_t)((out + in) * RANK), sizeof *want);

    assert_non_null(want);
    for (int64_t i = 0; i < out * in; i++)
        for (int64_t k = 0; k < RANK; k++)
            want[k * in + i % in] += scale * (double)x->vb[i / in * RANK + k] * (double)dw[i];
    close_to(kind, x->a->name, x->s->grads + x->a->at, want, x->a->n);
    memset(want, 0, x->b->n * sizeof *want);
    for (int64_t i = 0; i < out * in; i++)
        for (int64_t k = 0; k < RANK; k++)
            want[i / in * RANK + k] += scale * (double)x->va[k * in + i % in] * (double)dw[i];
    close_to(kind, x->b->name, x->s->grads + x->b->at, want, x->b->n);
    free(want);
}

static void like_merged(const struct kind *k, enum recompute recompute)
{
    struct model *m = opened(k, true, recompute), *plain = opened(k, false, recompute);
    double loss, want = loss_of(plain);

    loss = loss_of(m);
    if (loss != want)
        fail_msg("%s: a loss of %.9g with B 0, of %.9g without adapters", k->name, loss, want);
    stir(m);
    assert_true(each_adapter(m, plain, merge, k->name) > 0);
    loss = loss_of(m);
    want = loss_of(plain);
    if (!(fabs(loss - want) <= 2e-6 * want))
        fail_msg("%s: a loss of %.9g, merged of %.9g", k->name, loss, want);
    each_adapter(m, plain, has_the_weights_gradient, k->name);
    for (int i = 0; i < m->n_buffers; i++) /* and nothing else is trained */
        assert_true((m->buffers[i]->grads != NULL) == (m->buffers[i] == &m->adapters || m->buffers[i] == &m->expert_adapters));
    model_close(m);
    model_close(plain);
}

static void adapters_are_merged_weights(void **st)
{
    (void)st;
    for (int k = 0; k < KINDS; k++)
        for (int r = RECOMPUTE_NONE; r <= RECOMPUTE_SELECTIVE; r++)
            like_merged(&kinds[k], (enum recompute)r);
}

/* Along the gradient of p, g, the loss rises by its norm, as central differences say. */
static void rises_as_its_gradient(struct model *m, const struct param_buffer *s, const struct param *p, const float *g,
                                  const char *kind)
{
    float *w = s->weights + p->at, *was = malloc(p->n * sizeof *was);
    double norm = 0, loss[2], slope, rise = 0.02;

    assert_non_null(was);
    memcpy(was, w, p->n * sizeof *was);
    for (size_t i = 0; i < p->n; i++)
        norm += (double)g[i] * (double)g[i];
    norm = sqrt(norm);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < p->n; i++)
            w[i] = was[i] + (float)((side ? 1 : -1) * rise / (norm * norm) * (double)g[i]);
        loss[side] = loss_of(m);
    }
    slope = (loss[1] - loss[0]) / (2 * rise) * norm;
    memcpy(w, was, p->n * sizeof *was);
    free(was);
    if (!(fabs(slope - norm) <= 5e-3 * norm))
        fail_msg("%s, %s: along its gradient of %.6g the loss rises by %.6g", kind, p->name, norm, slope);
}

static void gradients_are_slopes(void **st)
{
    (void)st;
    for (int k = 0; k < KINDS; k++) {
        struct model *m;

        if (kinds[k].jumps)
            continue;
        m = opened(&kinds[k], true, RECOMPUTE_NONE);
        stir(m);
        for (int i = 0; i < m->n_buffers; i++) {
            const struct param_buffer *s = m->buffers[i];
            float *grads;

            if (!s->trained)
                continue;
            grads = malloc(s->params.elements * sizeof *grads);
            assert_non_null(grads);
            loss_of(m);
            memcpy(grads, s->grads, s->params.elements * sizeof *grads);
            for (int j = 0; j < s->params.n; j++)
                rises_as_its_gradient(m, s, &s->params.v[j], grads + s->params.v[j].at, kinds[k].name);
            free(grads);
        }
        model_close(m);
    }
}

/* The adapters' gradients, one after the other, with products of weights in FP8 or all in bf16; how many. */
static size_t gradients_in(const struct kind *k, int format, bool tensorwise, float *to)
{
    struct model *m = opened_as(k, true, (struct model_run){
        .dt = DTYPE_BF16,
        .fp8 = {.format = format, .recipe = tensorwise ? FP8_TENSORWISE : FP8_DELAYED, .history = 1},
    });
    size_t n = 0;

    stir(m);
    loss_of(m);
    if (m->fp8 && !tensorwise) { /* by the scales of this step once more */
        OK(model_fp8_amax(m, &e));
        OK(model_fp8_end(m, &e));
        model_fp8_begin(m, false);
        loss_of(m);
    }
    for (int i = 0; i < m->n_buffers; i++)
        for (int j = 0; m->buffers[i]->trained && j < m->buffers[i]->params.n; j++) {
            const struct param *p = &m->buffers[i]->params.v[j];

            assert_true(n + p->n <= GRADIENTS);
            memcpy(to + n, m->buffers[i]->grads + p->at, p->n * sizeof *to);
            n += p->n;
        }
    model_close(m);
    return n;
}

/* How far those in FP8 are from those in bf16, as a share of these. */
static double fp8_off(const struct kind *k, int format, bool tensorwise)
{
    static float want[GRADIENTS], got[GRADIENTS];
    double off = 0, norm = 0;
    size_t n = gradients_in(k, MODEL_FP8_NONE, false, want);

    assert_int_equal(gradients_in(k, format, tensorwise, got), n);
    for (size_t i = 0; i < n; i++) {
        off += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
        norm += (double)want[i] * (double)want[i];
    }
    return sqrt(off / norm);
}

/* Gradients of adapters are those in bf16 but for the rounding to FP8 of what they come through. */
static void fp8_is_near(void **st)
{
    (void)st;
    for (int k = 0; k < KINDS; k++)
        for (int way = 0; way < 3 && !kinds[k].jumps && !kinds[k].config.mtp_layers; way++) {
            int format = way ? MODEL_FP8_HYBRID : MODEL_FP8_E4M3;
            struct kind calm = kinds[k];
            double off;

            calm.config.init_std = 0.05;
            off = fp8_off(&calm, format, way == 2);
            if (!(off > 0 && off <= 0.15))
                fail_msg("%s: off by %g", kinds[k].name, off);
        }
}

static int start(void **st)
{
    (void)st;
    for (int i = 0; i < B * T; i++) {
        tokens[i] = (i * 7 + i / 5) % VOCAB;
        targets[i] = i % 11 == 3 ? -1 : (i * 5 + 3) % VOCAB;
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
        cmocka_unit_test(adapters_are_merged_weights),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(fp8_is_near),
    };

    return cmocka_run_group_tests(tests, start, end);
}
