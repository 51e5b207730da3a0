#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/log.h"
#include "kernels/cuda.h"
#include "train/expert_bias.h"
#include "train/fp8.h"
#include "train/layer_attention.h"
#include "train/lora.h"
#include "train/qk_clip.h"

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
    static const char *const may_differ[] = {"save", "load", "log-file", "log-interval", "ckpt-step", "exit-interval",
                                             "exit-duration-in-mins", "tensorboard-dir", "async-save", "trace",
                                             "cuda-graph-impl", "keep-last", "keep-every"};

    for (int i = 0; i < t->n_args; i++) {
        const struct checkpoint_arg *now = &t->args[i];
        bool skip = now->division;

        for (size_t k = 0; k < sizeof may_differ / sizeof *may_differ; k++)
            skip |= strcmp(now->name, may_differ[k]) == 0;
        for (int j = 0; !skip && j < info->n_args; j++)
            if (strcmp(now->name, info->args[j].name) == 0 && strcmp(now->text, info->args[j].text) != 0)
                log_msg(LOG_WARN, "--%s is %s now; the checkpoint was made with %s", now->name, now->text,
                        info->args[j].text);
    }
}

/* with_optimizer: what it keeps, too, where a run is gone on with. */
static int load_from(struct trainer *t, const struct checkpoint *ck, bool weights_only, bool with_optimizer, struct err *e)
{
    const struct checkpoint_info *info = checkpoint_info(ck);
    /* New adapters begin to be trained. */
    bool finetune = weights_only || (t->config->model.lora_rank && !info->model.lora_rank);
    /* An imported one has none: it is a beginning. */
    bool state = !finetune && with_optimizer && info->iteration;

    TRY(lora_same(&info->model, &t->config->model, checkpoint_path(ck), e));
    TRY(same_model(&info->model, &t->config->model, checkpoint_path(ck), e));
    if (t->config->model.lora_rank && !info->model.lora_rank)
        TRY(optimizer_fill(&t->optimizer, (uint64_t)t->config->seed, e));
    TRY(optimizer_load(&t->optimizer, ck, state, e));
    for (int i = 0; i < info->n_args; i++) /* a model goes back to transformers as what it came from there */
        if (strcmp(info->args[i].name, MODEL_TYPE_ARG) == 0)
            TRY(train_config_keep(&t->args, &t->n_args, &info->args[i], &t->arena, e));
    for (int i = 0; i < t->n_parts; i++)
        TRY(expert_bias_load(t->parts[i].model, ck, e));
    if (!finetune)
        TRY(fp8_load(t->parts, t->n_parts, ck, train_config_fp8[t->config->fp8.format], e));
    t->step = finetune ? 0 : info->iteration;
    t->consumed = finetune ? 0 : info->consumed;
    t->updates = state ? info->updates : 0;
    t->saved_step = finetune ? -1 : info->iteration;
    t->guard = finetune ? (struct guard){0} : info->guard;
    history_free(&t->history);
    if (!finetune) {
        compare_args(t, info);
        if (info->history.n)
            TRY(history_read(&t->history, info->history, checkpoint_path(ck), e));
    }
    log_msg(LOG_INFO, "loaded %s%s", checkpoint_path(ck), finetune ? " (weights only, from step 0)" : "");
    return 0;
}

/* Who was killed between a checkpoint's name and the older one's end left one too many. */
static void thin(const struct trainer *t)
{
    const struct checkpoint_keep keep = {t->config->keep_last, t->config->keep_every};
    struct err e;

    if (t->layout.world->rank == 0 && checkpoint_thin(t->config->save, t->step, &keep, &e) < 0)
        log_msg(LOG_ERROR, "--keep-last: %s", e.msg);
}

/* --save goes before --load: a job that is started again goes on where it was. */
static int start_point(struct trainer *t, struct err *e)
{
    const struct train_config *c = t->config;
    struct checkpoint *ck = NULL;
    bool own = false;
    int rc;

    if (c->save && c->ckpt_step < 0) {
        TRY(checkpoint_open_all(&ck, t->layout.world, c->save, CHECKPOINT_LAST, e));
        own = ck != NULL;
    }
    if (!ck && c->load) {
        TRY(checkpoint_open_all(&ck, t->layout.world, c->load, c->ckpt_step, e));
        if (!ck)
            return err_set(e, ERR_IO, "--load: no checkpoint in '%s'", c->load);
    }
    if (ck) {
        rc = load_from(t, ck, c->finetune && !own, !c->no_load_optim, e);
        t->began = t->step;
        checkpoint_close(ck);
        if (rc == 0 && own)
            thin(t);
        return rc;
    }
    return optimizer_fill(&t->optimizer, (uint64_t)c->seed, e);
}

/* What this rank has is what it can save. */
static int open_saver(struct trainer *t, struct err *e)
{
    const struct train_config *c = t->config;
    const struct checkpoint_keep keep = {c->keep_last, c->keep_every};
    struct piece *v;
    int n, rc = optimizer_pieces(&t->optimizer, &v, &n, e);

    if (rc == 0)
        rc = expert_bias_pieces(t->parts, t->n_parts, c->offload, &v, &n, e);
    if (rc == 0)
        rc = fp8_pieces(t->parts, t->n_parts, &v, &n, e);
    if (rc == 0)
        rc = saver_open(&t->saver, t->layout.world, t->optimizer.state, c->save, &keep, v, n, c->async_save, e);
    free(v);
    return rc;
}

static int open_parts(struct trainer *t, struct err *e)
{
    const struct train_config *c = t->config;
    struct train_memory planned;
    struct model_part of;
    struct model_run run;

    TRY(trainer_plan_stage(c, t->layout.pipe->rank, &planned, e));
    TRY(model_pool_open(&t->pool, t->dev, &planned.model.pool, e));
    if (c->offload)
        TRY(device_open(&t->host, "cpu", 0, e));
    t->n_parts = (int)c->stages.chunks;
    t->parts = calloc((size_t)t->n_parts, sizeof *t->parts);
    if (!t->parts)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < t->n_parts; i++) {
        struct train_part *p = &t->parts[i];

        trainer_part(c, &t->layout, t->layout.pipe->rank, i, &of, &run);
        run.pool = &t->pool;
        TRY(model_open(&p->model, t->dev, &c->model, &of, &run, e));
    }
    t->dev->use = MEMORY_OPTIMIZER;
    return optimizer_open(&t->optimizer, t->dev, t->host, &c->optim, &t->layout, t->parts, t->n_parts, e);
}

/* Says once what a GPU does more slowly here than it could. */
static void tell_gpu(const struct trainer *t)
{
    const struct train_config *c = t->config;
    const struct cuda_backend *b;
    size_t cublaslt = 0, cudnn = 0;
    struct err e;

    if (t->dev->kind != DEVICE_CUDA || t->layout.world->rank > 0)
        return;
    if (cuda_backend_open(&b, &e) == 0)
        b->libraries(&cublaslt, &cudnn);
    if (!cublaslt)
        log_msg(LOG_WARN, "no cuBLASLt was found ($QUERN_CUDA_LIBRARIES names folders): products are by plain kernels, slowly");
    if (!cudnn && c->bf16)
        log_msg(LOG_WARN, "no cuDNN 9 was found ($QUERN_CUDA_LIBRARIES names folders): attention is slower than it could be");
    if (c->fp8.format && c->fp8.recipe == FP8_BLOCKWISE && !t->dev->fast_blocks)
        log_msg(LOG_WARN, "--fp8-recipe blockwise: slow here, for cuBLASLt has it on GPUs of 9.0 alone");
    if (c->optim.qk_clip.on)
        log_msg(LOG_INFO, "--qk-clip: attention forward by quern's own kernels, since cuDNN's graph gives no largest logits");
    if (layer_attention_own(&c->model))
        log_msg(LOG_INFO, "attention of %lld layers by quern's own kernels, since cuDNN's graph is causal and nothing else",
                (long long)layer_attention_own(&c->model));
}

static int open_memory(struct trainer *t, struct err *e)
{
    const struct train_config *c = t->config;

    TRY(open_parts(t, e));
    tell_gpu(t);
    t->dev->use = MEMORY_ACTIVATIONS;
    TRY(passes_open(&t->passes, &t->layout, t->parts, t->n_parts, t->data, e));
    t->passes.trace = t->trace;
    if (c->graphs != CONFIG_GRAPHS_NONE)
        passes_use_graphs(&t->passes, c->graphs == CONFIG_GRAPHS_LOCAL);
    for (int i = 0; i < t->n_parts; i++)
        t->parts[i].model->trace = t->trace;
    t->optimizer.state->use = MEMORY_SAVING;
    if (c->save)
        TRY(open_saver(t, e));
    t->dev->use = MEMORY_OTHER;
    t->valid = calloc((size_t)data_valid_sets(t->data), sizeof *t->valid);
    t->losses = malloc((size_t)(c->micro_batches * t->layout.data * t->passes.each) * sizeof *t->losses);
    return t->valid && t->losses ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

/* Before there are groups, so that all are watched. */
static int open_trace(struct trainer *t, struct comm *world, struct err *e)
{
    bool wanted = t->config->trace || trace_wanted();
    int rc = wanted ? trace_open(&t->trace, t->config->trace, world, e) : 0;

    if (t->config->trace)
        TRY(comm_agree(world, &rc, e, e));
    return rc;
}

/* What a checkpoint is to say of where its data came from. */
static int keep_ledgers(struct trainer *t, struct err *e)
{
    struct buf roots = {0};
    int rc = data_ledgers(t->config, &roots, e);

    if (rc == 0 && roots.n && buf_putc(&roots, '\0') < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    if (rc == 0 && roots.n)
        rc = train_config_keep(&t->args, &t->n_args, &(struct checkpoint_arg){.name = DATA_LEDGER_ARG, .text = roots.p},
                               &t->arena, e);
    buf_free(&roots);
    return rc;
}

int trainer_open(struct trainer **out, struct train_config *c, struct device *dev, struct comm *world, struct err *e)
{
    struct trainer *t = calloc(1, sizeof *t);
    int64_t wanted[GPT_SPLITS];
    int rc;

    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory");
    t->config = c;
    t->dev = dev;
    dev->deterministic = c->deterministic;
    t->saved_step = -1;
    t->schedule = t->decoupled = schedule_of(c);
    if (c->optim.decoupled_lr >= 0)
        t->decoupled.max_lr = c->optim.decoupled_lr;
    if (c->optim.decoupled_min_lr >= 0)
        t->decoupled.min_lr = c->optim.decoupled_min_lr;
    data_wanted(c, wanted);
    rc = open_trace(t, world, e);
    if (rc == 0)
        rc = layout_open(&t->layout, world, &c->layout, e);
    if (rc == 0)
        rc = train_config_args(c, &t->arena, &t->args, &t->n_args, e);
    if (rc == 0)
        rc = keep_ledgers(t, e);
    if (rc == 0)
        rc = data_describe(c, &t->of, e);
    if (rc == 0)
        rc = data_open(&t->data, c, wanted, e);
    if (rc == 0)
        rc = open_memory(t, e);
    if (rc == 0)
        rc = start_point(t, e);
    if (rc == 0)
        rc = data_parallel_same(world, t->step, "the step to go on from", e);
    if (rc < 0) {
        trainer_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

void trainer_close(struct trainer *t)
{
    struct err e;

    if (!t)
        return;
    saver_close(t->saver);
    crowd_close(t->crowd);
    free(t->valid);
    optimizer_close(&t->optimizer);
    passes_close(&t->passes);
    for (int i = 0; t->parts && i < t->n_parts; i++)
        model_close(t->parts[i].model);
    free(t->parts);
    model_pool_close(&t->pool);
    device_close(t->host);
    data_close(t->data);
    free(t->losses);
    history_free(&t->history);
    buf_free(&t->of);
    buf_free(&t->history_text);
    arena_free(&t->arena);
    layout_close(&t->layout);
    if (trace_close(t->trace, &e) < 0)
        log_msg(LOG_ERROR, "%s", e.msg);
    free(t);
}

/* ---- a step ---- */

/* Adds the seconds since *at to phase and moves *at on. */
static void lap(const struct trainer *t, struct train_step *s, enum train_phase phase, double *at)
{
    double now = log_seconds();

    trace_span(t->trace, TRACE_PHASES, train_phase_name[phase], -1, *at, now);
    s->phase[phase] += now - *at;
    *at = now;
}

static int update(struct trainer *t, const struct train_step *s, struct err *e)
{
    const struct train_config *c = t->config;
    const struct optim_step step = {
        .step = t->updates + 1, .lr = s->lr, .decoupled_lr = schedule_lr(&t->decoupled, t->consumed),
        .round_key = hash_mix64((uint64_t)c->seed + 1),
    };

    TRY(optimizer_update(&t->optimizer, &step, e));
    t->updates++;
    return 0;
}

/* Looks after the checkpoint that is being written, if one is: enum saver_state, of which FAILED leaves in
 * e why; < 0: the ranks are lost. */
static int save_progress(struct trainer *t, bool wait, struct err *e)
{
    int64_t step = 0;
    int rc = t->saver ? saver_done(t->saver, wait, &step, e) : SAVER_NOTHING;

    if (rc == SAVER_SAVED)
        log_msg(LOG_INFO, "saved %s/iter_%07" PRId64, t->config->save, step);
    if (rc == SAVER_FAILED) {
        err_wrap(e, "no checkpoint of step %" PRId64, step);
        if (t->saved_step == step)
            t->saved_step = -1;
    }
    return rc;
}

/* A checkpoint that could not be written is told, and training goes on: rc is save_progress's. */
static int go_on(const struct trainer *t, int rc, const struct err *e)
{
    if (rc == SAVER_FAILED && t->layout.world->rank == 0)
        log_msg(LOG_ERROR, "%s; training goes on", e->msg);
    return rc < 0 ? rc : 0;
}

/* Weights, moments and step of the last checkpoint; the samples go on behind the bad batch. */
static int roll_back(struct trainer *t, struct err *e)
{
    int64_t behind = t->consumed, step = t->step;
    struct checkpoint *ck;
    int rc;

    TRY(go_on(t, save_progress(t, true, e), e));
    TRY(checkpoint_open_all(&ck, t->layout.world, t->config->save, CHECKPOINT_LAST, e));
    if (!ck)
        return err_set(e, ERR_LIMIT, "no checkpoint to roll back to in '%s'", t->config->save);
    /* What this run has written is its own also under --no-load-optim. */
    rc = load_from(t, ck, false, !t->config->no_load_optim || checkpoint_info(ck)->iteration > t->began, e);
    checkpoint_close(ck);
    TRY(rc);
    TRY(data_parallel_same(t->layout.world, t->step, "the step to roll back to", e));
    t->consumed = behind;
    t->saved_step = -1; /* from here on another run */
    log_msg(LOG_WARN, "rolled back from step %" PRId64 " to %" PRId64, step, t->step);
    return 0;
}

/* The step counts, and its samples are consumed. */
static int count_step(struct trainer *t, const struct train_step *s, struct err *e)
{
    const struct history_entry one = {
        .step = s->step, .steps = 1, .sample = t->consumed, .batch = s->batch, .skipped = s->skipped,
    };

    t->step++;
    t->consumed += s->batch;
    return history_add(&t->history, &one, buf_span(&t->of), e);
}

/* Says what is wrong with which batch, and does what is to be done.  The step counts, its samples are
 * consumed. */
static int bad_step(struct trainer *t, struct train_step *s, enum verdict_of_step v, struct err *e)
{
    const struct train_config *c = t->config;
    int action = v == STEP_SPIKE ? c->spike_action : c->nan_action;
    bool loss = v == STEP_SPIKE ? s->loss > c->spike_factor * t->guard.loss : !isfinite(s->loss);
    char what[400];

    snprintf(what, sizeof what, "step %" PRId64 ": the %s of training samples %" PRId64 "..%" PRId64 " is %s%.6g%s", s->step,
             loss ? "loss" : "gradient norm", t->consumed, t->consumed + s->batch - 1, v == STEP_SPIKE ? "" : "not finite: ",
             loss ? s->loss : s->grad_norm, v == STEP_SPIKE ? ", a spike" : "");
    if (action == BAD_STOP)
        return err_set(e, ERR_LIMIT, "%s; stopped before the update", what);
    if (++t->bad >= c->max_bad_steps)
        return err_set(e, ERR_LIMIT, "%s; stopped: %" PRId64 " bad steps without a good one between", what, t->bad);
    log_msg(LOG_WARN, "%s; %s", what, action == BAD_SKIP ? "skipped" : "rolling back");
    if (s->step > t->bad_step)
        t->bad_step = s->step;
    s->skipped = true;
    TRY(count_step(t, s, e));
    if (action == BAD_SKIP)
        return 0;
    TRY(roll_back(t, e));
    s->back_to = t->step;
    return 0;
}

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int balance(struct trainer *t, struct train_step *s, struct err *e)
{
    const struct train_config *c = t->config;
    double sum = 0, one;

    s->balance = NAN;
    if (!model_aux_loss(&c->model))
        return 0;
    for (int i = 0; i < t->n_parts; i++) {
        TRY(model_unevenness(t->parts[i].model, &one, e));
        sum += one;
    }
    TRY(comm_all_reduce(t->layout.world, &sum, 1, COMM_F64, COMM_SUM, e));
    s->balance = sum / (double)((model_moe_layers(&c->model) + (model_mtp_moe(&c->model) ? c->model.mtp_layers : 0)) *
                                (s->batch / c->micro_batch));
    return 0;
}

/* Forward, backward, exchange: gradients, their norm, and the loss, the same on all ranks. */
static int gradients(struct trainer *t, struct train_step *s, double *at, struct err *e)
{
    const struct train_config *c = t->config;
    const struct passes_step step = {(uint64_t)c->seed, (uint64_t)t->step, t->consumed, s->batch, c->per_token};
    double tokens;
    int rc = qk_clip_begin(t->parts, t->n_parts, e);

    if (rc == 0)
        rc = passes_step(&t->passes, &step, t->losses, &tokens, s->phase, e);
    if (rc != 0)
        return rc == ERR_NOMEM ? err_wrap(e, "step %" PRId64, t->step + 1) : rc;
    TRY(fp8_end_step(&t->layout, t->parts, t->n_parts, e));
    TRY(balance(t, s, e));
    trace_begin(t->trace, "reduce", t->step + 1);
    *at = log_seconds();
    TRY(optimizer_reduce(&t->optimizer, e));
    trace_end(t->trace, TRACE_PROFILER, "reduce", t->step + 1, *at);
    lap(t, s, PHASE_REDUCE, at);
    TRY(optimizer_norm(&t->optimizer, c->clip_grad, &s->grad_norm, e)); /* here a step waits for the device */
    TRY(passes_losses(&t->passes, &step, t->losses, e));
    for (int64_t k = 0; k < s->batch / c->micro_batch; k++) { /* in their order, whoever had them */
        const double *of = t->losses + k * t->passes.each;

        s->loss += of[0];
        for (int64_t i = 0; i < c->model.mtp_layers; i++)
            s->mtp_loss[i] += of[1 + i];
    }
    s->loss /= tokens;
    return 0;
}

static int one_step(struct trainer *t, struct train_step *s, struct err *e)
{
    const struct train_config *c = t->config;
    double start = log_seconds(), cpu = cpu_seconds(), at = start, from;
    enum verdict_of_step v;

    memset(s, 0, sizeof *s);
    s->step = t->step + 1;
    s->lr = schedule_lr(&t->schedule, t->consumed);
    s->batch = train_config_batch(c, t->consumed);
    s->first_sample = t->consumed;
    s->back_to = -1;
    s->valid_loss = s->max_logit = NAN;
    s->save_seconds = t->save_seconds;
    t->save_seconds = 0;
    TRY(gradients(t, s, &at, e));
    from = trace_begin(t->trace, "optimizer", t->step + 1);
    v = guard_judge(&t->guard, s->loss, s->grad_norm, c->spike_factor, c->spike_window);
    if (v == STEP_GOOD) {
        TRY(update(t, s, e));
        TRY(qk_clip_end(&c->optim, &t->layout, t->parts, t->n_parts, &s->max_logit, e));
    }
    TRY(expert_bias_end_step(&t->layout, t->parts, t->n_parts, v == STEP_GOOD ? c->model.bias_rate : 0, e));
    trace_end(t->trace, TRACE_PROFILER, "optimizer", t->step + 1, from);
    lap(t, s, PHASE_OPTIMIZER, &at);
    s->seconds = at - start;
    s->cpu_seconds = cpu_seconds() - cpu;
    if (v != STEP_GOOD)
        return bad_step(t, s, v, e);
    guard_add(&t->guard, s->loss, s->grad_norm, c->spike_window);
    if (s->step > t->bad_step) /* after a roll back the steps up to there are no progress */
        t->bad = 0;
    return count_step(t, s, e);
}

/* ---- the loop ---- */

/* Begins to save, and beside no training ends: as save_progress. */
static int save_here(struct trainer *t, struct err *e)
{
    struct checkpoint_info info = {t->step, t->consumed, t->config->model, t->args, t->n_args, t->guard, t->updates, {0}};

    if (!t->saver || t->saved_step == t->step)
        return SAVER_NOTHING;
    TRY(go_on(t, save_progress(t, true, e), e));
    buf_clear(&t->history_text); /* of which nobody writes any more */
    if (history_put(&t->history, &t->history_text) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the history of steps");
    info.history = buf_span(&t->history_text);
    TRY(saver_start(t->saver, &info, e));
    t->saved_step = t->step;
    return t->config->async_save ? SAVER_NOTHING : save_progress(t, true, e);
}

/* Behind a step: what is due is saved. */
static int save_on_the_way(struct trainer *t, struct err *e)
{
    const struct train_config *c = t->config;
    double start = log_seconds();

    TRY(go_on(t, save_progress(t, false, e), e));
    if (c->save_interval && t->step && t->step % c->save_interval == 0 && t->step < c->iters)
        TRY(go_on(t, save_here(t, e), e));
    t->save_seconds = log_seconds() - start;
    return 0;
}

/* The last one: until it is on disk.  If the one before it failed, it is tried all the same. */
static int save_at_the_end(struct trainer *t, struct err *e)
{
    int rc;

    TRY(go_on(t, save_progress(t, true, e), e));
    rc = save_here(t, e);
    if (rc == SAVER_NOTHING)
        rc = save_progress(t, true, e);
    return rc == SAVER_FAILED ? e->code : rc < 0 ? rc : 0;
}

/* Evaluation number k takes the k-th stretch of the valid split, as Megatron does. */
static int evaluate_valid(struct trainer *t, struct train_step *s, struct err *e)
{
    const struct train_config *c = t->config;
    int64_t n = c->eval_iters * c->global_batch;
    int sets = data_valid_sets(t->data);
    double sum = 0;

    if (!n || data_size(t->data, GPT_VALID) == 0)
        return 0;
    for (int i = 0; i < sets; i++) {
        TRY(passes_evaluate(&t->passes, data_valid(i), (t->step / c->eval_interval - 1) * n, n, &t->valid[i], NULL, e));
        sum += t->valid[i];
    }
    s->valid_loss = sum / sets;
    s->valid = t->valid;
    return 0;
}

/* A signal or the clock of any rank ends the run of all, after the same step. */
static int wants_to_end(struct trainer *t, bool stop, double start, enum train_end *end, struct err *e)
{
    int64_t minutes = t->config->exit_minutes;
    bool late = log_seconds() - start > 60.0 * (double)minutes;

    TRY(data_parallel_any(t->layout.world, &stop, e));
    if (minutes)
        TRY(data_parallel_any(t->layout.world, &late, e));
    *end = stop ? TRAIN_SIGNAL : minutes && late ? TRAIN_EXIT : TRAIN_ALL_DONE;
    return 0;
}

int trainer_run(struct trainer *t, const volatile sig_atomic_t *stop, train_step_fn *report, void *arg,
                enum train_end *end, struct err *e)
{
    const struct train_config *c = t->config;
    double start = log_seconds();
    struct train_step s;

    *end = TRAIN_ALL_DONE;
    while (t->step < c->iters) {
        TRY(wants_to_end(t, *stop, start, end, e));
        if (*end != TRAIN_ALL_DONE)
            break;
        TRY(one_step(t, &s, e));
        crowd_step(t->crowd, s.seconds, (double)s.batch);
        if (c->eval_interval && t->step == s.step && t->step % c->eval_interval == 0) {
            TRY(evaluate_valid(t, &s, e));
            if (t->scores)
                TRY(t->scores(t->scores_arg, t, &s, e));
        }
        if (report)
            report(arg, &s);
        TRY(save_on_the_way(t, e));
        if (t->step < c->iters && c->exit_interval && t->step == s.step && t->step % c->exit_interval == 0) {
            *end = TRAIN_EXIT;
            break;
        }
    }
    TRY(optimizer_settle(&t->optimizer, e));
    return save_at_the_end(t, e);
}
