#include "pipelines/scorer.h"

#include <pthread.h>
#include <stdlib.h>

#include "kernels/threads.h"
#include "train/config.h"
#include "train/evaluate.h"

enum state { NOT_OPEN, OPENING, IDLE, ASKED, CLOSING };

struct scorer {
    struct scorer_conf conf;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t turned; /* the state, which the lock guards with what follows */
    enum state state;
    struct likelihood *r;
    int64_t n;
    int rc;                /* of the opening, or of what was asked last */
    struct err err;
    int64_t length, vocab;
};

/* What the thread has. */
struct opened {
    struct checkpoint *ck;
    struct device *dev;
    struct train_part whole;
    struct passes p;
};

static int open_model(struct scorer *s, struct opened *o, struct err *e)
{
    const struct scorer_conf *c = &s->conf;
    struct model_run run = {.dt = c->bf16 ? DTYPE_BF16 : DTYPE_F32, .use = MODEL_EVAL, .b = c->rows, .t = s->length,
                            .reset_positions = true, .reset_attention = true};

    TRY(checkpoint_open(&o->ck, c->load, c->step, e));
    if (!o->ck)
        return err_set(e, ERR_IO, "no checkpoint in '%s'", c->load);
    TRY(device_open(&o->dev, train_config_device[c->device], threads_count(0, 1, 1), e));
    TRY(model_restore(&o->whole.model, o->ck, o->dev, &run, e));
    return passes_open(&o->p, NULL, &o->whole, 1, NULL, e);
}

static void turn(struct scorer *s, enum state to)
{
    s->state = to;
    pthread_cond_broadcast(&s->turned);
}

/* Opens, answers until it is to close, closes. */
static void *work(void *arg)
{
    struct scorer *s = arg;
    struct opened o = {0};
    int rc = open_model(s, &o, &s->err);

    pthread_mutex_lock(&s->lock);
    s->rc = rc;
    if (s->state == OPENING)
        turn(s, IDLE);
    while (s->state != CLOSING) {
        if (s->state != ASKED) {
            pthread_cond_wait(&s->turned, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        rc = likelihoods(&o.p, s->r, s->n, false, &s->err);
        pthread_mutex_lock(&s->lock);
        s->rc = rc;
        if (s->state == ASKED)
            turn(s, IDLE);
    }
    pthread_mutex_unlock(&s->lock);
    passes_close(&o.p);
    model_close(o.whole.model);
    device_close(o.dev);
    checkpoint_close(o.ck);
    return NULL;
}

/* Waits until the thread has done what it was told. */
static int wait_idle(struct scorer *s, struct err *e)
{
    int rc;

    while (s->state != IDLE)
        pthread_cond_wait(&s->turned, &s->lock);
    rc = s->rc;
    if (rc < 0)
        *e = s->err;
    return rc;
}

/* What the checkpoint says of the model. */
static int look(struct scorer *s, struct err *e)
{
    const struct scorer_conf *c = &s->conf;
    struct checkpoint *ck;
    int64_t positions;

    TRY(checkpoint_open(&ck, c->load, c->step, e));
    if (!ck)
        return err_set(e, ERR_IO, "no checkpoint in '%s'", c->load);
    positions = checkpoint_info(ck)->model.positions;
    s->vocab = checkpoint_info(ck)->model.vocab;
    s->length = c->length ? c->length : positions;
    checkpoint_close(ck);
    if (s->length > positions)
        return err_set(e, ERR_ARG, "windows of %lld tokens: the model of '%s' has %lld positions", (long long)s->length, c->load,
                       (long long)positions);
    return 0;
}

int scorer_open(struct scorer **out, const struct scorer_conf *c, struct err *e)
{
    struct scorer *s = *out = calloc(1, sizeof *s);
    int rc;

    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory");
    s->conf = *c;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->turned, NULL);
    rc = look(s, e);
    if (rc < 0) {
        scorer_close(s);
        *out = NULL;
    }
    return rc;
}

void scorer_close(struct scorer *s)
{
    bool started;

    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    started = s->state != NOT_OPEN;
    turn(s, CLOSING);
    pthread_mutex_unlock(&s->lock);
    if (started)
        pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->turned);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int64_t scorer_length(const struct scorer *s) { return s->length; }
int64_t scorer_vocab(const struct scorer *s) { return s->vocab; }

/* Starts the thread and waits until the model is open.  After a failure it may be tried again. */
static int start(struct scorer *s, struct err *e)
{
    int rc;

    s->state = OPENING;
    if (pthread_create(&s->thread, NULL, work, s) != 0) {
        s->state = NOT_OPEN;
        return err_set(e, ERR_NOMEM, "cannot start a thread for the model");
    }
    rc = wait_idle(s, e);
    if (rc < 0) {
        turn(s, CLOSING);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
        pthread_mutex_lock(&s->lock);
        s->state = NOT_OPEN;
    }
    return rc;
}

int scorer_ask(struct scorer *s, struct likelihood *r, int64_t n, struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    if (s->state == NOT_OPEN)
        rc = start(s, e);
    if (rc == 0) {
        s->r = r;
        s->n = n;
        turn(s, ASKED);
        rc = wait_idle(s, e);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}
