/* quern train: pretrains a GPT on indexed datasets. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/tool.h"
#include "train/exchange.h"
#include "train/megatron_flags.h"
#include "train/plan_check.h"
#include "train/plan_options.h"
#include "train/tensorboard.h"
#include "train/trainer.h"

static volatile sig_atomic_t stop;

/* The second signal ends the program at once: the handler is used up. */
static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

/* On a stack of its own: oneDNN's generated sgemm keeps what it needs below the red zone of
 * the running stack (seen in 2.6 with AVX-512), where a signal's frame would overwrite it. */
static void catch_signals(void)
{
    static char stack[1 << 16]; /* AMX state alone takes 11 KiB */
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};

    sigaltstack(&own, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is a write error like a full disk */
}

struct run {
    const struct train_config *config;
    const struct trainer *trainer;
    double flops_per_token, peak;
    struct plan_steps steps;
    int log_fd;
    bool log_failed, board_failed;
    struct tensorboard *board;
};

static double tokens_per_second(const struct run *r, const struct train_step *s)
{
    return (double)(s->batch * r->config->model.seq) / s->seconds;
}

/* {"NAME":loss,...} of several validation sets. */
static int put_sets(struct buf *b, const struct run *r, const struct train_step *s)
{
    TRY(buf_puts(b, ",\"valid_losses\":{"));
    for (int i = 0; i < data_valid_sets(r->trainer->data); i++) {
        TRY(json_put_key(b, data_valid_name(r->trainer->data, i)));
        TRY(json_put_num(b, s->valid[i]));
    }
    return buf_putc(b, '}');
}

static int put_line(struct buf *b, const struct run *r, const struct train_step *s)
{
    double rate = tokens_per_second(r, s), flops = r->flops_per_token * rate;
    const struct {
        const char *key;
        double v;
        bool sometimes; /* left out when it is NaN */
    } field[] = {
        {"loss", s->loss, false}, {"grad_norm", s->grad_norm, false}, {"lr", s->lr, false}, {"tokens_per_s", rate, false},
        {"flops_per_s", flops, false}, {"mfu", flops / r->peak, false}, {"load_balancing_loss", s->balance, true},
        {"valid_loss", s->valid_loss, true},
    };

    TRY(buf_printf(b, "{\"step\":%" PRId64, s->step));
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        if (field[i].sometimes && isnan(field[i].v))
            continue;
        TRY(json_put_key(b, field[i].key));
        TRY(json_put_num(b, field[i].v));
    }
    if (!isnan(s->valid_loss) && r->config->valid_sets)
        TRY(put_sets(b, r, s));
    TRY(buf_printf(b, ",\"batch\":%" PRId64 ",\"save_s\":%.6f", s->batch, s->save_seconds));
    for (int i = 0; i < PHASES; i++)
        TRY(buf_printf(b, ",\"%s_s\":%.6f", train_phase_name[i], s->phase[i]));
    return buf_printf(b, ",\"cpu_s\":%.6f}\n", s->cpu_seconds);
}

static void log_line(struct run *r, const struct train_step *s)
{
    struct buf b = {0};
    int rc = put_line(&b, r, s);

    if ((rc < 0 || write(r->log_fd, b.p, b.n) != (ssize_t)b.n) && !r->log_failed) {
        r->log_failed = true;
        log_msg(LOG_ERROR, "cannot write '%s': %s; training goes on", r->config->log_file, strerror(errno));
    }
    buf_free(&b);
}

/* Megatron's tags. */
static int board_scalars(struct run *r, const struct train_step *s, struct err *e)
{
    const struct {
        const char *tag;
        double v;
    } field[] = {{"lm loss", s->loss}, {"grad-norm", s->grad_norm}, {"learning-rate", s->lr},
                 {"batch-size", (double)s->batch}, {"iteration-time", s->seconds},
                 {"throughput", r->flops_per_token * tokens_per_second(r, s) / 1e12}};
    char tag[512];

    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        TRY(tensorboard_scalar(r->board, field[i].tag, field[i].v, e));
    if (!isnan(s->balance))
        TRY(tensorboard_scalar(r->board, "load_balancing_loss", s->balance, e));
    for (int i = 0; !isnan(s->valid_loss) && i < data_valid_sets(r->trainer->data); i++) {
        snprintf(tag, sizeof tag, "lm loss validation%s%s", r->config->valid_sets ? " " : "",
                 data_valid_name(r->trainer->data, i));
        TRY(tensorboard_scalar(r->board, tag, s->valid[i], e));
    }
    return tensorboard_step(r->board, s->step, e);
}

static void to_board(struct run *r, const struct train_step *s)
{
    struct err e;

    if (r->board && board_scalars(r, s, &e) < 0 && !r->board_failed) {
        r->board_failed = true;
        log_msg(LOG_ERROR, "%s; training goes on", e.msg);
    }
}

static void on_step(void *arg, const struct train_step *s)
{
    struct run *r = arg;
    double rate = tokens_per_second(r, s), flops = r->flops_per_token * rate;
    char line[256];
    int n = snprintf(line, sizeof line,
                     "step %" PRId64 "/%" PRId64
                     "  loss %.4f  grad norm %.3f  lr %.3e  %.0f tokens/s  %.1f GFLOP/s  mfu %.1f %%",
                     s->step, r->config->iters, s->loss, s->grad_norm, s->lr, rate, flops / 1e9,
                     100 * flops / r->peak);

    if (!isnan(s->valid_loss))
        snprintf(line + n, sizeof line - (size_t)n, "  valid loss %.4f", s->valid_loss);
    if (s->step % r->config->log_interval == 0 || !isnan(s->valid_loss) || s->step == r->config->iters) {
        log_progress_end();
        printf("%s\n", line);
        fflush(stdout);
    } else {
        log_progress("%s", line);
    }
    if (r->log_fd >= 0)
        log_line(r, s);
    to_board(r, s);
    plan_steps_add(&r->steps, s);
}

/* Holds the run against its plan (train/plan_check.h). */
static int check_plan(struct run *r, struct trainer *t, struct err *e)
{
    struct buf text = {0};
    int rc = plan_check_memory(t, &text, e);

    if (rc == 0)
        rc = plan_check_time(t, &r->steps, &text, e);
    if (rc == 0 && text.n)
        fwrite(text.p, 1, text.n, stdout);
    buf_free(&text);
    return rc;
}

static void print_plan(struct train_config *c, const struct train_memory *m, const struct device *dev, double peak,
                       bool quiet)
{
    const struct opt none[] = {OPT_END};
    struct opt *opts = train_config_options(c, none);
    double mib = 1 << 20;

    if (opts && !quiet) {
        printf("settings:\n");
        opt_settings(opts, stdout);
    }
    free(opts);
    printf("device: %s, peak %.1f GFLOP/s in %s\n", dev->name, peak / 1e9, c->bf16 ? "bf16" : "fp32");
    printf("model: %" PRId64 " parameters, ", model_config_params(&c->model));
    if (c->model.experts)
        printf("of which a token meets %" PRId64 ", ", model_config_active(&c->model));
    printf("vocabulary padded to %" PRId64 ", %.4g FLOP a token\n",
           c->model.padded_vocab, model_config_flops(&c->model, c->model.seq));
    printf("memory: weights %.1f + gradients %.1f + optimizer %.1f + activations %.1f + copy for saving %.1f = %.1f MiB\n",
           (double)(m->model.weights + m->model.low + m->model.fp8) / mib, (double)m->model.grads / mib,
           (double)m->optimizer / mib, (double)(m->model.activations + m->model.tables) / mib, (double)m->save / mib,
           (double)m->total / mib);
    if (m->host)
        printf("memory of the host: optimizer %.1f MiB\n", (double)m->host / mib);
    printf("steps: %" PRId64 " of %" PRId64 " samples in micro-batches of %" PRId64, c->iters, c->global_batch,
           c->micro_batch);
    if (c->ranks > 1)
        printf(" on each of %" PRId64 " data-parallel ranks", c->ranks);
    putchar('\n');
    if (c->stages.stages > 1)
        printf("pipeline: %" PRId64 " stages of %" PRId64 " part%s; the memory is that of the largest; if all are equal they"
               " idle for %.1f %% of the time they work\n", c->stages.stages, c->stages.chunks, c->stages.chunks == 1 ? "" : "s",
               100.0 * (double)(c->stages.stages - 1) / (double)(c->micro_batches * c->stages.chunks));
    if (c->ramp_each)
        printf("ramp: from %" PRId64 " samples, %" PRId64 " more after each %" PRId64 "\n", c->ramp_start, c->ramp_add,
               c->ramp_each);
    fflush(stdout);
}

/* More than the machine has would be killed in the middle rather than refused. */
static int check_memory(const struct train_memory *m, struct err *e)
{
    double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

    if ((double)m->total > have)
        return err_set(e, ERR_NOMEM, "this run needs %.1f GiB of memory; the machine has %.1f",
                       (double)m->total / (1 << 30), have / (1 << 30));
    return 0;
}

static int final_loss(struct trainer *t, int split, const char *name, int64_t first, struct err *e)
{
    int64_t n = t->config->eval_iters * t->config->global_batch;
    double loss;

    if (n == 0 || data_size(t->data, split) == 0)
        return 0;
    if (passes_evaluate(&t->passes, split, first, n, &loss, e) < 0)
        return err_wrap(e, "%s loss", name);
    if (t->layout.world->rank == 0)
        printf("%s loss %.4f, perplexity %.2f\n", name, loss, exp(loss));
    return 0;
}

/* Megatron's last words: the loss on splits that training did not see. */
static int final_losses(struct trainer *t, struct err *e)
{
    const struct train_config *c = t->config;
    char name[512];

    for (int i = 0; c->eval_interval && i < data_valid_sets(t->data); i++) {
        snprintf(name, sizeof name, "valid%s%s", c->valid_sets ? " " : "", data_valid_name(t->data, i));
        TRY(final_loss(t, data_valid(i), name, c->iters / c->eval_interval * c->eval_iters * c->global_batch, e));
    }
    return final_loss(t, GPT_TEST, "test", 0, e);
}

static int train(struct run *r, struct trainer *t, struct err *e)
{
    bool first = t->layout.world->rank == 0;
    enum train_end end;
    int64_t from = t->step;

    r->trainer = t;
    if (from && first)
        printf("going on after step %" PRId64 "\n", from);
    TRY(trainer_run(t, &stop, first ? on_step : NULL, r, &end, e));
    if (end == TRAIN_SIGNAL)
        log_msg(LOG_INFO, "stopped by a signal after step %" PRId64 "%s", t->step,
                t->config->save ? "; the same command goes on from there" : "; nothing saved: no --save");
    if (end == TRAIN_ALL_DONE && t->step > from)
        TRY(final_losses(t, e));
    if (t->step > from)
        TRY(check_plan(r, t, e));
    if (t->trace && first) {
        double under_way, waited;

        trace_replicas(t->trace, &under_way, &waited);
        printf("gradients and weights among replicas: %.3f s under way, %.3f s of it waited for (%.1f %% hidden)\n", under_way,
               waited, under_way > 0 ? 100 * (1 - waited / under_way) : 0);
    }
    if (first)
        printf("memory of the ops: %.1f MiB\n", (double)device_overhead_bytes(t->dev) / (1 << 20));
    return 0;
}

static int run(struct train_config *c, struct comm *group, int threads, bool quiet, struct err *e)
{
    struct run r = {.config = c, .log_fd = -1};
    struct train_memory m;
    struct device *dev = NULL;
    struct trainer *t = NULL;
    int rc = device_open(&dev, train_config_device[c->device], threads, e);

    if (rc == 0 && dev->kind == DEVICE_CPU)
        c->offload = false; /* it is there already */
    if (rc == 0)
        rc = trainer_plan(c, &m, e);
    if (rc == 0)
        rc = check_memory(&m, e);
    if (rc == 0 && c->log_file && group->rank == 0) {
        r.log_fd = open(c->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (r.log_fd < 0)
            rc = err_sys(e, ERR_IO, "cannot open '%s'", c->log_file);
    }
    if (rc == 0 && c->tensorboard && group->rank == 0)
        rc = tensorboard_open(&r.board, c->tensorboard, e);
    if (rc == 0 && exchange_use(dev, group, e) < 0)
        rc = err_wrap(e, "--distributed-backend nccl");
    if (rc == 0)
        rc = device_peak_flops(dev, c->bf16 ? DTYPE_BF16 : DTYPE_F32, &r.peak, e);
    if (rc == 0) {
        r.flops_per_token = model_config_flops(&c->model, c->model.seq);
        r.peak *= group->size;
        if (group->rank == 0)
            print_plan(c, &m, dev, r.peak, quiet);
        rc = trainer_open(&t, c, dev, group, e);
    }
    if (rc == 0)
        rc = train(&r, t, e);
    trainer_close(t);
    comm_leave_device(group);
    device_close(dev);
    tensorboard_close(r.board);
    if (r.log_fd >= 0)
        close(r.log_fd);
    return rc;
}

/* Operands are more of --data-path, so that a blend can be given as Megatron takes it. */
static int more_paths(struct train_config *c, int n, char **operands, struct err *e)
{
    for (int i = 0; i < n; i++)
        TRY(opt_list_add(&c->data_path, operands[i], e));
    return 0;
}

/* The ranks that mpirun, srun or torchrun started share the batch.  The first speaks for all; the others
 * have only failures to tell. */
static int open_ranks(struct comm **group, struct train_config *c, const struct buf *without, struct err *e)
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
    return 0;
}

int main(int argc, char **argv)
{
    struct train_config c;
    struct comm *group = NULL;
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
    struct arena texts = {0};
    const char *file = NULL;
    const struct opt general[] = {
        PLAN_OPTS(plan),
        TOOL_OPTS(t),
        TOOL_JOBS(t),
        OPT_IN(0, "yaml-cfg", &file, "FILE", "settings by their names above, where no flag gives them"),
        OPT_END,
    };
    struct buf without = {0};
    struct opt *opts;
    struct err e;
    int n, code = EXIT_FATAL;

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
    } else if (n > 0 && c.data_path.n == 0) {
        code = tool_usage(&t, "it takes no operands: '%s'", argv[1]);
    } else if (n >= 0 && plan.plan) {
        struct buf text = {0};

        code = plan_run(&c, &plan, &text, &e) < 0 ? tool_fail(&t, &e) : EXIT_FINE;
        fwrite(text.p, 1, text.n, stdout);
        buf_free(&text);
        code = code == EXIT_FINE ? tool_end(&t, code) : code;
    } else if (n >= 0) {
        catch_signals();
        if (open_ranks(&group, &c, &without, &e) < 0 || more_paths(&c, n, argv + 1, &e) < 0 || train_config_check(&c, &e) < 0 ||
            run(&c, group, tool_jobs(&t), t.quiet, &e) < 0)
            code = tool_fail(&t, &e);
        else
            code = tool_end(&t, EXIT_FINE);
    }
    comm_close(group);
    free(opts);
    train_config_free(&c);
    buf_free(&without);
    arena_free(&texts);
    return code;
}
