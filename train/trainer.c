#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "train/evaluate.h"

const char *const train_phase_name[PHASES] = {"data", "forward", "backward", "reduce", "optimizer"};

static struct model_run config_run(const struct train_config *c)
{
    return (struct model_run){
        .dt = c->bf16 ? DTYPE_BF16 : DTYPE_F32, .use = MODEL_TRAIN, .b = c->micro_batch, .t = c->model.seq,
        .recompute = (enum recompute)c->recompute, .block = c->recompute_method == 1, .layers = c->recompute_layers,
    };
}

int trainer_plan(const struct train_config *c, struct train_memory *m, struct err *e)
{
    const struct model_run run = config_run(c);

    TRY(model_plan(&m->model, &c->model, &run, e));
    if (c->deterministic)
        m->model.grads += (size_t)data_parallel_levels(c->micro_batches) * m->model.weights;
    m->optimizer = 2 * m->model.weights;
    m->total = m->model.weights + m->model.low + m->model.grads + m->model.activations + m->model.tables + m->optimizer;
    return 0;
}

/* ---- starting point ---- */

static int same_model(const struct model_config *a, const struct model_config *b, const char *path, struct err *e)
{
    const struct model_field *f = model_config_differs(a, b);
    char have[64], want[64], flag[64];

    if (!f)
        return 0;
    snprintf(flag, sizeof flag, "%s", f->key);
    for (char *c = flag; *c; c++)
        if (*c == '_')
            *c = '-';
    return err_set(e, ERR_ARG, "%s: its --%s is %s, not %s", path, flag, model_field_text(f, a, have, sizeof have),
                   model_field_text(f, b, want, sizeof want));
}

/* Says what is not as it was when the checkpoint was written. */
static void compare_args(const struct trainer *t, const struct checkpoint_info *info)
{
    static const char *const may_differ[] = {"save", "load", "log-file", "log-interval", "ckpt-step", "exit-interval"};

    for (int i = 0; i < t->n_args; i++) {
        const struct checkpoint_arg *now = &t->args[i];
        bool skip = false;

        for (size_t k = 0; k < sizeof may_differ / sizeof *may_differ; k++)
            skip |= strcmp(now->name, may_differ[k]) == 0;
        for (int j = 0; !skip && j < info->n_args; j++)
            if (strcmp(now->name, info->args[j].name) == 0 && strcmp(now->text, info->args[j].text) != 0)
                log_msg(LOG_WARN, "--%s is %s now; the checkpoint was made with %s", now->name, now->text,
                        info->args[j].text);
    }
}

static int load_from(struct trainer *t, const struct checkpoint *ck, bool finetune, struct err *e)
{
    const struct checkpoint_info *info = checkpoint_info(ck);
    const struct params *p = &t->model->params;
    /* An imported one has no moments: it is a beginning. */
    bool moments = !finetune && !t->config->no_load_optim && (info->iteration || checkpoint_has(ck, CHECKPOINT_EXP_AVG));

    TRY(same_model(&info->model, &t->config->model, checkpoint_path(ck), e));
    TRY(checkpoint_load(ck, CHECKPOINT_WEIGHTS, p, t->model->weights, e));
    if (moments) {
        TRY(checkpoint_load(ck, CHECKPOINT_EXP_AVG, p, t->exp_avg, e));
        TRY(checkpoint_load(ck, CHECKPOINT_EXP_AVG_SQ, p, t->exp_avg_sq, e));
    }
    if (!finetune) {
        compare_args(t, info);
        t->step = info->iteration;
        t->consumed = info->consumed;
        t->saved_step = info->iteration;
    }
    log_msg(LOG_INFO, "loaded %s%s", checkpoint_path(ck), finetune ? " (weights only, from step 0)" : "");
    return 0;
}

/* --save goes before --load: a job that is started again goes on where it was. */
static int start_point(struct trainer *t, struct err *e)
{
    const struct train_config *c = t->config;
    struct checkpoint *ck = NULL;
    bool own = false;
    int rc;

    if (c->save && c->ckpt_step < 0) {
        TRY(checkpoint_open(&ck, c->save, CHECKPOINT_LAST, e));
        own = ck != NULL;
    }
    if (!ck && c->load) {
        TRY(checkpoint_open(&ck, c->load, c->ckpt_step, e));
        if (!ck)
            return err_set(e, ERR_IO, "--load: no checkpoint in '%s'", c->load);
    }
    if (ck) {
        rc = load_from(t, ck, c->finetune && !own, e);
        checkpoint_close(ck);
    } else {
        params_fill(&t->model->params, (uint64_t)c->seed, t->model->weights);
        rc = 0;
    }
    return rc < 0 ? rc : model_weights_changed(t->model, e);
}

static int open_memory(struct trainer *t, struct comm *group, struct err *e)
{
    const struct train_config *c = t->config;
    const struct model_run run = config_run(c);
    size_t ids = (size_t)(c->micro_batch * c->model.seq) * sizeof *t->tokens;

    TRY(model_open(&t->model, t->dev, &c->model, &run, e));
    TRY(device_alloc(t->dev, (void **)&t->exp_avg, t->model->memory.weights, e));
    TRY(device_alloc(t->dev, (void **)&t->exp_avg_sq, t->model->memory.weights, e));
    TRY(device_zero(t->dev, t->exp_avg, t->model->memory.weights, e));
    TRY(device_zero(t->dev, t->exp_avg_sq, t->model->memory.weights, e));
    TRY(device_alloc(t->dev, (void **)&t->sumsq, sizeof *t->sumsq, e));
    TRY(device_alloc(t->dev, (void **)&t->clip, sizeof *t->clip, e));
    t->tokens = malloc(ids);
    t->targets = malloc(ids);
    t->losses = malloc((size_t)(c->micro_batches * group->size) * sizeof *t->losses);
    if (!t->tokens || !t->targets || !t->losses)
        return err_set(e, ERR_NOMEM, "out of memory");
    return data_parallel_open(&t->ranks, group, t->dev, t->model->params.elements, c->micro_batches, c->deterministic,
                              e);
}

int trainer_open(struct trainer **out, struct train_config *c, struct device *dev, struct comm *group, struct err *e)
{
    struct trainer *t = calloc(1, sizeof *t);
    int64_t wanted[GPT_SPLITS];
    int rc;

    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory");
    t->config = c;
    t->dev = dev;
    t->saved_step = -1;
    t->schedule = schedule_of(c);
    data_wanted(c, wanted);
    rc = train_config_args(c, &t->arena, &t->args, &t->n_args, e);
    if (rc == 0)
        rc = data_open(&t->data, c, wanted, e);
    if (rc == 0)
        rc = open_memory(t, group, e);
    if (rc == 0)
        rc = start_point(t, e);
    if (rc == 0)
        rc = data_parallel_same(group, t->step, "the step to go on from", e);
    if (rc < 0) {
        trainer_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

void trainer_close(struct trainer *t)
{
    if (!t)
        return;
    device_free(t->dev, t->exp_avg);
    device_free(t->dev, t->exp_avg_sq);
    device_free(t->dev, t->sumsq);
    device_free(t->dev, t->clip);
    model_close(t->model);
    data_close(t->data);
    data_parallel_close(&t->ranks);
    free(t->tokens);
    free(t->targets);
    free(t->losses);
    arena_free(&t->arena);
    free(t);
}

/* ---- a step ---- */

/* Adds the seconds since *at to phase and moves *at on. */
static void lap(struct train_step *s, enum train_phase phase, double *at)
{
    double now = log_seconds();

    s->phase[phase] += now - *at;
    *at = now;
}

/* The i-th micro-batch of this rank: forward and backward. */
static int micro_step(struct trainer *t, int64_t i, struct train_step *s, double *at, struct err *e)
{
    const struct train_config *c = t->config;
    int64_t k = t->ranks.group->rank * c->micro_batches + i; /* within the step */
    struct model_dropout drop = {(uint64_t)c->seed, (uint64_t)t->step, k * c->micro_batch};
    float scale = (float)(1.0 / (double)(c->global_batch * c->model.seq));

    TRY(data_batch(t->data, GPT_TRAIN, t->consumed + k * c->micro_batch, c->micro_batch, t->tokens, t->targets, e));
    lap(s, PHASE_DATA, at);
    TRY(model_forward(t->model, t->tokens, t->targets, &drop, scale, &t->losses[k], e));
    lap(s, PHASE_FORWARD, at);
    TRY(model_backward(t->model, &drop, data_parallel_first(&t->ranks, i), e));
    TRY(data_parallel_add(&t->ranks, t->model->grads, i, c->micro_batches, e));
    lap(s, PHASE_BACKWARD, at);
    return 0;
}

/* The loss of the step from those of the micro-batches, added in their order whoever had them. */
static int step_loss(struct trainer *t, double *loss, struct err *e)
{
    const struct train_config *c = t->config;
    int64_t n = c->micro_batches * t->ranks.group->size;

    TRY(data_parallel_gather(t->ranks.group, t->losses, n, e));
    *loss = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t first = t->consumed + k * c->micro_batch;

        if (!isfinite(t->losses[k]))
            return err_set(e, ERR_LIMIT,
                           "step %" PRId64 ": the loss of training samples %" PRId64 "..%" PRId64
                           " is not finite; stopped before the update", t->step + 1, first,
                           first + c->micro_batch - 1);
        *loss += t->losses[k];
    }
    *loss /= (double)(c->global_batch * c->model.seq);
    return 0;
}

/* Clips and updates.  Weight decay differs by tensor, so each has a call of its own. */
static int update(struct trainer *t, struct train_step *s, struct err *e)
{
    const struct train_config *c = t->config;
    const struct device_ops *ops = t->dev->ops;
    struct model *m = t->model;
    double sumsq;

    TRY(device_zero(t->dev, t->sumsq, sizeof *t->sumsq, e));
    TRY(ops->vec_sumsq(t->dev, DTYPE_F32, t->sumsq, m->grads, (int64_t)m->params.elements, e));
    TRY(ops->clip_scale(t->dev, t->clip, t->sumsq, (float)c->clip_grad, e));
    TRY(device_get(t->dev, &sumsq, t->sumsq, sizeof sumsq, e));
    s->grad_norm = sqrt(sumsq);
    if (!isfinite(s->grad_norm))
        return err_set(e, ERR_LIMIT,
                       "step %" PRId64 ": the gradient of training samples %" PRId64 "..%" PRId64
                       " is not finite; stopped before the update", t->step + 1, t->consumed,
                       t->consumed + c->global_batch - 1);
    for (int i = 0; i < m->params.n; i++) {
        const struct param *p = &m->params.v[i];
        struct adamw a = {
            .step = t->step + 1, .lr = s->lr, .beta1 = c->beta1, .beta2 = c->beta2, .eps = c->eps,
            .weight_decay = param_decays(p) ? c->weight_decay : 0, .grad_scale = t->clip,
        };

        TRY(ops->adamw(t->dev, &a, m->weights + p->at, t->exp_avg + p->at, t->exp_avg_sq + p->at,
                       m->grads + p->at, m->low ? m->low + p->at : NULL, (int64_t)p->n, e));
    }
    return 0;
}

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int one_step(struct trainer *t, struct train_step *s, struct err *e)
{
    const struct train_config *c = t->config;
    double start = log_seconds(), cpu = cpu_seconds(), at = start;

    memset(s, 0, sizeof *s);
    s->step = t->step + 1;
    s->lr = schedule_lr(&t->schedule, t->consumed);
    s->valid_loss = NAN;
    memset(t->losses, 0, (size_t)(c->micro_batches * t->ranks.group->size) * sizeof *t->losses);
    for (int64_t i = 0; i < c->micro_batches; i++)
        TRY(micro_step(t, i, s, &at, e));
    TRY(step_loss(t, &s->loss, e));
    TRY(data_parallel_reduce(&t->ranks, t->model->grads, e));
    lap(s, PHASE_REDUCE, &at);
    TRY(update(t, s, e));
    lap(s, PHASE_OPTIMIZER, &at);
    s->seconds = at - start;
    s->cpu_seconds = cpu_seconds() - cpu;
    t->step++;
    t->consumed += c->global_batch;
    return 0;
}

/* ---- the loop ---- */

static int save(struct trainer *t, struct err *e)
{
    struct checkpoint_info info = {t->step, t->consumed, t->config->model, t->args, t->n_args};
    const float *const slabs[CHECKPOINT_PARTS] = {t->model->weights, t->exp_avg, t->exp_avg_sq};
    int rc = 0;

    if (!t->config->save || t->saved_step == t->step)
        return 0;
    if (t->ranks.group->rank == 0)
        rc = checkpoint_save(t->config->save, &info, &t->model->params, slabs, e);
    TRY(data_parallel_of(t->ranks.group, 0, rc, e));
    t->saved_step = t->step;
    log_msg(LOG_INFO, "saved %s/iter_%07" PRId64, t->config->save, t->step);
    return 0;
}

/* Evaluation number k takes the k-th stretch of the valid split, as Megatron does. */
static int evaluate_valid(struct trainer *t, struct train_step *s, struct err *e)
{
    const struct train_config *c = t->config;
    int64_t n = c->eval_iters * c->global_batch;

    if (!c->eval_interval || !n || t->step % c->eval_interval || data_size(t->data, GPT_VALID) == 0)
        return 0;
    return evaluate(t->model, t->data, t->ranks.group, GPT_VALID, (t->step / c->eval_interval - 1) * n, n, &s->valid_loss, e);
}

/* A signal or the clock of any rank ends the run of all, after the same step. */
static int wants_to_end(struct trainer *t, bool stop, double start, enum train_end *end, struct err *e)
{
    int64_t minutes = t->config->exit_minutes;
    bool late = log_seconds() - start > 60.0 * (double)minutes;

    TRY(data_parallel_any(t->ranks.group, &stop, e));
    if (minutes)
        TRY(data_parallel_any(t->ranks.group, &late, e));
    *end = stop ? TRAIN_SIGNAL : minutes && late ? TRAIN_EXIT : TRAIN_ALL_DONE;
    return 0;
}

int trainer_run(struct trainer *t, const volatile sig_atomic_t *stop, train_step_fn *report, void *arg,
                enum train_end *end, struct err *e)
{
    const struct train_config *c = t->config;
    double start = log_seconds();
    struct train_step s;
    struct err se;

    *end = TRAIN_ALL_DONE;
    while (t->step < c->iters) {
        TRY(wants_to_end(t, *stop, start, end, e));
        if (*end != TRAIN_ALL_DONE)
            break;
        TRY(one_step(t, &s, e));
        TRY(evaluate_valid(t, &s, e));
        if (report)
            report(arg, &s);
        if (c->save_interval && t->step % c->save_interval == 0 && t->step < c->iters && save(t, &se) < 0 &&
            t->ranks.group->rank == 0)
            log_msg(LOG_ERROR, "no checkpoint of step %" PRId64 ": %s; training goes on", t->step, se.msg);
        if (t->step < c->iters && c->exit_interval && t->step % c->exit_interval == 0) {
            *end = TRAIN_EXIT;
            break;
        }
    }
    return save(t, e);
}
