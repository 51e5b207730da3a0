#include "train/saver.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct saver {
    struct device *dev;
    const char *dir;
    const struct params *p;
    float *slab[CHECKPOINT_PARTS];
    struct checkpoint_info info;
    pthread_t thread;
    bool running; /* the thread is there to be joined */
    pthread_mutex_t lock;
    bool finished; /* under the lock */
    int rc;
    struct err err;
};

int saver_open(struct saver **out, struct device *dev, const char *dir, const struct params *p, struct err *e)
{
    struct saver *s = calloc(1, sizeof *s);

    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory");
    s->dev = dev;
    s->dir = dir;
    s->p = p;
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; i < CHECKPOINT_PARTS; i++) {
        if (device_alloc_host(dev, (void **)&s->slab[i], p->elements * sizeof(float), e) < 0) {
            saver_close(s);
            return err_wrap(e, "--async-save");
        }
        memset(s->slab[i], 0, p->elements * sizeof(float)); /* so that its pages are there at the first save */
    }
    *out = s;
    return 0;
}

void saver_close(struct saver *s)
{
    if (!s)
        return;
    if (s->running)
        pthread_join(s->thread, NULL);
    for (int i = 0; i < CHECKPOINT_PARTS; i++)
        device_free_host(s->dev, s->slab[i]);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void *write_checkpoint(void *arg)
{
    struct saver *s = arg;
    const float *const slabs[CHECKPOINT_PARTS] = {s->slab[0], s->slab[1], s->slab[2]};
    int rc = checkpoint_save(s->dir, &s->info, s->p, slabs, &s->err);

    pthread_mutex_lock(&s->lock);
    s->rc = rc;
    s->finished = true;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int saver_done(struct saver *s, bool wait, int64_t *step, struct err *e)
{
    bool finished;

    if (!s->running)
        return 0;
    pthread_mutex_lock(&s->lock);
    finished = s->finished;
    pthread_mutex_unlock(&s->lock);
    if (!finished && !wait)
        return 0;
    pthread_join(s->thread, NULL);
    s->running = false;
    *step = s->info.iteration;
    if (s->rc < 0)
        *e = s->err;
    return s->rc < 0 ? s->rc : 1;
}

int saver_start(struct saver *s, const struct checkpoint_info *info, const float *const slab[CHECKPOINT_PARTS],
                struct err *e)
{
    sigset_t all, old;
    int rc;

    if (s->running)
        return err_set(e, ERR_ARG, "a checkpoint is still being written");
    for (int i = 0; i < CHECKPOINT_PARTS; i++)
        TRY(device_get(s->dev, s->slab[i], slab[i], s->p->elements * sizeof(float), e));
    s->info = *info;
    s->finished = false;
    sigfillset(&all); /* signals are the trainer's */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&s->thread, NULL, write_checkpoint, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return err_set(e, ERR_NOMEM, "no thread to write the checkpoint");
    s->running = true;
    return 0;
}
