/* quern train: pretrains a GPT on indexed datasets. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/tool.h"
#include "kernels/threads.h"
#include "tokenize/tasks/task.h"
#include "train/exchange.h"
#include "train/likelihood.h"
#include "train/machine.h"
#include "train/megatron_flags.h"
#include "train/plan_check.h"
#include "train/plan_options.h"
#include "train/step_log.h"
#include "train/trainer.h"

static volatile sig_atomic_t stop;

static struct sigaction term_before, int_before; /* what ends a tool, and takes unfinished files with it */

/* The second signal ends the program at once.  After the first nothing waits for who reads messages: mpirun, which got it too,
 * does not any longer. */
static void on_signal(int sig)
{
    sigaction(sig, sig == SIGTERM ? &term_before : &int_before, NULL);
    stop = 1;
    log_no_wait();
}

/* Of standard output: what is printed after a signal does not wait for who reads it either. */
static ssize_t put_output(void *cookie, const char *p, size_t n)
{
    (void)cookie;
    return fd_put_or_drop(STDOUT_FILENO, p, n, &stop) ? (ssize_t)n : -1;
}

static void catch_signal(int sig, struct sigaction *before)
{
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

    sigaction(sig, &sa, before);
    if (before->sa_handler == SIG_IGN)
        before->sa_handler = SIG_DFL;
    before->sa_flags |= SA_ONSTACK;
}

/* On a stack of its own: oneDNN's generated sgemm keeps what it needs below the red zone of
 * the running stack (seen in 2.6 with AVX-512), where a signal's frame would overwrite it. */
static void catch_signals(void)
{
    static char stack[1 << 16]; /* AMX state alone takes 11 KiB */
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = put_output});

    if (out) {
        setvbuf(out, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
        fflush(stdout);
        stdout = out;
    }
    sigaltstack(&own, NULL);
    catch_signal(SIGTERM, &term_before);
    catch_signal(SIGINT, &int_before);
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is a write error like a full disk */
}

/* The tasks in which the model is scored with each evaluation. */
struct tasks {
    struct opt_list files;
    const char *tokenizer_file, *bos;
    int64_t limit;

    struct tokenizer *tokenizer;
    struct task **task; /* (files.n) */
    struct train_score *score; /* room for all */
};

struct run {
    const struct train_config *config;
    const struct trainer *trainer;
    bool quiet;
    double flops_per_token, peak;
    double start;   /* when the first step began */
    int64_t from;   /* steps done before */
    struct plan_steps steps;
    struct step_log *log;
    struct tasks *tasks;
};

/* ---- tasks ---- */

static int open_tasks(struct tasks *k, const struct train_config *c, struct err *e)
{
    const struct task_settings s = {.shots = -1, .limit = k->limit, .seed = 1234, .length = c->model.seq, .bos = k->bos};

    if (k->files.n == 0)
        return 0;
    if (!k->tokenizer_file)
        return err_set(e, ERR_ARG, "--eval-tasks needs --tokenizer");
    if (!c->eval_interval)
        return err_set(e, ERR_ARG, "--eval-tasks needs --eval-interval");
    TRY(tokenizer_open(&k->tokenizer, k->tokenizer_file, NULL, e));
    k->task = calloc((size_t)k->files.n, sizeof(struct task *));
    k->score = calloc((size_t)k->files.n * TASK_SCORES, sizeof *k->score);
    if (!k->task || !k->score)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < k->files.n; i++) {
        TRY(task_open(&k->task[i], k->files.v[i], k->tokenizer, &s, e));
        if (task_writes(k->task[i]))
            return err_set(e, ERR_ARG, "--eval-tasks %s: texts are written by quern eval alone", k->files.v[i]);
    }
    return 0;
}

static void close_tasks(struct tasks *k)
{
    for (int i = 0; k->task && i < k->files.n; i++)
        task_close(k->task[i]);
    if (k->tokenizer)
        tokenizer_close(k->tokenizer);
    free(k->task);
    free(k->score);
    opt_list_free(&k->files);
}

/* The scores of one task; how many. */
static int score_task(const struct task *t, struct passes *p, struct train_score *to, struct err *e)
{
    const struct task_request *q;
    int64_t n = task_requests(t, &q);
    struct likelihood *r = calloc((size_t)n + 1, sizeof *r);
    struct task_answer *a = calloc((size_t)n + 1, sizeof *a);
    struct task_score s[TASK_SCORES] = {0};
    int rc = r && a ? 0 : err_set(e, ERR_NOMEM, "out of memory"), scores = 0;

    for (int64_t i = 0; rc == 0 && i < n; i++)
        r[i] = (struct likelihood){.ids = q[i].ids, .n = q[i].n, .from = q[i].from};
    if (rc == 0)
        rc = likelihoods(p, r, n, task_asks_greedy(t), e);
    for (int64_t i = 0; rc == 0 && i < n; i++)
        a[i] = (struct task_answer){.likelihood = r[i].sum, .greedy = r[i].greedy};
    if (rc == 0)
        rc = scores = task_score(t, a, s, NULL, e);
    for (int i = 0; i < scores; i++) {
        snprintf(to[i].name, sizeof to[i].name, "%s %s", task_name(t), s[i].metric);
        to[i].value = s[i].value;
    }
    free(r);
    free(a);
    return rc;
}

static int on_scores(void *arg, struct trainer *t, struct train_step *s, struct err *e)
{
    struct tasks *k = arg;

    s->scores = k->score;
    s->n_scores = 0;
    for (int i = 0; i < k->files.n; i++) {
        int n = score_task(k->task[i], &t->passes, k->score + s->n_scores, e);

        if (n < 0)
            return n;
        s->n_scores += n;
    }
    return 0;
}

/* ---- steps ---- */

/* A peak that a step exceeds was measured while something else had the processors: no share of it is told. */
static struct step_rates rates_of(const struct run *r, const struct train_step *s)
{
    double tokens = (double)(s->batch * r->config->model.seq) / s->seconds, flops = r->flops_per_token * tokens;

    return (struct step_rates){tokens, flops, flops > r->peak ? NAN : flops / r->peak};
}

/* 12345678 as "12.35 M". */
static const char *amount(double n, char to[32])
{
    static const char *const unit[] = {"", " K", " M", " G", " T"};
    size_t u = 0;

    for (; n >= 10000 && u + 1 < sizeof unit / sizeof *unit; u++)
        n /= 1000;
    snprintf(to, 32, u ? "%.2f%s" : "%.0f%s", n, unit[u]);
    return to;
}

/* Hours, minutes and seconds until the last step, by the mean of those of this run with all that came between. */
static const char *time_left(const struct run *r, int64_t step, char to[32])
{
    double each = (log_seconds() - r->start) / (double)(step - r->from);
    int64_t left = (int64_t)ceil(each * (double)(r->config->iters - step));

    snprintf(to, 32, "%" PRId64 ":%02d:%02d", left / 3600, (int)(left / 60 % 60), (int)(left % 60));
    return to;
}

/* step 20/100  loss 5.1234  grad norm 0.913  lr 1.000e-03  20.48 K tokens  83 ms  12345 tokens/s  9.3 GFLOP/s  mfu 45.1 %
 * 0:01:23 left */
static void print_step(const struct run *r, const struct train_step *s, const struct step_rates *rates)
{
    char seen[32], left[32];

    progress_end();
    printf("step %" PRId64 "/%" PRId64 "  loss %.4f  grad norm %.3f  lr %.3e  %s tokens  %.0f ms  %.0f tokens/s  %.1f GFLOP/s",
           s->step, r->config->iters, s->loss, s->grad_norm, s->lr,
           amount((double)(r->trainer->consumed * r->config->model.seq), seen), 1e3 * s->seconds, rates->tokens,
           rates->flops / 1e9);
    if (!isnan(rates->mfu))
        printf("  mfu %.1f %%", 100 * rates->mfu);
    if (!isnan(s->valid_loss))
        printf("  valid loss %.4f", s->valid_loss);
    for (int i = 0; i < s->n_scores; i++)
        printf("  %s %.4f", s->scores[i].name, s->scores[i].value);
    if (s->step > r->from && s->step < r->config->iters)
        printf("  %s left", time_left(r, s->step, left));
    putchar('\n');
    fflush(stdout);
}

static void show(const struct run *r, const char *phase, const struct train_step *s)
{
    const struct train_config *c = r->config;
    double seq = (double)c->model.seq;

    progress_show(&(struct progress){
        .phase = phase, .unit = "tokens", .done = (double)r->trainer->consumed * seq, .total = (double)c->samples * seq,
        .count = {{"step", (double)r->trainer->step}, {s ? "loss" : NULL, s ? s->loss : 0}},
    });
}

static void on_step(void *arg, const struct train_step *s)
{
    struct run *r = arg;
    const struct step_rates rates = rates_of(r, s);

    if (!r->quiet && (s->step % r->config->log_interval == 0 || !isnan(s->valid_loss) || s->n_scores ||
                      s->step == r->config->iters))
        print_step(r, s, &rates);
    show(r, "training", s);
    step_log_put(r->log, r->trainer, s, &rates);
    plan_steps_add(&r->steps, s);
}

/* Micro-batch i of n of an evaluation is done. */
static void on_evaluated(void *arg, int64_t i, int64_t n)
{
    char phase[80];

    if (!progress_due())
        return;
    snprintf(phase, sizeof phase, "evaluating, %" PRId64 " of %" PRId64 " micro-batches", i, n);
    show(arg, phase, NULL);
}

/* Holds the run against its plan (train/plan_check.h). */
static int check_plan(struct run *r, struct trainer *t, struct err *e)
{
    struct buf text = {0};
    int rc = r->quiet ? 0 : plan_check_memory(t, &text, e);

    if (rc == 0 && !r->quiet)
        rc = plan_check_time(t, &r->steps, &text, e);
    if (rc == 0 && text.n)
        fwrite(text.p, 1, text.n, stdout);
    buf_free(&text);
    return rc;
}

static void print_settings(struct train_config *c)
{
    const struct opt none[] = {OPT_END};
    struct opt *opts = train_config_options(c, none);

    if (opts) {
        printf("settings:\n");
        opt_settings(opts, stdout);
    }
    free(opts);
}

static void print_plan(const struct train_config *c, const struct train_memory *m, const struct device *dev, double peak)
{
    double mib = 1 << 20;

    printf("device: %s, peak %.1f GFLOP/s in %s\n", dev->name, peak / 1e9, c->bf16 ? "bf16" : "fp32");
    printf("model: %" PRId64 " parameters, ", model_config_params(&c->model));
    if (c->model.experts)
        printf("of which a token meets %" PRId64 ", ", model_config_active(&c->model));
    printf("vocabulary padded to %" PRId64 ", %.4g FLOP a token\n",
           c->model.padded_vocab, model_config_flops(&c->model, c->model.seq));
    printf("memory: weights %.1f + gradients %.1f + optimizer %.1f + activations %.1f = %.1f MiB\n",
           (double)(m->model.weights + m->model.low + m->model.fp8) / mib, (double)m->model.grads / mib,
           (double)m->optimizer / mib, (double)(m->model.activations + m->model.tables) / mib, (double)m->total / mib);
    if (m->host + m->save)
        printf("memory of the host: optimizer %.1f + copy for saving %.1f MiB\n", (double)m->host / mib,
               (double)m->save / mib);
    printf("steps: %" PRId64 " of %" PRId64 " samples in micro-batches of %" PRId64, c->iters, c->global_batch,
           c->micro_batch);
    if (c->ranks > 1)
        printf(" on each of %" PRId64 " data-parallel ranks", c->ranks);
    putchar('\n');
    if (c->stages.stages > 1)
        printf("pipeline: %" PRId64 " stages of %" PRId64 " part%s; the memory is that of the largest; if all are equal they"
               " idle for %.1f %% of the time they work\n", c->stages.stages, c->stages.chunks, c->stages.chunks == 1 ? "" : "s",
               100.0 * (double)(c->stages.stages - 1) / (double)(c->micro_batches * c->stages.chunks));
    if (c->ramp_each > 0)
        printf("ramp: from %" PRId64 " samples, %" PRId64 " more after each %.6g\n", c->ramp_start, c->ramp_add,
               c->ramp_each);
    fflush(stdout);
}

static int no_room(const char *who, double need, uint64_t have, struct err *e)
{
    return err_set(e, ERR_NOMEM, "%s %.1f GiB of memory; %.1f can be used here", who, need / (1 << 30),
                   (double)have / (1 << 30));
}

/* More than this process, or all ranks of this machine, may have would be killed in the middle rather than refused; more than
 * a GPU has for all its ranks, of which the last one to open it has seen the least free, allocated in part. */
static int check_memory(const struct train_config *c, const struct machine_ranks *here, const struct device *dev, struct err *e)
{
    uint64_t group = limits_cgroup_memory(""), all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    int64_t stage = here->world->rank / (c->world / c->layout.pipe), sum;
    struct train_memory m;
    char who[64];
    size_t need;
    int rc = 0, ranks;

    TRY(trainer_plan_stage(c, (int)stage, &m, e));
    need = (dev->kind == DEVICE_CPU ? m.total : 0) + m.host + m.save;
    TRY(machine_sum(here->world, dev->card, (int64_t)m.total, &sum, &ranks, e));
    snprintf(who, sizeof who, ranks == 1 ? "this run needs, on the GPU," : "the %d ranks on one GPU need", ranks);
    if (need > limits_memory())
        rc = no_room("this run needs", (double)need, limits_memory(), e);
    else if (dev->card && (uint64_t)sum > dev->room)
        rc = no_room(who, (double)sum, dev->room, e);
    TRY(comm_agree(here->world, &rc, e, e));
    TRY(rc);
    TRY(machine_sum(here->world, here->key, (int64_t)need, &sum, &ranks, e));
    all = group < all ? group : all;
    snprintf(who, sizeof who, "the %d ranks of this machine need", ranks);
    if ((uint64_t)sum > all)
        rc = no_room(who, (double)sum, all, e);
    TRY(comm_agree(here->world, &rc, e, e));
    return rc;
}

/* NaN: there is nothing to evaluate. */
static int final_loss(struct run *r, struct trainer *t, int split, const char *name, int64_t first, double *loss, struct err *e)
{
    int64_t n = t->config->eval_iters * t->config->global_batch;
    bool says = t->layout.world->rank == 0;

    *loss = NAN;
    if (n == 0 || data_size(t->data, split) == 0)
        return 0;
    if (passes_evaluate(&t->passes, split, first, n, loss, NULL, e) < 0)
        return err_wrap(e, "%s loss", name);
    progress_end();
    if (says && !r->quiet)
        printf("%s loss %.4f, perplexity %.2f\n", name, *loss, exp(*loss));
    return 0;
}

/* Megatron's last words: the loss on splits that training did not see. */
static int final_losses(struct run *r, struct trainer *t, struct err *e)
{
    const struct train_config *c = t->config;
    struct step_final f = {.valid_loss = NAN, .valid = t->valid};
    int sets = c->eval_interval ? data_valid_sets(t->data) : 0;
    int64_t first = sets ? c->iters / c->eval_interval * c->eval_iters * c->global_batch : 0;
    double sum = 0;
    char name[512];

    for (int i = 0; i < sets; i++) {
        snprintf(name, sizeof name, "valid%s%s", c->valid_sets ? " " : "", data_valid_name(t->data, i));
        TRY(final_loss(r, t, data_valid(i), name, first, &t->valid[i], e));
        sum += t->valid[i];
    }
    if (sets)
        f.valid_loss = sum / sets;
    TRY(final_loss(r, t, GPT_TEST, "test", 0, &f.test_loss, e));
    step_log_final(r->log, t, &f);
    return 0;
}

/* How much of the exchange among replicas was hidden, and what the ops took. */
static void print_end(struct trainer *t)
{
    double under_way, waited;

    if (t->trace) {
        trace_replicas(t->trace, &under_way, &waited);
        printf("gradients and weights among replicas: %.3f s under way, %.3f s of it waited for (%.1f %% hidden)\n", under_way,
               waited, under_way > 0 ? 100 * (1 - waited / under_way) : 0);
    }
    printf("memory of the ops: %.1f MiB\n", (double)device_overhead_bytes(t->dev) / (1 << 20));
}

static int train(struct run *r, struct trainer *t, struct err *e)
{
    bool first = t->layout.world->rank == 0;
    enum train_end end;

    r->trainer = t;
    r->from = t->step;
    r->start = log_seconds();
    if (first)
        passes_watch_evaluation(&t->passes, on_evaluated, r);
    if (r->from && first && !r->quiet)
        printf("going on after step %" PRId64 "\n", r->from);
    t->scores = r->tasks->files.n ? on_scores : NULL;
    t->scores_arg = r->tasks;
    TRY(trainer_run(t, &stop, first ? on_step : NULL, r, &end, e));
    progress_end();
    if (end == TRAIN_SIGNAL)
        log_msg(LOG_INFO, "stopped by a signal after step %" PRId64 "%s", t->step,
                t->config->save ? "; the same command goes on from there" : "; nothing saved: no --save");
    if (end == TRAIN_ALL_DONE && t->step > r->from)
        TRY(final_losses(r, t, e));
    if (t->step > r->from)
        TRY(check_plan(r, t, e));
    if (first && !r->quiet)
        print_end(t);
    return 0;
}

/* Where the vocabulary is from, or what will come of one that is not the tokenizer's. */
static void tell_vocabulary(const struct train_config *c)
{
    int64_t ids = c->tokenizer_ids, vocab = c->model.vocab;

    if (c->tokenizer_vocab)
        log_msg(LOG_INFO, "a vocabulary of %" PRId64 ", that of the tokenizer of '%s'", vocab, c->tokenizer_of);
    else if (ids && ids < vocab)
        log_msg(LOG_WARN, "--vocab-size %" PRId64 ": the tokenizer of '%s' has %" PRId64 " ids; those from %" PRId64
                " on never occur, and quern generate does not draw them", vocab, c->tokenizer_of, ids, ids);
    else if (ids > vocab)
        log_msg(LOG_WARN, "--vocab-size %" PRId64 ": the tokenizer of '%s' has %" PRId64 " ids; one from %" PRId64
                " on in a sample will end the run", vocab, c->tokenizer_of, ids, vocab);
}

/* Ranks meet, the run is planned, and what does not fit is refused before anything is allocated. */
static int run(struct train_config *c, struct tasks *tasks, struct comm *group, const struct machine_ranks *here,
               const struct tool *o, struct err *e)
{
    struct run r = {.config = c, .quiet = o->quiet, .tasks = tasks};
    int threads = threads_count(o->jobs, here->alike, here->here);
    struct train_memory m = {0};
    struct device *dev = NULL;
    struct trainer *t = NULL;
    int rc = device_open(&dev, train_config_device[c->device], threads, e);

    if (group->rank == 0)
        tell_vocabulary(c);
    if (rc == 0 && dev->kind == DEVICE_CPU)
        c->offload = false; /* it is there already */
    if (rc == 0)
        rc = trainer_plan(c, &m, e);
    if (rc == 0)
        rc = open_tasks(tasks, c, e);
    if (rc == 0 && group->rank == 0 && c->save)
        rc = checkpoint_claim(c->save, e);
    if (comm_agree(group, &rc, e, e) < 0)
        rc = e->code;
    if (rc == 0)
        rc = check_memory(c, here, dev, e);
    if (rc == 0 && group->rank == 0)
        rc = step_log_open(&r.log, c, e);
    if (rc == 0 && exchange_use(dev, group, e) < 0)
        rc = err_wrap(e, "--distributed-backend nccl");
    r.flops_per_token = model_config_flops(&c->model, c->model.seq);
    double tokens = (double)c->iters * (double)c->global_batch * (double)c->model.seq / group->size;
    if (rc == 0)
        rc = device_peak_flops(dev, c->bf16 ? DTYPE_BF16 : DTYPE_F32, tokens * r.flops_per_token, &r.peak, e);
    if (rc == 0) {
        r.peak *= group->size;
        if (group->rank == 0 && o->verbose)
            print_settings(c);
        if (group->rank == 0 && !r.quiet)
            print_plan(c, &m, dev, r.peak);
        rc = trainer_open(&t, c, dev, group, e);
    }
    if (rc == 0 && here->here == 1 && dev->kind == DEVICE_CPU)
        t->crowd = crowd_open(dev->threads, &dev->team);
    if (rc == 0)
        rc = train(&r, t, e);
    trainer_close(t);
    comm_leave_device(group);
    device_close(dev);
    step_log_close(r.log);
    return rc;
}

/* The ranks that mpirun, srun or torchrun started share the batch.  The first speaks for all; the others
 * have only failures to tell. */
static int open_ranks(struct comm **group, struct machine_ranks *here, struct train_config *c, const struct buf *without,
                      struct err *e)
{
    static char prefix[48];

    TRY(comm_open(group, train_config_backend[c->backend], 60.0 * (double)c->timeout_minutes, e));
    c->world = (*group)->size;
    if ((*group)->rank) {
        snprintf(prefix, sizeof prefix, "quern-train, rank %d", (*group)->rank);
        log_init(prefix, LOG_ERROR);
    }
    if (without->n)
        log_msg(LOG_WARN, "Megatron's flags that change nothing here:%.*s", (int)without->n, without->p);
    return machine_open(here, *group, e);
}

int main(int argc, char **argv)
{
    struct train_config c;
    struct comm *group = NULL;
    struct machine_ranks here = {0};
    struct tool t = {
        .name = "train",
        .usage = "[options]",
        .about = "pretrain a GPT or a Llama",
        .details = "Trains a GPT or a Llama on an indexed dataset (quern tokenize). Flags have Megatron's names and\n"
                   "defaults; those of its recipes that change nothing here are passed over. SIGTERM or SIGINT: the\n"
                   "step is finished, a checkpoint saved, the exit status 0; the same command then goes on where it\n"
                   "stopped, with the same bits. Under mpirun the ranks share each batch and, as the layout says,\n"
                   "the model. --plan predicts a step on other machines.\n"
                   "docs/training.md says more.",
        .example = "quern train --mock-data --vocab-size 256 --num-layers 2 --hidden-size 64 \\\n"
                   "    --num-attention-heads 4 --seq-length 64 --micro-batch-size 4 --train-iters 10 \\\n"
                   "    --lr 1e-3 --eval-iters 0 --log-interval 1",
    };
    struct plan_options plan;
    struct tasks tasks = {0};
    struct arena texts = {0};
    const char *file = NULL;
    const struct opt general[] = {
        OPT_HEAD("Tasks"),
        OPT_IN_LIST(0, "eval-tasks", &tasks.files, "FILE", "with each evaluation, scores in this task (docs/evaluation.md)"),
        OPT_IN(0, "tokenizer", &tasks.tokenizer_file, "FILE", "by which tasks become tokens"),
        OPT_STR(0, "bos-token", &tasks.bos, "TOKEN", "before each text of tasks (default: none)"),
        OPT_INT(0, "eval-limit", &tasks.limit, 0, INT64_MAX, "the first questions of each task; 0: all"),
        PLAN_OPTS(plan),
        TOOL_OPTS(t),
        TOOL_JOBS(t),
        TOOL_PROGRESS(t),
        OPT_IN(0, "yaml-cfg", &file, "FILE", "settings by their names above, where no flag gives them"),
        OPT_END,
    };
    struct buf without = {0};
    struct opt *opts;
    struct err e;
    int n, code = EXIT_FATAL;

    threads_bound_spin(argv);
    train_config_init(&c);
    plan_options_init(&plan);
    opts = train_config_options(&c, general);
    if (!opts) {
        log_msg(LOG_ERROR, "out of memory");
        return EXIT_FATAL;
    }
    log_init("quern-train", LOG_WARN);
    if (megatron_flags(opts, &argc, &argv, &without, &texts, &e) < 0) {
        code = tool_fail(&t, &e);
        n = -1;
    } else {
        n = tool_begin(&t, opts, argc, argv, &code);
    }
    if (n >= 0 && file && train_config_read(&c, file, &texts, &e) < 0) {
        code = tool_fail(&t, &e);
    } else if (n >= 0 && train_config_operands(&c, n, argv + 1, &e) < 0) {
        code = tool_fail(&t, &e);
    } else if (n >= 0 && plan.plan) {
        struct buf text = {0};

        code = plan_run(&c, &plan, &text, &e) < 0 ? tool_fail(&t, &e) : EXIT_FINE;
        fwrite(text.p, 1, text.n, stdout);
        buf_free(&text);
        code = code == EXIT_FINE ? tool_end(&t, code) : code;
    } else if (n >= 0) {
        catch_signals();
        if (open_ranks(&group, &here, &c, &without, &e) < 0 ||
            train_config_check(&c, &e) < 0 || run(&c, &tasks, group, &here, &t, &e) < 0)
            code = tool_fail(&t, &e);
        else
            code = tool_end(&t, EXIT_FINE);
    }
    close_tasks(&tasks);
    comm_close(group);
    free(opts);
    train_config_free(&c);
    buf_free(&without);
    arena_free(&texts);
    return code;
}
