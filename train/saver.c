#include "train/saver.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "kernels/threads.h"

enum phase { IDLE, WRITING, COMMITTING };

struct saver {
    struct comm *group;
    struct device *dev;
    bool async;
    struct piece *v; /* this rank's share */
    int n;
    size_t *at; /* of each in the buffer */
    float *buffer;
    size_t elements; /* of the buffer */

    enum phase phase;
    struct checkpoint_info info;
    struct checkpoint_folder folder;
    struct checkpoint_keep keep;
    struct buf entries;      /* of this rank's files */
    struct span *all;        /* first rank: of each rank's, in text */
    struct buf text;

    pthread_t thread;
    bool running; /* the thread is there to be joined */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool finished; /* under the lock */
    int rc;        /* of the phase; err says why */
    struct err err;
};

/* ---- opening ---- */

/* Whether its bytes can be written from where they are. */
static bool in_place(const struct saver *s, const struct piece *p)
{
    return (!s->dev || s->dev->kind == DEVICE_CPU) && p->ld == p->cols && p->dt == DTYPE_F32;
}

static int alloc_buffer(struct saver *s, struct err *e)
{
    size_t all = 0;
    bool stage = false;

    s->at = calloc((size_t)s->n + 1, sizeof *s->at);
    if (!s->at)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < s->n; i++) {
        s->at[i] = all;
        all += (size_t)(s->v[i].rows * s->v[i].cols);
        stage |= !in_place(s, &s->v[i]);
    }
    s->elements = s->async ? all : stage ? SAVER_STAGE : 0;
    if (s->dev)
        TRY(device_alloc_host(s->dev, (void **)&s->buffer, (s->elements + 1) * sizeof(float), e));
    else if (!(s->buffer = malloc((s->elements + 1) * sizeof(float))))
        return err_set(e, ERR_NOMEM, "out of memory");
    if (s->async)
        memset(s->buffer, 0, s->elements * sizeof(float)); /* so that its pages are there at the first save */
    return 0;
}

int saver_open(struct saver **out, struct comm *group, struct device *dev, const char *dir, const struct checkpoint_keep *keep,
               const struct piece *v, int n, bool async, struct err *e)
{
    struct saver *s = calloc(1, sizeof *s);
    pthread_condattr_t clock;
    int rc;

    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory");
    *s = (struct saver){.group = group, .dev = dev, .async = async, .folder = {.dir = dir}};
    if (keep)
        s->keep = *keep;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &clock);
    pthread_condattr_destroy(&clock);
    rc = pieces_share(group, v, n, &s->v, &s->n, e);
    if (rc == 0 && (rc = alloc_buffer(s, e)) < 0)
        err_wrap(e, "%s", async ? "--async-save" : "--save");
    if (rc == 0 && !(s->all = calloc((size_t)group->size, sizeof *s->all)))
        rc = err_set(e, ERR_NOMEM, "out of memory");
    if (rc < 0) {
        saver_close(s);
        return rc;
    }
    if (group->rank == 0)
        checkpoint_sweep(dir);
    *out = s;
    return 0;
}

void saver_close(struct saver *s)
{
    if (!s)
        return;
    if (s->running)
        pthread_join(s->thread, NULL);
    if (s->dev)
        device_free_host(s->dev, s->buffer);
    else
        free(s->buffer);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    buf_free(&s->entries);
    buf_free(&s->text);
    free(s->all);
    free(s->at);
    free(s->v);
    free(s);
}

/* ---- what the threads do ---- */

/* The bytes of piece i from byte at on. */
static int give(void *arg, int i, size_t at, struct span *data, struct err *e)
{
    struct saver *s = arg;
    const struct piece *p = &s->v[i];
    int64_t first = (int64_t)(at / sizeof(float)), n = p->rows * p->cols - first;
    const float *from = s->async ? s->buffer + s->at[i] + first : (const float *)p->data + first;

    if (!s->async && !in_place(s, p)) {
        n = n < SAVER_STAGE ? n : SAVER_STAGE;
        TRY(piece_get(s->dev, p, first, n, s->buffer, e));
        from = s->buffer;
    }
    *data = (struct span){(const char *)from, (size_t)n * sizeof(float)};
    return 0;
}

static void finish(struct saver *s, int rc)
{
    pthread_mutex_lock(&s->lock);
    s->rc = rc;
    s->finished = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void *write_files(void *arg)
{
    struct saver *s = arg;

    crowd_leave();
    finish(s, checkpoint_write(&s->folder, s->group->rank, s->group->size, s->v, s->n, give, s, &s->entries, &s->err));
    return NULL;
}

/* The first rank's: all ranks' files are there.  An older one that cannot be removed is told; the new one stands. */
static void *commit(void *arg)
{
    struct saver *s = arg;
    struct err e;
    int rc = checkpoint_commit(&s->folder, &s->info, s->all, s->group->size, &s->err);

    if (rc == 0 && checkpoint_thin(s->folder.dir, s->folder.step, &s->keep, &e) < 0)
        log_msg(LOG_ERROR, "--keep-last: %s", e.msg);
    finish(s, rc);
    return NULL;
}

/* Not all are: some rank has failed, and err stays as it is. */
static void *clean_up(void *arg)
{
    struct saver *s = arg;

    checkpoint_abort(&s->folder);
    finish(s, s->rc);
    return NULL;
}

/* Here it is done without memory for a thread, and where it needs the device, which is one thread's. */
static void start_thread(struct saver *s, void *(*fn)(void *))
{
    bool here = fn == write_files && !s->async && s->dev && s->dev->kind != DEVICE_CPU;
    sigset_t all, old;

    s->finished = false;
    sigfillset(&all); /* signals are the trainer's */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    s->running = !here && pthread_create(&s->thread, NULL, fn, s) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!s->running)
        fn(s);
}

/* ---- what all ranks do together ---- */

int saver_start(struct saver *s, const struct checkpoint_info *info, struct err *e)
{
    if (s->phase != IDLE)
        return err_set(e, ERR_ARG, "a checkpoint is still being written");
    s->info = *info;
    s->folder.step = info->iteration;
    s->rc = s->group->rank ? 0 : checkpoint_begin(&s->folder, &s->err);
    TRY(comm_agree(s->group, &s->rc, &s->err, e));
    s->phase = COMMITTING;
    s->finished = true;
    if (s->rc < 0)
        return 0;
    TRY(comm_broadcast(s->group, &s->folder.mark, 1, COMM_I64, 0, e));
    for (int i = 0; s->async && i < s->n; i++)
        TRY(piece_get(s->dev, &s->v[i], 0, s->v[i].rows * s->v[i].cols, s->buffer + s->at[i], e));
    s->phase = WRITING;
    buf_clear(&s->entries);
    start_thread(s, write_files);
    return 0;
}

/* Whether this rank's thread has finished, after at most so many milliseconds. */
static bool finished(struct saver *s, long ms)
{
    struct timespec until;
    bool yes;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&s->lock);
    while (!s->finished && ms && pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0)
        ;
    yes = s->finished;
    pthread_mutex_unlock(&s->lock);
    return yes;
}

/* Whether all ranks' have.  Who waits keeps asking, so that a rank whose disk is slow is not taken for
 * one that hangs. */
static int all_finished(struct saver *s, bool wait, bool *yes, struct err *e)
{
    int32_t done;

    for (long ms = 1;; ms = ms < 200 ? 2 * ms : ms) {
        done = finished(s, wait ? ms : 0);
        TRY(comm_all_reduce(s->group, &done, 1, COMM_I32, COMM_MIN, e));
        if (done || !wait)
            break;
    }
    *yes = done;
    return 0;
}

/* All ranks' entries to the first. */
static int gather_entries(struct saver *s, struct err *e)
{
    struct comm *g = s->group;
    int64_t mine = (int64_t)s->entries.n, *n = calloc((size_t)g->size, sizeof *n);
    size_t at = 0;
    int rc = n ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0)
        rc = comm_all_gather(g, &mine, n, 1, COMM_I64, e);
    if (rc == 0 && g->rank && mine)
        rc = comm_run(g, &(struct comm_call){.kind = COMM_SEND, .send = s->entries.p, .n = s->entries.n, .peer = 0}, e);
    buf_clear(&s->text);
    for (int r = 0; rc == 0 && g->rank == 0 && r < g->size; r++) {
        if (buf_reserve(&s->text, (size_t)n[r]) < 0)
            rc = err_set(e, ERR_NOMEM, "out of memory");
        else if (r == 0 && n[0])
            memcpy(s->text.p, s->entries.p, s->entries.n);
        else if (n[r])
            rc = comm_run(g, &(struct comm_call){.kind = COMM_RECV, .recv = s->text.p + s->text.n, .n = (size_t)n[r],
                                                 .peer = r}, e);
        s->text.n += (size_t)n[r];
    }
    for (int r = 0; rc == 0 && g->rank == 0 && r < g->size; at += (size_t)n[r++])
        s->all[r] = (struct span){s->text.p + at, (size_t)n[r]};
    free(n);
    return rc;
}

/* From one phase to the next; all threads have finished. */
static int next_phase(struct saver *s, struct err *e)
{
    if (s->running)
        pthread_join(s->thread, NULL);
    s->running = false;
    TRY(comm_agree(s->group, &s->rc, &s->err, e));
    if (s->phase == COMMITTING) {
        s->phase = IDLE;
        return 0;
    }
    s->phase = COMMITTING;
    if (s->rc == 0)
        TRY(gather_entries(s, e));
    if (s->group->rank == 0)
        start_thread(s, s->rc < 0 ? clean_up : commit);
    return 0;
}

int saver_done(struct saver *s, bool wait, int64_t *step, struct err *e)
{
    bool yes = true;

    if (s->phase == IDLE)
        return SAVER_NOTHING;
    *step = s->info.iteration;
    while (yes && s->phase != IDLE) {
        TRY(all_finished(s, wait, &yes, e));
        if (yes)
            TRY(next_phase(s, e));
    }
    if (!yes)
        return SAVER_NOTHING;
    if (s->rc < 0)
        *e = s->err;
    return s->rc < 0 ? SAVER_FAILED : SAVER_SAVED;
}
