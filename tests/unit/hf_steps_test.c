/* Ten steps of models of transformers (tests/record/hf_steps.py), imported: the same losses and gradient norms. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/recorded.h"
#include "tests/temp_folder.h"
#include "train/evaluate.h"
#include "train/hf.h"

enum { B = 2, T = 16, STEPS = 10 };

static struct device *dev;
static struct recorded want;
static struct err e;

static void ok(int rc)
{
    if (rc < 0)
        fail_msg("%s", e.msg);
}

static int start(void **state)
{
    log_init("hf_steps_test", LOG_ERROR);
    if (make_dir(state) < 0 || device_open(&dev, "cpu", 2, &e) < 0 ||
        recorded_open(&want, "tests/data/train/hf/steps.safetensors", &e) < 0)
        return fprintf(stderr, "%s\n", e.msg), -1;
    return 0;
}

static int end(void **state)
{
    device_close(dev);
    recorded_close(&want);
    return remove_dir(state);
}

/* The buffers of a model with their moments. */
struct trained {
    struct model *m;
    float *mom[MODEL_BUFFERS], *var[MODEL_BUFFERS];
    float *clip;
    double *sumsq;
};

static void open_model(struct trained *t, const char *name)
{
    char from[128], store[128];
    struct checkpoint *ck;

    snprintf(from, sizeof from, "tests/data/train/hf/%s", name);
    snprintf(store, sizeof store, "%s/%s", dir, name);
    ok(hf_import(from, store, 0, 1, &e));
    ok(checkpoint_open(&ck, store, 0, &e));
    ok(model_restore(&t->m, ck, dev, &(struct model_run){.use = MODEL_TRAIN, .b = B, .t = T}, &e));
    checkpoint_close(ck);
    for (int i = 0; i < t->m->n_buffers; i++) {
        t->mom[i] = calloc(t->m->buffers[i]->params.elements, sizeof *t->mom[i]);
        t->var[i] = calloc(t->m->buffers[i]->params.elements, sizeof *t->var[i]);
    }
    ok(device_alloc(dev, (void **)&t->clip, sizeof *t->clip, &e));
    ok(device_alloc(dev, (void **)&t->sumsq, sizeof *t->sumsq, &e));
}

static void close_model(struct trained *t)
{
    for (int i = 0; i < t->m->n_buffers; i++) {
        free(t->mom[i]);
        free(t->var[i]);
    }
    device_free(dev, t->clip);
    device_free(dev, t->sumsq);
    model_close(t->m);
}

static void update(const struct trained *t, int buffer, int step)
{
    const struct param_buffer *s = t->m->buffers[buffer];

    for (int k = 0; k < s->params.n; k++) {
        const struct param *p = &s->params.v[k];
        struct update a = {
            .step = step, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-5, .weight_decay = param_decays(p) ? 0.1 : 0,
            .grad_scale = t->clip, .kind = UPDATE_ADAMW,
        };

        ok(dev->ops->update(dev, &a, s->weights + p->at, t->mom[buffer] + p->at, t->var[buffer] + p->at, s->grads + p->at, NULL,
                            (int64_t)p->n, &e));
    }
}

/* Loss and norm of a step. */
static void step(struct trained *t, int number, double got[2])
{
    const int32_t *ids = (const int32_t *)recorded_find(&want, "", "ids", STEPS * B * (T + 1)) + number * B * (T + 1);
    int32_t tokens[B * T], targets[B * T];
    struct model_batch batch = {.tokens = tokens, .targets = targets, .grad_scale = 1.0f / (B * T)};

    for (int i = 0; i < B * T; i++) {
        tokens[i] = ids[i / T * (T + 1) + i % T];
        targets[i] = ids[i / T * (T + 1) + i % T + 1];
    }
    ok(model_take(t->m, &batch, &e));
    ok(model_forward(t->m, &batch, &got[0], &e));
    model_backward_begin(t->m, 0, 1);
    ok(model_backward(t->m, &batch, &e));
    *t->sumsq = 0;
    for (int i = 0; i < t->m->n_buffers; i++) {
        int64_t n = (int64_t)t->m->buffers[i]->params.elements;

        ok(dev->ops->vec_sumsq(dev, DTYPE_F32, t->sumsq, n, t->m->buffers[i]->grads, n, &e));
    }
    ok(dev->ops->clip_scale(dev, t->clip, t->sumsq, 1, 0.5f, &e));
    for (int i = 0; i < t->m->n_buffers; i++)
        update(t, i, number + 1);
    got[0] /= B * T;
    got[1] = sqrt(*t->sumsq);
}

static void ten_steps(const char *name)
{
    const float *losses = recorded_find(&want, name, ".losses", STEPS), *norms = recorded_find(&want, name, ".norms", STEPS);
    struct trained t = {0};
    double got[2], worst[2] = {0};

    open_model(&t, name);
    for (int i = 0; i < STEPS; i++) {
        step(&t, i, got);
        worst[0] = fmax(worst[0], fabs(got[0] / losses[i] - 1));
        worst[1] = fmax(worst[1], fabs(got[1] / norms[i] - 1));
        if (!(fabs(got[0] / losses[i] - 1) < 1e-4 && fabs(got[1] / norms[i] - 1) < 1e-3))
            fail_msg("%s, step %d: loss %.8g and norm %.8g, not %.8g and %.8g", name, i, got[0], got[1], losses[i], norms[i]);
    }
    if (getenv("VERBOSE"))
        printf("%s: losses within %.2g, norms within %.2g\n", name, worst[0], worst[1]);
    close_model(&t);
}

static void losses_are_transformers(void **state)
{
    static const char *const names[] = {"olmo2", "gemma3_text", "qwen3_moe", "glm4_moe", "deepseek_v3", "gpt_oss", "nanochat"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ten_steps(names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(losses_are_transformers)};

    return cmocka_run_group_tests_name("hf_steps", tests, start, end);
}
