#include "tests/steps.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

/* The same million numbers again and again. */
static int put_quick(struct device *dev, const struct param_buffer *t, struct err *e)
{
    enum { N = 1 << 20 };
    size_t all = t->memory.weights / sizeof(float);
    float *host = malloc(N * sizeof *host);
    int rc = host ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    for (int i = 0; rc == 0 && i < N; i += 2) {
        uint32_t w[4];
        double z[2];
        rng_philox(3, (uint64_t)i, 0, w);
        rng_normal2(w[0], w[1], z);
        host[i] = 0.02f * (float)z[0];
        host[i + 1] = 0.02f * (float)z[1];
    }
    if (rc == 0)
        rc = device_put(dev, t->weights, host, (all < N ? all : N) * sizeof *host, e);
    for (size_t n, i = N; rc == 0 && i < all; i += n) { /* twice as many each time */
        n = all - i < i ? all - i : i;
        rc = device_copy(dev, t->weights + i, t->weights, n * sizeof *host, e);
    }
    free(host);
    return rc;
}

static int put_weights(struct device *dev, const struct param_buffer *t, struct err *e)
{
    float *host = malloc(t->memory.weights);
    int rc = host ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0) {
        params_fill(&t->params, 1234, host);
        rc = device_put(dev, t->weights, host, t->memory.weights, e);
    }
    free(host);
    return rc;
}

enum { BLOCK = 65536 }; /* of the norm */
static int64_t blocks_of(const struct param_buffer *t)
{
    return ((int64_t)t->params.elements + BLOCK - 1) / BLOCK;
}
static int64_t blocks_of_all(const struct model *m)
{
    int64_t n = 0;

    for (int i = 0; i < MODEL_BUFFERS && m->buffers[i]; i++)
        n += blocks_of(m->buffers[i]);
    return n;
}

int steps_open(struct train_steps *s, struct device *dev, struct model_config config, const struct model_run *run, bool quick,
               struct err *e)
{
    size_t n = (size_t)(run->b * run->t) * STEPS_MICRO_BATCHES;

    *s = (struct train_steps){.dev = dev, .micro_batches = 1};
    TRY(model_config_check(&config, 128, e));
    TRY(model_open(&s->model, dev, &config, NULL, run, e));
    for (int i = 0; i < MODEL_BUFFERS && s->model->buffers[i]; i++) {
        const struct param_buffer *t = s->model->buffers[i];

        TRY(device_alloc(dev, (void **)&s->moments[i].exp_avg, t->memory.weights, e));
        TRY(device_alloc(dev, (void **)&s->moments[i].exp_avg_sq, t->memory.weights, e));
        TRY(device_zero(dev, s->moments[i].exp_avg, t->memory.weights, e));
        TRY(device_zero(dev, s->moments[i].exp_avg_sq, t->memory.weights, e));
        TRY((quick ? put_quick : put_weights)(dev, t, e));
    }
    TRY(device_alloc(dev, (void **)&s->sumsq, (size_t)blocks_of_all(s->model) * sizeof *s->sumsq, e));
    TRY(device_alloc(dev, (void **)&s->clip, sizeof *s->clip, e));
    TRY(device_alloc(dev, (void **)&s->loss, sizeof *s->loss, e));
    s->tokens = malloc(n * sizeof *s->tokens);
    s->targets = malloc(n * sizeof *s->targets);
    if (!s->tokens || !s->targets)
        return err_set(e, ERR_NOMEM, "out of memory");
    return model_weights_changed(s->model, e);
}

/* Sequences that can be learnt: each token follows from the one before, with some noise.  Of micro-batch k of the step. */
static void fill(struct train_steps *s, int k)
{
    int64_t vocab = s->model->whole.vocab, n = s->model->b * s->model->t;
    int32_t *tokens = s->tokens + k * n, *targets = s->targets + k * n;
    uint32_t w[4];
    int64_t x = 0;

    for (int64_t i = 0; i < n; i++) {
        rng_philox(7, (uint64_t)(s->step * s->micro_batches + k), (uint64_t)i, w);
        x = i % s->model->t == 0 || w[0] % 8 == 0 ? (int64_t)(w[1] % (uint32_t)vocab) : (5 * x + 1) % vocab;
        tokens[i] = (int32_t)x;
        if (i > 0)
            targets[i - 1] = tokens[i];
    }
    for (int64_t i = s->model->t - 1; i < n; i += s->model->t)
        targets[i] = -1;
}

/* Clipping by the norm of all gradients, then AdamW. */
static int update(struct train_steps *s, struct err *e)
{
    const struct model *m = s->model;
    const struct device_ops *ops = s->dev->ops;
    int64_t all = blocks_of_all(m), at = 0;

    TRY(device_zero(s->dev, s->sumsq, (size_t)all * sizeof *s->sumsq, e));
    for (int i = 0; i < MODEL_BUFFERS && m->buffers[i]; at += blocks_of(m->buffers[i++]))
        TRY(ops->vec_sumsq(s->dev, DTYPE_F32, s->sumsq + at, BLOCK, m->buffers[i]->grads,
                           (int64_t)m->buffers[i]->params.elements, e));
    TRY(ops->clip_scale(s->dev, s->clip, s->sumsq, all, 1, e));
    s->step++;
    for (int i = 0; i < MODEL_BUFFERS && m->buffers[i]; i++) {
        const struct param_buffer *t = m->buffers[i];

        for (int k = 0; k < t->params.n; k++) {
            const struct param *p = &t->params.v[k];
            struct update a = {
                .step = s->step, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = param_decays(p) ? 0.1 : 0,
                .grad_scale = s->clip, .kind = UPDATE_ADAMW,
            };

            TRY(ops->update(s->dev, &a, t->weights + p->at, s->moments[i].exp_avg + p->at, s->moments[i].exp_avg_sq + p->at,
                           t->grads + p->at, t->low ? t->low + p->at : NULL, (int64_t)p->n, e));
        }
    }
    return 0;
}

/* Forward and backward of micro-batch k. */
static int micro_batch(struct train_steps *s, int k, double rows, struct err *e)
{
    struct model *m = s->model;
    int64_t n = m->b * m->t;
    struct model_dropout drop = {11, {(uint64_t)s->step, (uint64_t)(k * m->b)}};
    struct model_batch batch = {.tokens = s->tokens + k * n, .targets = s->targets + k * n, .drop = &drop,
                                .grad_scale = (float)(1 / rows)};

    fill(s, k);
    model_backward_begin(m, k, k + 1);
    if (s->graph.model)
        return model_graph_run(&s->graph, &batch, k > 0, e);
    model_fp8_begin(m, k > 0);
    TRY(model_take(m, &batch, e));
    TRY(model_forward(m, &batch, s->loss, e));
    return model_backward(m, &batch, e);
}

int steps_one(struct train_steps *s, double *loss, double *norm, struct err *e)
{
    struct model *m = s->model;
    double rows = (double)(m->b * m->t);

    for (int k = 0; k < s->micro_batches; k++)
        TRY(micro_batch(s, k, rows * s->micro_batches, e));
    if (m->fp8 && m->run.fp8.recipe == FP8_DELAYED) {
        TRY(model_fp8_amax(m, e));
        TRY(model_fp8_end(m, e));
    }
    TRY(update(s, e));
    TRY(device_get(s->dev, loss, s->loss, sizeof *loss, e)); /* tokens and targets are free then */
    TRY(device_get(s->dev, norm, s->sumsq, sizeof *norm, e));
    *loss /= rows;
    *norm = sqrt(*norm);
    return 0;
}

void steps_close(struct train_steps *s)
{
    if (!s->dev)
        return;
    for (int i = 0; i < MODEL_BUFFERS; i++) {
        device_free(s->dev, s->moments[i].exp_avg);
        device_free(s->dev, s->moments[i].exp_avg_sq);
    }
    model_graph_close(&s->graph);
    device_free(s->dev, s->sumsq);
    device_free(s->dev, s->clip);
    device_free(s->dev, s->loss);
    model_close(s->model);
    free(s->tokens);
    free(s->targets);
}
