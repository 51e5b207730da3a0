#include "train/step_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/http.h"
#include "base/json.h"
#include "base/log.h"
#include "train/tensorboard.h"

struct step_log {
    int fd; /* -1: none */
    bool lines_failed, board_failed;
    struct tensorboard *board; /* NULL: none */
};

int step_log_open(struct step_log **out, const struct train_config *c, struct err *e)
{
    struct step_log *log;
    int rc = 0;

    *out = NULL;
    if (!c->log_file && !c->tensorboard)
        return 0;
    if (c->log_file && http_is_address(c->log_file))
        return err_set(e, ERR_ARG, "--log-file: '%.*s' is an address; lines are appended to a file here",
                       http_name_length(c->log_file), c->log_file);
    log = calloc(1, sizeof *log);
    if (!log)
        return err_set(e, ERR_NOMEM, "out of memory");
    log->fd = c->log_file ? open(c->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (c->log_file && log->fd < 0)
        rc = err_sys(e, ERR_IO, "cannot open '%s'", c->log_file);
    if (rc == 0 && c->tensorboard)
        rc = tensorboard_open(&log->board, c->tensorboard, e);
    if (rc < 0)
        step_log_close(log);
    else
        *out = log;
    return rc;
}

void step_log_close(struct step_log *log)
{
    if (!log)
        return;
    tensorboard_close(log->board);
    if (log->fd >= 0)
        close(log->fd);
    free(log);
}

/* {"NAME":score,...} */
static int put_scores(struct buf *b, const struct train_step *s)
{
    TRY(buf_puts(b, ",\"scores\":{"));
    for (int i = 0; i < s->n_scores; i++) {
        TRY(json_put_key(b, s->scores[i].name));
        TRY(json_put_num(b, s->scores[i].value));
    }
    return buf_putc(b, '}');
}

/* {"NAME":loss,...} of several validation sets. */
static int put_sets(struct buf *b, const struct trainer *t, const double *valid)
{
    TRY(buf_puts(b, ",\"valid_losses\":{"));
    for (int i = 0; i < data_valid_sets(t->data); i++) {
        TRY(json_put_key(b, data_valid_name(t->data, i)));
        TRY(json_put_num(b, valid[i]));
    }
    return buf_putc(b, '}');
}

/* [loss,...] of tokens further on. */
static int put_mtp(struct buf *b, const struct trainer *t, const struct train_step *s)
{
    int64_t n = t->config->model.mtp_layers;

    if (!n)
        return 0;
    TRY(buf_puts(b, ",\"mtp_losses\":["));
    for (int64_t i = 0; i < n; i++) {
        TRY(i ? buf_putc(b, ',') : 0);
        TRY(json_put_num(b, s->mtp_loss[i]));
    }
    return buf_putc(b, ']');
}

static int put_line(struct buf *b, const struct trainer *t, const struct train_step *s, const struct step_rates *r)
{
    const struct {
        const char *key;
        double v;
        bool sometimes; /* left out when it is NaN, else null */
    } field[] = {
        {"loss", s->loss, false}, {"grad_norm", s->grad_norm, false}, {"lr", s->lr, false}, {"tokens_per_s", r->tokens, false},
        {"flops_per_s", r->flops, false}, {"mfu", r->mfu, false}, {"load_balancing_loss", s->balance, true},
        {"max_attention_logit", s->max_logit, true}, {"valid_loss", s->valid_loss, true},
    };

    TRY(buf_printf(b, "{\"step\":%" PRId64, s->step));
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        if (field[i].sometimes && isnan(field[i].v))
            continue;
        TRY(json_put_key(b, field[i].key));
        TRY(json_put_num(b, field[i].v));
    }
    TRY(put_mtp(b, t, s));
    if (!isnan(s->valid_loss) && t->config->valid_sets)
        TRY(put_sets(b, t, s->valid));
    if (s->n_scores)
        TRY(put_scores(b, s));
    TRY(buf_printf(b, ",\"first_sample\":%" PRId64 ",\"batch\":%" PRId64 ",\"save_s\":%.6f", s->first_sample, s->batch,
                   s->save_seconds));
    for (int i = 0; i < PHASES; i++)
        TRY(buf_printf(b, ",\"%s_s\":%.6f", train_phase_name[i], s->phase[i]));
    TRY(buf_printf(b, ",\"cpu_s\":%.6f", s->cpu_seconds));
    if (s->back_to >= 0)
        TRY(buf_printf(b, ",\"rolled_back_to\":%" PRId64, s->back_to));
    else if (s->skipped)
        TRY(buf_puts(b, ",\"skipped\":true"));
    return buf_puts(b, "}\n");
}

/* Writes a line that was put with status rc, and frees it. */
static void log_line(struct step_log *log, const struct trainer *t, struct buf *b, int rc)
{
    if ((rc < 0 || write(log->fd, b->p, b->n) != (ssize_t)b->n) && !log->lines_failed) {
        log->lines_failed = true;
        log_msg(LOG_ERROR, "cannot write '%s': %s; training goes on", t->config->log_file, strerror(errno));
    }
    buf_free(b);
}

/* A scalar for each validation set. */
static int board_validation(struct step_log *log, const struct trainer *t, const double *valid, struct err *e)
{
    char tag[512];

    for (int i = 0; i < data_valid_sets(t->data); i++) {
        snprintf(tag, sizeof tag, "lm loss validation%s%s", t->config->valid_sets ? " " : "", data_valid_name(t->data, i));
        TRY(tensorboard_scalar(log->board, tag, valid[i], e));
    }
    return 0;
}

/* Megatron's tags. */
static int board_scalars(struct step_log *log, const struct trainer *t, const struct train_step *s, const struct step_rates *r,
                         struct err *e)
{
    const struct {
        const char *tag;
        double v;
    } field[] = {{"lm loss", s->loss}, {"grad-norm", s->grad_norm}, {"learning-rate", s->lr},
                 {"batch-size", (double)s->batch}, {"iteration-time", s->seconds}, {"throughput", r->flops / 1e12}};

    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        TRY(tensorboard_scalar(log->board, field[i].tag, field[i].v, e));
    for (int64_t i = 0; i < t->config->model.mtp_layers; i++) {
        char tag[32];

        snprintf(tag, sizeof tag, "mtp_%" PRId64 " loss", i + 1);
        TRY(tensorboard_scalar(log->board, tag, s->mtp_loss[i], e));
    }
    if (!isnan(s->balance))
        TRY(tensorboard_scalar(log->board, "load_balancing_loss", s->balance, e));
    if (!isnan(s->max_logit))
        TRY(tensorboard_scalar(log->board, "max_attention_logit", s->max_logit, e));
    if (!isnan(s->valid_loss))
        TRY(board_validation(log, t, s->valid, e));
    for (int i = 0; i < s->n_scores; i++)
        TRY(tensorboard_scalar(log->board, s->scores[i].name, s->scores[i].value, e));
    return tensorboard_step(log->board, s->step, e);
}

/* What the board cannot take is said once. */
static void board_failed(struct step_log *log, const struct err *e)
{
    if (!log->board_failed)
        log_msg(LOG_ERROR, "%s; training goes on", e->msg);
    log->board_failed = true;
}

void step_log_put(struct step_log *log, const struct trainer *t, const struct train_step *s, const struct step_rates *r)
{
    struct buf b = {0};
    struct err e;

    if (!log)
        return;
    if (log->fd >= 0)
        log_line(log, t, &b, put_line(&b, t, s, r));
    if (log->board && board_scalars(log, t, s, r, &e) < 0)
        board_failed(log, &e);
}

/* {"step":20,"valid_loss":5.1,"test_loss":5.2}: what there is of it. */
static int put_final(struct buf *b, const struct trainer *t, const struct step_final *f)
{
    TRY(buf_printf(b, "{\"step\":%" PRId64, t->step));
    if (!isnan(f->valid_loss)) {
        TRY(buf_puts(b, ",\"valid_loss\":"));
        TRY(json_put_num(b, f->valid_loss));
        if (t->config->valid_sets)
            TRY(put_sets(b, t, f->valid));
    }
    if (!isnan(f->test_loss)) {
        TRY(buf_puts(b, ",\"test_loss\":"));
        TRY(json_put_num(b, f->test_loss));
    }
    return buf_puts(b, "}\n");
}

void step_log_final(struct step_log *log, const struct trainer *t, const struct step_final *f)
{
    struct buf b = {0};
    struct err e;

    if (!log || (isnan(f->valid_loss) && isnan(f->test_loss)))
        return;
    if (log->fd >= 0)
        log_line(log, t, &b, put_final(&b, t, f));
    if (log->board && !isnan(f->valid_loss) &&
        (board_validation(log, t, f->valid, &e) < 0 || tensorboard_step(log->board, t->step, &e) < 0))
        board_failed(log, &e);
}
